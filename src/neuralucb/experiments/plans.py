"""What is to be run: points (settings, checked alone and together), seeds, rounds and a schedule."""

import itertools
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from neuralucb.algorithms import Algorithm, Task, find_algorithm
from neuralucb.experiments.presets import DATA_SETTINGS, Bundle, find_preset
from neuralucb.problems import PROBLEMS, Definition, Problem, build_problem, find_problem
from neuralucb.runtime.errors import InputError, meant
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.records import brief
from neuralucb.runtime.words import counted
from neuralucb.schedules import read_schedule
from neuralucb.settings import Setting, check_integer, read_settings

__all__ = [
    "DEFAULT_ROUNDS",
    "Plan",
    "Point",
    "find_bundle",
    "plan",
    "plan_grid",
    "plan_problems",
    "read_point",
    "shape_of",
    "with_baselines",
]

DEFAULT_ROUNDS = 10_000

LARGEST_SEED = 2**32 - 1

MOST_RUNS = 100_000

CURVE_BYTES, TRACE_BYTES = 8, 28
"""Per seed and round: cumulative regret in float64; and five columns of four bytes."""

BASELINES = ("uniform", "oracle")
"""The worst and the best that a figure should show."""


class Point(NamedTuple):
    """One combination of settings: the algorithm's and the problem's, checked and complete."""

    algorithm: dict[str, Any]
    problem: dict[str, Any]


@brief
class Plan(NamedTuple):
    """What is to be run, checked: bad input has been refused, so that `play` need not check it again.

    Example:
        >>> planned = plan("h1", ["lin-ucb"], {}, rounds=100, seeds=5)
        >>> planned.rounds, planned.seeds
        (100, (0, 1, 2, 3, 4))
    """

    problem: Definition
    points: dict[str, list[Point]]
    """by algorithm"""
    rounds: int
    seeds: tuple[int, ...]
    schedule: str
    trace: bool = False
    """whether arms, rewards, regret, propensities and losses are kept round by round"""


def plan(
    problem: str | Problem | Definition,
    algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    *,
    rounds: int | None,
    seeds: int | Sequence[int],
    preset: str | None = None,
    schedule: str | None = None,
    trace: bool = False,
) -> Plan:
    """Plan the runs that `compare` makes, without running them.

    Args:
        problem: A name, a problem such as `labelled(X, y)`, or a definition such as `from_file(…)`.
        algorithms: Their names, or a mapping from name to settings for that algorithm alone.
        settings: For every algorithm and problem that has them.
        rounds: T; None for 10 000, or for all rows of a data set that has fewer.
        seeds: How many (0, 1, …), or the seeds themselves.
        preset: A bundle of settings by name; None for the problem's default.
        schedule: When to learn; None for the preset's.
        trace: Whether to keep what happens round by round.

    Returns:
        The plan, for `play`.

    Raises:
        InputError: If anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb.experiments import plan, play, with_baselines
        >>> planned = plan("h1", ["lin-ucb", "neural-ucb"], {"dim": 4}, rounds=100, seeds=2)
        >>> results = play(with_baselines(planned))
    """
    _check_algorithms(algorithms)
    empty = _plan_nothing(problem, rounds, seeds, preset, schedule, trace)
    by_algorithm = _distribute(empty.problem, algorithms, settings)
    points = {
        name: [read_point(name, empty.problem, given, preset, empty.rounds)] for name, given in by_algorithm.items()
    }
    return empty._replace(points=points)


def plan_problems(
    problems: str | Problem | Definition | Sequence[str | Problem | Definition] | Mapping[str, Any],
    algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    **options: Any,
) -> list[Plan]:
    """Plan the same algorithms on one problem or several; each takes the settings that it or an algorithm has."""
    _check_algorithms(algorithms)
    found = _name_problems(problems)
    known = [name for definition in found for name in _known_settings(definition, algorithms)]
    _check_known(settings, list(dict.fromkeys(known)))
    plans = []
    for definition in found:
        mine = _known_settings(definition, algorithms)
        plans.append(plan(definition, algorithms, {k: v for k, v in settings.items() if k in mine}, **options))
    return plans


