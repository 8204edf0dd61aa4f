"""The problems by name, with their settings."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from neuralucb.problems.contract import Problem
from neuralucb.problems.data import BUNDLED, SETS, data_folder, load, load_file
from neuralucb.problems.labelled import SCALINGS, labelled
from neuralucb.problems.synthetic import synthetic
from neuralucb.settings import Setting, choice, flag, integer, number, read_settings

__all__ = ["PROBLEMS", "Definition", "build_problem", "find_problem", "from_file"]


class Definition(NamedTuple):
    """A problem's name, one line about it, and how to make it."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[..., Problem]
    shared: bool = False
    """whether its arms share one context"""


SYNTHETIC = (
    integer("dim", "d", 20, "numbers in a context"),
    integer("arms", "K", 4, "arms to choose from", least=2),
    number("noise", "ξ", 1.0, "standard deviation of the noise", least=0)._replace(traced=False),
)

PROBLEMS: dict[str, Definition] = {
    name: Definition(name, summary, SYNTHETIC, partial(synthetic, name))
    for name, summary in {
        "h1": "10(xᵀa)², a quadratic along one direction",
        "h2": "xᵀAᵀAx, a quadratic in all directions",
        "h3": "cos(3xᵀa), a cosine along one direction",
    }.items()
}


LABELLED = (
    choice("scaling", "", "standard", "of the rows", options=SCALINGS)._replace(name="input_scaling"),
    flag("repeat", "", False, "begin again after the last row"),
)


def _from_data(name: str, *, input_scaling: str, repeat: bool) -> Problem:
    return labelled(*_loaded(name, data_folder()), scaling=input_scaling, repeat=repeat)


@lru_cache(maxsize=2)
def _loaded(name: str, folder: Path) -> tuple[Any, Any]:
    """A grid asks for the same data set again and again."""
    return load(name)


PROBLEMS |= {
    each.name: Definition(
        each.name,
        f"{each.classes} classes, {each.features} features, Table 1",
        LABELLED,
        partial(_from_data, each.name),
        shared=True,
    )
    for each in SETS.values()
}
PROBLEMS["statlog"] = PROBLEMS["shuttle"]._replace(summary="the paper's name for shuttle")
PROBLEMS |= {
    name: Definition(name, "bundled with scikit-learn, no download", LABELLED, partial(_from_data, name), shared=True)
    for name in BUNDLED
}


def from_file(path: Path, label: str | None) -> str:
    """Register a file of the user's as a problem, under its own name, and return that name."""
    rows, labels = load_file(path, label)
    name = path.stem

    def make(*, input_scaling: str, repeat: bool) -> Problem:
        return labelled(rows, labels, scaling=input_scaling, repeat=repeat)

    PROBLEMS[name] = Definition(name, f"from {path.name}", LABELLED, make, shared=True)
    return name


def find_problem(name: str) -> Definition:
    """The problem of that name; an unknown one lists the known."""
    if name not in PROBLEMS:
        raise ValueError(f"problem {name!r} is not known; known: {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]


def build_problem(name: str, settings: Mapping[str, Any]) -> Problem:
    """The named problem with these settings."""
    definition = find_problem(name)
    return definition.make(**read_settings(definition.settings, settings, of=name))
