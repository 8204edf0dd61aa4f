"""The problems by name, with their settings."""

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
    given: bool = False
    """whether it came ready made, and has no settings any more"""


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
    choice("input_scaling", "", "standard", "of the rows", options=SCALINGS),
    flag("intercept", "", False, "a column of ones"),
    Setting("drop", "", "none", "columns to leave out", "names with + between, or none", str, False),
    flag("repeat", "", False, "begin again after the last row"),
)


def _play(table: Table, name: str, *, input_scaling: str, intercept: bool, drop: str, repeat: bool) -> Problem:
    rows = table.rows(drop)
    return labelled(rows, table.labels, scaling=input_scaling, intercept=intercept, repeat=repeat, name=name)


@lru_cache(maxsize=4)
def _from_data(name: str, folder: Path, **settings: Any) -> Problem:
    """A grid asks for the same data set again and again. The folder is only there to tell two apart."""
    return _play(load(name), name, **settings)


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
PROBLEMS |= {alias: PROBLEMS[name]._replace(summary=f"the paper's name for {name}") for alias, name in ALIASES.items()}
PROBLEMS |= {
    name: Definition(name, "bundled with scikit-learn, no download", LABELLED, _maker(name), shared=True)
    for name in BUNDLED
}


def from_file(path: Path | str, label: str | None) -> Definition:
    """A file of the user's as a problem, under the file's name."""
    file = Path(path)
    table = read_table(file, label)
    return Definition(file.stem, f"from {file.name}", LABELLED, partial(_play, table, file.stem), shared=True)


def find_problem(problem: str | Problem | Definition) -> Definition:
    """The problem of that name, or the one given; an unknown name lists the known."""
    if isinstance(problem, Definition):
        return problem
    if isinstance(problem, Problem):
        return Definition(problem.name, "given as it is", (), lambda: problem, problem.shared, given=True)
    if problem not in PROBLEMS:
        raise InputError(f"problem {problem!r} is not known; known: {', '.join(PROBLEMS)}.")
    return PROBLEMS[problem]


def build_problem(problem: str | Definition, settings: Mapping[str, Any]) -> Problem:
    """The problem with these settings."""
    definition = find_problem(problem)
    return definition.make(**read_settings(definition.settings, settings, of=definition.name))
