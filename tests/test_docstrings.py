"""Docstrings: examples run as they stand, in a folder with small files; public functions explain their arguments."""

import ast
import doctest
import inspect
import re
import shutil
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import neuralucb

SOURCE = Path(neuralucb.__file__).parent
LOGS = Path(__file__).parent / "data" / "v0_1"
WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
NAMES = {name: getattr(neuralucb, name) for name in neuralucb.__all__} | {
    "neuralucb": neuralucb,
    "np": np,
    "Path": Path,
}
"""What an example may use without importing it; a module's names come first."""
FILES = {
    "flowers.csv": "length,species\n"
    + "".join(f"{length},{'rose' if length % 2 else 'lily'}\n" for length in range(40)),
    "log.csv": "age,shown,clicks\n30,0,1\n41,1,0\n52,1,1\n",
    "mine.toml": 'name = "mine"\nrounds = 20\nseeds = 2\n[[runs]]\nalgorithms = ["uniform"]\nproblems = ["h1"]\n',
}


ROOMS = [neuralucb, *(import_module(f"neuralucb.{name}") for name in neuralucb._ROOMS)]


def exported(kind):
    found = {each for room in ROOMS for name in room.__all__ if kind(each := getattr(room, name))}
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


def constants(path):
    """Names that a module assigns, with the docstring below each."""
    found = {}
    for line, below in pairwise(ast.parse(path.read_text()).body):
        targets = getattr(line, "targets", [getattr(line, "target", None)])
        if isinstance(targets[0], ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[targets[0].id] = str(below.value.value)
    return found


@pytest.fixture
def played_once(monkeypatch):
    """Examples of one module that ask for the same comparison are given the same one."""
    played, play = {}, neuralucb.compare

    def compare(*args, **kwargs):
        asked = repr((args, kwargs))
        if asked not in played:
            played[asked] = play(*args, **kwargs)
        return played[asked]

    monkeypatch.setitem(vars(neuralucb), "compare", compare)


@pytest.mark.usefixtures("played_once")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_in_docstrings_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for log in LOGS.glob("log.*"):
        shutil.copy(log, tmp_path)
    shutil.copytree(LOGS / "sweep", tmp_path / "sweep")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    module = import_module(".".join(["neuralucb", *path.relative_to(SOURCE).with_suffix("").parts]))
    names, runner = NAMES | vars(module), doctest.DocTestRunner()
    assert not doctest.testmod(module, globs=names).failed
    for name, text in constants(path).items():
        runner.run(doctest.DocTestParser().get_doctest(text, dict(names), name, str(path), 0))
    assert not runner.failures


@pytest.mark.parametrize(
    "function", exported(inspect.isfunction), ids=lambda each: f"{each.__module__}.{each.__name__}"
)
def test_public_functions_document_arguments_and_what_they_return(function):
    signature, lines = inspect.signature(function), inspect.getdoc(function).splitlines()
    for name in signature.parameters:
        (described,) = [line for line in lines if re.match(rf"    \*{{0,2}}{name}: ", line)]
        assert not re.match(r"    \S+: [a-z]{2,}\b", described), described
    assert "Returns:" in lines or signature.return_annotation is None
    assert "Example:" in lines


OUTSIDE = {"MLflow", "TensorBoard", "WandB"}
"""They write where the user points them; tests of sweeps run them."""


def test_every_exported_name_has_an_example_that_runs():
    missing, skipped = [], set()
    for each in exported(lambda each: inspect.isclass(each) or inspect.isfunction(each)):
        prompts = [line for line in inspect.getdoc(each).partition("Example:")[2].splitlines() if ">>> " in line]
        if not prompts:
            missing.append(f"{each.__module__}.{each.__name__}")
        elif all("+SKIP" in line for line in prompts):
            skipped.add(each.__name__)
    shown = {name for path in WITH_EXAMPLES for name, text in constants(path).items() if "    >>> " in text}
    values = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
    others = {name for name, each in values.items() if not inspect.isclass(each) and not inspect.isfunction(each)}
    assert missing == []
    assert others <= shown
    assert skipped <= OUTSIDE | {"SweepResult", "Tuned", "TunedOnLog", "tune", "tune_on_log"}  # minutes of playing