def plan_grid(
    algorithm: str,
    problem: str | Problem | Definition,
    grid: Mapping[str, Sequence[Any]],
    *,
    rounds: int | None,
    seeds: int | Sequence[int],
    preset: str | None = None,
    schedule: str | None = None,
    trace: bool = False,
) -> Plan:
    """Plan the runs that `run_grid` makes: one point per combination of the grid's values.

    Args:
        algorithm: Its name.
        problem: As for `plan`.
        grid: Values by setting, of the algorithm or of the problem.
        rounds: As for `plan`.
        seeds: As for `plan`.
        preset: As for `plan`.
        schedule: As for `plan`.
        trace: As for `plan`.

    Returns:
        The plan, for `play`; its points are in the order of `itertools.product`.

    Raises:
        InputError: If anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb.experiments import plan_grid
        >>> planned = plan_grid("lin-ucb", "h1", {"exploration": [0.1, 1]}, rounds=100, seeds=5)
        >>> len(planned.points["lin-ucb"])
        2
    """
    for name, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
            raise InputError(f"grid must have a list of values for {name}, got {values!r}.")
    empty = _plan_nothing(problem, rounds, seeds, preset, schedule, trace)
    points = [
        read_point(algorithm, empty.problem, dict(zip(grid, values, strict=True)), preset, empty.rounds)
        for values in itertools.product(*grid.values())
    ]
    return empty._replace(points={algorithm: points})


def with_baselines(planned: Plan) -> Plan:
    """Add uniform and oracle to a plan: the worst and the best that a figure should show.

    Args:
        planned: From `plan` or `plan_grid`.

    Returns:
        The same plan with two more algorithms, on the problem of its first point.

    Example:
        >>> from neuralucb.experiments import plan, with_baselines
        >>> list(with_baselines(plan("h1", ["lin-ucb"], {}, rounds=100, seeds=5)).points)
        ['lin-ucb', 'uniform', 'oracle']
    """
    (first, *_), *_ = planned.points.values()
    return planned._replace(points={**planned.points, **{name: [Point({}, first.problem)] for name in BASELINES}})


def read_point(
    algorithm: str, definition: Definition, given: Mapping[str, Any], preset: str | None, rounds: int
) -> Point:
    """The given settings over the preset's over the defaults, sorted by owner and checked, alone and together."""
    recipe, problem = find_algorithm(algorithm), definition.name
    of_problem = {setting.name for setting in definition.settings}
    of_algorithm = {setting.name for setting in recipe.settings}
    unknown = sorted(set(given) - of_problem - of_algorithm)
    if unknown:
        raise InputError(
            f"{', '.join(unknown)}: not a setting of {algorithm} ({_names(recipe.settings)}) "
            f"nor of {problem} ({_names(definition.settings) or 'it has none'})."
            + meant(unknown[0], of_problem | of_algorithm)
        )
    bundled = find_bundle(definition, preset).settings_for(algorithm, trains="steps" in of_algorithm)
    if definition.built and bundled.get("input_scaling") == "standard":
        del bundled["input_scaling"]  # how contexts of the paper's presets are usually made; not a condition
    ignored = sorted(DATA_SETTINGS & set(bundled)) if definition.built else []
    if ignored:
        words = ", ".join(f"{name}={bundled[name]!r}" for name in ignored)
        raise InputError(
            f"the preset sets {words}, which a problem that is already built cannot take; build it that way yourself."
        )
    chosen = {**bundled, **given}
    world = read_settings(definition.settings, {k: v for k, v in chosen.items() if k in of_problem}, of=problem)
    settings = read_settings(recipe.settings, {k: v for k, v in chosen.items() if k in of_algorithm}, of=algorithm)
    made = definition.make(**world)
    if made.limit is not None and rounds > made.limit:
        raise InputError(
            f"rounds must be at most {made.limit}, the rows of {problem}, got {rounds}; "
            "play fewer, or start over after the last row: --repeat, in Python repeat=True, in a sweep's file "
            "settings = { repeat = true }."
        )
    recipe.check(Task(made.dim, rounds, made.shared_by), settings)
    return Point(settings, world)


def find_bundle(problem: Definition, preset: str | None) -> Bundle:
    """Schedule and settings of a preset for a problem; for None the paper's on h1, h2 and h3, elsewhere the default."""
    # by how it is made: it may have been given another name, and a user's problem named h1 is not the paper's
    synthetic = any(PROBLEMS[name].make is problem.make for name in ("h1", "h2", "h3") if name in PROBLEMS)
    return find_preset(preset, synthetic=synthetic).bundle(shared=problem.shared)


def shape_of(recipe: Algorithm, point: Point) -> tuple[Any, ...]:
    """What must be equal for two points to share a compiled program."""
    traced = {setting.name for setting in recipe.settings if setting.traced}
    return (tuple(item for item in point.algorithm.items() if item[0] not in traced), tuple(point.problem.items()))


