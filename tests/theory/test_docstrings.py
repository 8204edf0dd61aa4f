"""Every quantity says where it departs from the paper and has its symbol; every example runs."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from neuralucb import theory

QUANTITIES = [
    "tangent_kernel", "empirical_kernel", "effective_dimension", "smallest_eigenvalue", "rkhs_norm_squared",
    "norm_bound", "theoretical", "self_normalised", "theorem_1", "corollary_1", "least_steps", "conditions",
]  # fmt: skip
MODULES = [module.name for module in pkgutil.iter_modules(theory.__path__)]


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_has_its_departures_and_its_symbol(name):
    assert "Departure" in getattr(theory, name).__doc__
    assert f"`theory.{name}`" in (Path(__file__).parents[2] / "docs" / "symbols.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"neuralucb.theory.{name}")).failed == 0


def test_every_function_of_the_theory_has_an_example():
    public = [getattr(theory, name) for name in theory.__all__]
    functions = [one for one in public if inspect.isfunction(one) and one.__module__.startswith("neuralucb.theory")]
    missing = [one.__name__ for one in functions if not {"Args:", "Example:"} <= set(one.__doc__.split())]
    assert len(functions) > 15
    assert missing == []
