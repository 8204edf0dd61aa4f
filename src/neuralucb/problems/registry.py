"""Problems by name, with their settings. `register_problem("mine")(make)` adds one."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, wraps
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
from neuralucb.runtime.records import brief
from neuralucb.runtime.registry import Registry, check_call, first_line
from neuralucb.settings import Setting, check_settings, choice, flag, integer, number, read_settings

__all__ = ["PROBLEMS", "Definition", "build_problem", "find_problem", "from_file", "register_problem"]

ARGUMENTS = ("algorithm", "problem", "rounds", "seeds", "preset", "schedule", "progress", "trace")
"""Names of arguments of `run`, which a setting cannot have."""

SYNTHETIC = (
    integer("dim", "d", 20, "numbers in a context"),
    integer("arms", "K", 4, "arms to choose from", least=2),
    number("noise", "ξ", 1.0, "standard deviation of the noise", least=0)._replace(traced=False),
)

LABELLED = (
    choice("input_scaling", "", "columns", "how rows are scaled", options=SCALINGS),
    flag("intercept", "", False, "adds a column of ones"),
    Setting("drop", "", "none", "columns to leave out", "names joined by +, or none", str, False),
    flag("repeat", "", False, "starts over after the last row"),
)

REWARDS = (
    *LABELLED,
    choice("reward_scaling", "", "unit", "how rewards are scaled", options=REWARD_SCALINGS),
    number("noise", "ξ", 0.0, "standard deviation of the noise", least=0)._replace(traced=False),
)


@brief
class Definition(NamedTuple):
    """A problem's name, one line about it, and how to make it.

    Example:
        >>> find_problem("h1").name
        'h1'
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    make: Callable[..., Problem]
    """settings by name -> Problem"""
    shared: bool = False
    """whether its arms share one context"""
    built: bool = False
    """whether it was given as a `Problem`, which is already built and takes no settings"""


def find_problem(problem: str | Problem | Definition) -> Definition:
    """Find the definition of a problem.

    Args:
        problem: A name, a problem, or a definition, which is returned as it is.

    Returns:
        Its name, a summary, its settings, and how to make it.

    Raises:
        InputError: If the name is unknown; the message lists the known ones, and where they were looked for. Or if a
            problem's `draw` does not give the arms, contexts and rewards that it promises.

    Example:
        >>> from neuralucb.problems import find_problem
        >>> [setting.name for setting in find_problem("h1").settings]
        ['dim', 'arms', 'noise']
    """
    if isinstance(problem, Definition):
        return problem
    if isinstance(problem, Problem):
        check_problem(problem)
        return Definition(problem.name, "given as it is", (), lambda: problem, problem.shared, built=True)
    if not isinstance(problem, str):
        raise InputError(
            f"problem must be a name, or a Problem such as labelled(X, y) or rewards(X, R), got a "
            f"{type(problem).__name__}."
        )
    found = PROBLEMS.find(problem)
    return _with_shared(found) if problem in _not_made_yet else found


