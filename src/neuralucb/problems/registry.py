"""Problems by name, with their settings."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from neuralucb.problems.datasets import ALIASES, BUNDLED, SETS, data_folder, load
from neuralucb.problems.labelled import SCALINGS, labelled
from neuralucb.problems.labelled_files import Table, read_table
from neuralucb.problems.problem import Problem
from neuralucb.problems.synthetic import synthetic
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief
from neuralucb.settings import Setting, choice, flag, integer, number, read_settings

__all__ = ["PROBLEMS", "Definition", "build_problem", "find_problem", "from_file"]

SYNTHETIC = (
    integer("dim", "d", 20, "numbers in a context"),
    integer("arms", "K", 4, "arms to choose from", least=2),
    number("noise", "ξ", 1.0, "standard deviation of the noise", least=0)._replace(traced=False),
)


LABELLED = (
    choice("input_scaling", "", "standard", "how rows are scaled", options=SCALINGS),
    flag("intercept", "", False, "adds a column of ones"),
    Setting("drop", "", "none", "columns to leave out", "names joined by +, or none", str, False),
    flag("repeat", "", False, "starts over after the last row"),
)


@brief
class Definition(NamedTuple):
    """A problem's name, one line about it, and how to make it."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[..., Problem]
    """settings by name -> Problem"""
    shared: bool = False
    """whether its arms share one context"""
    built: bool = False
    """whether it was given as a `Problem`, which has no settings any more"""


def find_problem(problem: str | Problem | Definition) -> Definition:
    """The definition of a problem.

    Args:
        problem: a name, a problem, or a definition, which is returned as it is.

    Raises:
        InputError: if the name is unknown; the message lists the known ones.
    """
    if isinstance(problem, Definition):
        return problem
    if isinstance(problem, Problem):
        return Definition(problem.name, "given as it is", (), lambda: problem, problem.shared, built=True)
    if not isinstance(problem, str) or problem not in PROBLEMS:
        raise InputError(f"problem {problem!r} is not known; known: {', '.join(PROBLEMS)}.")
    return PROBLEMS[problem]


def build_problem(problem: str | Definition, settings: Mapping[str, Any]) -> Problem:
    """Make a problem.

    Args:
        problem: a name or a definition.
        settings: by name; the others have their defaults.

    Raises:
        InputError: if the name or a setting is unknown, or a value is out of range.

    Example:
        >>> from neuralucb.problems import build_problem
        >>> problem = build_problem("h1", {"dim": 8})
    """
    definition = find_problem(problem)
    return definition.make(**read_settings(definition.settings, settings, of=definition.name))


def from_file(path: Path | str, label: str | None) -> Definition:
    """A problem from a file of labelled rows, named after the file.

    Args:
        path: a .npz, .csv or .parquet file.
        label: the column of labels; None for a .npz file, whose labels are y.

    Raises:
        InputError: if the file cannot be read; the message says why.

    Example:
        >>> from neuralucb import run
        >>> from neuralucb.problems import from_file
        >>> result = run("lin-ucb", from_file("flowers.csv", "species"), seeds=4)
    """
    file = Path(path)
    table = read_table(file, label)
    return Definition(file.stem, f"from {file.name}", LABELLED, partial(_from_table, table, file.stem), shared=True)


def _from_table(table: Table, name: str, *, input_scaling: str, intercept: bool, drop: str, repeat: bool) -> Problem:
    rows = table.rows(drop)
    return labelled(rows, table.labels, scaling=input_scaling, intercept=intercept, repeat=repeat, name=name)


def _from_data_set(name: str, **settings: Any) -> Problem:
    return _cached_data_set(name, data_folder(), **settings)


@lru_cache(maxsize=4)
def _cached_data_set(name: str, folder: Path, **settings: Any) -> Problem:
    """Kept, since every point of a grid needs it. The folder is part of the key: it may change."""
    return _from_table(load(name), name, **settings)


PROBLEMS: dict[str, Definition] = {
    name: Definition(name, summary, SYNTHETIC, partial(synthetic, name))
    for name, summary in {
        "h1": "10(xᵀa)², a quadratic along one direction",
        "h2": "xᵀAᵀAx, a quadratic in all directions",
        "h3": "cos(3xᵀa), a cosine along one direction",
    }.items()
}
PROBLEMS |= {
    each.name: Definition(
        each.name,
        f"{each.classes} classes, {each.features} features, Table 1",
        LABELLED,
        partial(_from_data_set, each.name),
        shared=True,
    )
    for each in SETS.values()
}
PROBLEMS |= {alias: PROBLEMS[name]._replace(summary=f"the paper's name for {name}") for alias, name in ALIASES.items()}
PROBLEMS |= {
    name: Definition(
        name, "bundled with scikit-learn, no download", LABELLED, partial(_from_data_set, name), shared=True
    )
    for name in BUNDLED
}
