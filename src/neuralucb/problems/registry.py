"""Problems by name, with their settings."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuralucb.problems.datasets import ALIASES, BUNDLED, SETS, data_folder, load
from neuralucb.problems.labelled import SCALINGS, labelled
from neuralucb.problems.problem import Problem, check_problem
from neuralucb.problems.rewards import REWARD_SCALINGS, rewards
from neuralucb.problems.synthetic import synthetic
from neuralucb.problems.table_files import read_table
from neuralucb.problems.tables import Table
from neuralucb.runtime.errors import InputError
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


REWARDS = (
    *LABELLED,
    choice("reward_scaling", "", "unit", "how rewards are scaled", options=REWARD_SCALINGS),
    number("noise", "ξ", 0.0, "standard deviation of the noise", least=0)._replace(traced=False),
)


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
        InputError: if the name is unknown; the message lists the known ones. Or if a problem's `draw` does not give
            the arms, contexts and rewards that it promises.
    """
    if isinstance(problem, Definition):
        return problem
    if isinstance(problem, Problem):
        check_problem(problem)
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


def from_file(path: Path | str, label: str | None = None, *, rewards: str | Sequence[str] | None = None) -> Definition:
    """A problem from a file of rows, named after the file.

    Args:
        path: a .npz, .csv or .parquet file.
        label: the column of labels, for a problem as `labelled` makes it; None for those of a .npz file that are
            called y.
        rewards: instead of a label, the columns with each arm's reward, for a problem as `rewards` makes it; of a .npz
            file, whose X may be (n, K, d), the array (n, K) or several arrays (n,).

    Raises:
        InputError: if the file cannot be read; the message says why.

    Example:
        >>> from neuralucb import run
        >>> from neuralucb.problems import from_file
        >>> result = run("lin-ucb", from_file("flowers.csv", "species"), seeds=4)
    """
    file = Path(path)
    about = f"from {file.name}"
    if rewards is None:
        table = read_table(file, {"label": label})
        return Definition(file.stem, about, LABELLED, partial(_from_table, table, file.stem), shared=True)
    if label is not None:
        raise InputError(f"label must not be given with rewards, got {label!r}: a row has a label, or rewards.")
    table = read_table(file, {"rewards": rewards})
    shared = table.columns[0].ndim == 1
    return Definition(file.stem, about, REWARDS, partial(_from_reward_table, table, file.stem), shared=shared)


def _from_table(table: Table, name: str, *, drop: str, **settings: Any) -> Problem:
    (labels,) = table.taken.values()
    return labelled(table.rows(drop), labels, name=name, **settings)


def _from_reward_table(table: Table, name: str, *, drop: str, **settings: Any) -> Problem:
    arms = [column.reshape(len(column), -1) for column in table.taken.values()]
    return rewards(table.rows(drop), np.concatenate(arms, axis=1), name=name, **settings)


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