def _plan_nothing(
    problem: str | Problem | Definition,
    rounds: int | None,
    seeds: int | Sequence[int],
    preset: str | None,
    schedule: str | None,
    trace: bool,
) -> Plan:
    """A plan without points: the problem found, and rounds, seeds and schedule checked."""
    definition = find_problem(problem)
    bundle = find_bundle(definition, preset)
    when = str(schedule or bundle.schedule)
    read_schedule(when)
    count = _default_rounds(definition, bundle) if rounds is None else check_integer("rounds", rounds, 1)
    chosen = _read_seeds(seeds)
    size = f"{counted(len(chosen), 'seed')} over {counted(count, 'round')}"
    require_memory(
        (TRACE_BYTES if trace else CURVE_BYTES) * count * len(chosen),
        what=f"the {'trace' if trace else 'regret'} of {size}",
        cure="take fewer of either" + (", or no trace" if trace else ""),
    )
    return Plan(definition, {}, count, chosen, when, bool(trace))


def _distribute(
    problem: Definition, algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Settings by algorithm: those given for it alone, and of the common ones those that it or the problem has."""
    separate = algorithms if isinstance(algorithms, Mapping) else {name: {} for name in algorithms}
    _check_known(settings, _known_settings(problem, algorithms))
    has = {name: _known_settings(problem, [name]) for name in separate}
    return {
        name: {key: value for key, value in settings.items() if key in has[name]} | dict(given)
        for name, given in separate.items()
    }


def _known_settings(problem: Definition, algorithms: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Names of settings that the problem or an algorithm has, each once."""
    owned = [setting.name for setting in problem.settings]
    return list(dict.fromkeys([*owned, *(one.name for name in algorithms for one in find_algorithm(name).settings)]))


def _check_known(settings: Mapping[str, Any], known: Sequence[str]) -> None:
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"{name} (given as {value!r}) is not a setting of any of these; they have: {', '.join(known)}."
                + meant(name, known)
            )


def _check_algorithms(algorithms: Any) -> None:
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence | Mapping) or not algorithms:
        raise InputError(f"algorithms must be a list of names, got {algorithms!r}.")
    for name in algorithms:
        if isinstance(algorithms, Mapping) and not isinstance(algorithms[name], Mapping):
            raise InputError(f"algorithms must map {name!r} to its settings by name, got {algorithms[name]!r}.")
        if not isinstance(algorithms, Mapping) and algorithms.count(name) > 1:
            raise InputError(f"algorithms must differ, got {name!r} more than once; run_grid varies its settings.")


def _name_problems(problems: Any) -> list[Definition]:
    """One problem or several as definitions; in a mapping they get its names."""
    if isinstance(problems, str | Problem | Definition) or not isinstance(problems, Sequence | Mapping):
        return [find_problem(problems)]
    if not problems:
        raise InputError(f"problem must be a problem or a list of at least one, got {problems!r}.")
    found = [find_problem(each) for each in (problems.values() if isinstance(problems, Mapping) else problems)]
    if isinstance(problems, Mapping):
        # a definition that keeps its name keeps its presets, too
        found = [
            each if each.name == name else each._replace(name=str(name))
            for name, each in zip(problems, found, strict=True)
        ]
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"problems must have different names, got {', '.join(twice)} more than once; name them: "
            "{'first': …, 'second': …}."
        )
    return found


def _default_rounds(problem: Definition, bundle: Bundle) -> int:
    """DEFAULT_ROUNDS, or the rows of a data set if they are fewer."""
    names = {setting.name for setting in problem.settings}
    if not (problem.built or "repeat" in names):  # it has no rows that could be fewer
        return DEFAULT_ROUNDS
    of_problem = names & set(bundle.settings)
    made = build_problem(problem, {name: bundle.settings[name] for name in of_problem})  # as played: built only once
    return min(DEFAULT_ROUNDS, made.limit or DEFAULT_ROUNDS)


def _read_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if not isinstance(seeds, Sequence | np.ndarray) or isinstance(seeds, str):
        count = check_integer("seeds", seeds, 1)
        if count > MOST_RUNS:
            raise InputError(f"seeds must be at most {MOST_RUNS}, got {seeds}; split the work into several runs.")
        return tuple(range(count))
    if not len(seeds) or not all(isinstance(seed, Integral) and 0 <= seed <= LARGEST_SEED for seed in seeds):
        raise InputError(f"seeds must be a number of runs, or whole numbers from 0 to {LARGEST_SEED}, got {seeds!r}.")
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must differ, got {seeds!r}; a seed counted twice makes the interval too narrow.")
    return tuple(int(seed) for seed in seeds)


def _names(settings: Sequence[Setting]) -> str:
    return ", ".join(setting.name for setting in settings)