def register_problem(
    name: str, *, settings: Sequence[Setting] = (), summary: str = ""
) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Make a problem known by name, to `run`, sweeps and every command.

    Args:
        name: A new name, such as "prices".
        settings: Its settings, made by `number`, `integer`, `choice` and `flag` of `neuralucb.settings`. They shape
            the problem: a grid cannot vary them.
        summary: One line for `neuralucb list`; if not set, the first line of the function's docstring.

    Returns:
        A decorator for a function that takes the settings as keywords and returns a `Problem`. It is called once for
        each combination of settings.

    Raises:
        InputError: If the name is taken or not one word, a setting cannot be used, or the function does not take the
            settings as keywords.

    Example:
        >>> from neuralucb.problems import build_problem, register_problem, synthetic
        >>> from neuralucb.settings import integer
        >>> @register_problem("example-wide", settings=(integer("dim", "d", 50, "numbers in a context"),))
        ... def wide(dim):
        ...     return synthetic("h1", dim=dim)
        >>> build_problem("example-wide", {}).dim
        50
        >>> del PROBLEMS["example-wide"]
    """

    def register(make: Callable[..., Problem]) -> Callable[..., Problem]:
        words = [each.name for each in settings if isinstance(each, Setting)]
        check_call(f"the maker of problem {name!r}", make, f"({', '.join(words)})", keywords=words)

        @lru_cache(maxsize=4)
        @wraps(make)
        def checked(**values: Any) -> Problem:
            """Kept, since every point of a grid needs it."""
            made = make(**values)
            if not isinstance(made, Problem):
                raise InputError(f"the maker of problem {name!r} must return a Problem, got {made!r:.80}.")
            return made._replace(name=name)

        untraced = tuple(each._replace(traced=False) if isinstance(each, Setting) else each for each in settings)
        PROBLEMS[name] = Definition(name, summary or first_line(make), untraced, checked)
        _not_made_yet.add(name)
        return make

    return register


def build_problem(problem: str | Definition, settings: Mapping[str, Any]) -> Problem:
    """Make a problem.

    Args:
        problem: A name or a definition.
        settings: By name; the others have their defaults.

    Returns:
        The problem, ready for `simulate`, `run` and `compare`.

    Raises:
        InputError: If the name or a setting is unknown, or a value is out of range.

    Example:
        >>> from neuralucb.problems import build_problem
        >>> problem = build_problem("h1", {"dim": 8})
    """
    definition = find_problem(problem)
    return definition.make(**read_settings(definition.settings, settings, of=definition.name))


def from_file(path: Path | str, label: str | None = None, *, rewards: str | Sequence[str] | None = None) -> Definition:
    """A problem from a file of rows, named after the file.

    Args:
        path: A .npz, .csv or .parquet file.
        label: The column of labels, for a problem as `labelled` makes it; None for those of a .npz file that are
            called y.
        rewards: Instead of a label, the columns with each arm's reward, for a problem as `rewards` makes it; of a .npz
            file, whose X may be (n, K, d), the array (n, K) or several arrays (n,).

    Returns:
        Its definition, which `run`, `compare` and `build_problem` take; settings such as `drop` are theirs.

    Raises:
        InputError: If the file cannot be read; the message says why.

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


def _with_shared(found: Definition) -> Definition:
    """The definition, once it is known whether arms share a context: making the problem tells."""
    made = found.make(**read_settings(found.settings, {}, of=found.name))
    known = found._replace(shared=made.shared)
    _not_made_yet.discard(found.name)
    PROBLEMS[found.name] = known
    return known


def _check(name: str, definition: Definition) -> None:
    what = f"problem {name!r}"
    check_settings(what, definition.settings, reserved=ARGUMENTS)
    words = [each.name for each in definition.settings]
    check_call(f"the maker of {what}", definition.make, f"({', '.join(words)})", keywords=words)


def _built_in() -> dict[str, Definition]:
    quadratics = {
        "h1": "10(xᵀa)², a quadratic along one direction",
        "h2": "xᵀAᵀAx, a quadratic in all directions",
        "h3": "cos(3xᵀa), a cosine along one direction",
    }
    found = {name: Definition(name, words, SYNTHETIC, partial(synthetic, name)) for name, words in quadratics.items()}
    for each in SETS.values():
        words = f"{each.classes} classes, {each.features} features, Table 1"
        found[each.name] = Definition(each.name, words, LABELLED, partial(_from_data_set, each.name), shared=True)
    found |= {alias: found[name]._replace(summary=f"the paper's name for {name}") for alias, name in ALIASES.items()}
    for name in BUNDLED:
        words = "bundled with scikit-learn, no download"
        found[name] = Definition(name, words, LABELLED, partial(_from_data_set, name), shared=True)
    return found


PROBLEMS: Registry[Definition] = Registry("problem", Definition, _check, lambda definition: definition.make)
"""Every problem that is known by name.

Example:
    >>> "h1" in PROBLEMS
    True
"""
for _name, _definition in _built_in().items():
    PROBLEMS[_name] = _definition
_not_made_yet: set[str] = set()
"""Registered problems of which it is not known yet whether arms share a context."""
