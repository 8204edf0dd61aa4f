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


def _read_columns(value: Any) -> str:
    """Column numbers with + between, or none; kept as text, so that settings stay plain data."""
    parts = str(value).split("+")
    if value != "none" and not all(part.isdecimal() for part in parts):
        raise ValueError("must be column numbers from 0, with + between, or none")
    return str(value)


LABELLED = (
    choice("scaling", "", "standard", "of the rows", options=SCALINGS)._replace(name="input_scaling"),
    flag("intercept", "", False, "a column of ones"),
    Setting(
        "drop", "", "none", "columns to leave out", "numbers from 0, with + between, or none", _read_columns, False
    ),
    flag("repeat", "", False, "begin again after the last row"),
)


@lru_cache(maxsize=4)
def _from_data(name: str, folder: Path, *, input_scaling: str, intercept: bool, drop: str, repeat: bool) -> Problem:
    """A grid asks for the same data set again and again."""
    rows, labels = load(name)
    return labelled(
        _without(rows, drop, name), labels, scaling=input_scaling, intercept=intercept, repeat=repeat, name=name
    )


def _without(rows: Any, drop: str, name: str) -> Any:
    """The columns that are not dropped."""
    gone = {int(part) for part in drop.split("+")} if drop != "none" else set()
    if gone and max(gone) >= rows.shape[1]:
        raise ValueError(f"drop must name columns from 0 to {rows.shape[1] - 1} of {name}, got {drop}.")
    if len(gone) == rows.shape[1]:
        raise ValueError(f"drop must leave at least one column of {name}, got {drop}.")
    return rows[:, [column for column in range(rows.shape[1]) if column not in gone]] if gone else rows


def _maker(name: str) -> Callable[..., Problem]:
    return lambda **settings: _from_data(name, data_folder(), **settings)


PROBLEMS |= {
    each.name: Definition(
        each.name,
        f"{each.classes} classes, {each.features} features, Table 1",
        LABELLED,
        _maker(each.name),
        shared=True,
    )
    for each in SETS.values()
}
PROBLEMS["statlog"] = PROBLEMS["shuttle"]._replace(summary="the paper's name for shuttle")
PROBLEMS |= {
    name: Definition(name, "bundled with scikit-learn, no download", LABELLED, _maker(name), shared=True)
    for name in BUNDLED
}


def from_file(path: Path, label: str | None) -> Definition:
    """A file of the user's as a problem, under the file's name."""
    rows, labels = load_file(path, label)
    name = path.stem

    def make(*, input_scaling: str, intercept: bool, drop: str, repeat: bool) -> Problem:
        kept = _without(rows, drop, name)
        return labelled(kept, labels, scaling=input_scaling, intercept=intercept, repeat=repeat, name=name)

    return Definition(name, f"from {path.name}", LABELLED, make, shared=True)


def find_problem(problem: str | Problem | Definition) -> Definition:
    """The problem of that name, or the one given; an unknown name lists the known."""
    if isinstance(problem, Definition):
        return problem
    if isinstance(problem, Problem):
        return Definition(problem.name, "given as it is", (), lambda: problem, problem.shared)
    if problem not in PROBLEMS:
        raise ValueError(f"problem {problem!r} is not known; known: {', '.join(PROBLEMS)}.")
    return PROBLEMS[problem]


def build_problem(problem: str | Definition, settings: Mapping[str, Any]) -> Problem:
    """The problem with these settings."""
    definition = find_problem(problem)
    return definition.make(**read_settings(definition.settings, settings, of=definition.name))
