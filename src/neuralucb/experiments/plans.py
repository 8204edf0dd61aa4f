"""Points: one combination of settings, the preset's and the defaults beside it, checked alone and together."""

import itertools
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from neuralucb.algorithms import Algorithm, Task, find_algorithm
from neuralucb.experiments.presets import OF_DATA, Bundle, find_preset
from neuralucb.problems import PROBLEMS, Definition, Problem, build_problem, find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.schedules import read_schedule
from neuralucb.settings import check_integer, read_settings

__all__ = ["Plan", "Point", "find_bundle", "plan", "read_point", "shape_of", "with_scale"]


class Point(NamedTuple):
    """One combination of settings: the algorithm's and the problem's, checked and complete."""

    algorithm: dict[str, Any]
    problem: dict[str, Any]


def read_point(
    algorithm: str, definition: Definition, given: Mapping[str, Any], preset: str | None, rounds: int
) -> Point:
    """The given settings, the preset's, the defaults: sorted by owner and checked, also together."""
    recipe, problem = find_algorithm(algorithm), definition.name
    of_problem = {setting.name for setting in definition.settings}
    of_algorithm = {setting.name for setting in recipe.settings}
    unknown = sorted(set(given) - of_problem - of_algorithm)
    if unknown:
        raise InputError(
            f"{', '.join(unknown)}: not a setting of {algorithm} ({_names(recipe.settings)}) "
            f"nor of {problem} ({_names(definition.settings)})."
        )
    usual = find_bundle(definition, preset).settings_for(trains="steps" in of_algorithm)
    lost = sorted(OF_DATA & set(usual)) if definition.given else []
    if lost:
        words = ", ".join(f"{name}={usual[name]!r}" for name in lost)
        raise InputError(
            f"the preset needs {words}, which a problem given ready made cannot take; make it so yourself."
        )
    chosen = {**usual, **given}
    world = read_settings(definition.settings, {k: v for k, v in chosen.items() if k in of_problem}, of=problem)
    settings = read_settings(recipe.settings, {k: v for k, v in chosen.items() if k in of_algorithm}, of=algorithm)
    made = definition.make(**world)
    if made.limit is not None and rounds > made.limit:
        raise InputError(
            f"rounds must be at most {made.limit}, the rows of {problem}, got {rounds}; "
            "play fewer, or begin again after the last row: --repeat, in Python repeat=True, in a sweep's file "
            "settings = { repeat = true }."
        )
    recipe.check(Task(made.dim, rounds, made.shared_by), settings)
    return Point(settings, world)


def find_bundle(problem: Definition, preset: str | None) -> Bundle:
    """Schedule and settings of a preset for a problem; a file that happens to be called magic is not magic."""
    known = any(problem is each for each in PROBLEMS.values())
    return find_preset(preset, shared=problem.shared).bundle(problem.name if known else None, shared=problem.shared)


def shape_of(recipe: Algorithm, point: Point) -> tuple[Any, ...]:
    """What must be equal for two points to share a compiled program."""
    traced = {setting.name for setting in recipe.settings if setting.traced}
    return (tuple(item for item in point.algorithm.items() if item[0] not in traced), tuple(point.problem.items()))


def _names(settings: Sequence[Any]) -> str:
    return ", ".join(setting.name for setting in settings)


LARGEST_SEED = 2**32 - 1


SCALE = ("uniform", "oracle")


MOST_RUNS = 100_000


USUAL_ROUNDS = 10_000


class Plan(NamedTuple):
    """What is to be run, checked: nothing in it can fail for bad input any more."""

    problem: Definition
    points: dict[str, list[Point]]
    """by algorithm"""
    rounds: int
    seeds: tuple[int, ...]
    schedule: str


def plan(
    problem: str | Problem | Definition,
    algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    *,
    rounds: int | None,
    seeds: int | Sequence[int],
    preset: str | None = None,
    schedule: str | None = None,
) -> Plan:
    """The runs that `compare` would make, all bad input refused; `play` makes them."""
    if isinstance(algorithms, str):
        raise InputError(f"algorithms must be a list of names, got {algorithms!r}.")
    definition = find_problem(problem)
    bundle = find_bundle(definition, preset)
    when = str(schedule or bundle.schedule)
    read_schedule(when)
    count = _usual_rounds(definition, bundle) if rounds is None else check_integer("rounds", rounds, 1)
    shares = _share_settings(definition, algorithms, settings)
    points = {name: [read_point(name, definition, own, preset, count)] for name, own in shares.items()}
    chosen = _read_seeds(seeds)
    require_memory(
        8 * count * len(chosen),
        what=f"the regret of {len(chosen)} seeds over {count} rounds",
        cure="take fewer of either",
    )
    return Plan(definition, points, count, chosen, when)


def with_scale(prepared: Plan) -> Plan:
    """The same plan with uniform and oracle beside it, for scale."""
    (first, *_), *_ = prepared.points.values()
    return prepared._replace(points={**prepared.points, **{name: [Point({}, first.problem)] for name in SCALE}})


def _share_settings(
    problem: Definition, algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """For each algorithm its own settings and those of the shared ones that it or the problem has."""
    own = algorithms if isinstance(algorithms, Mapping) else {name: {} for name in algorithms}
    of_problem = [setting.name for setting in problem.settings]
    owned = {name: [*of_problem, *(setting.name for setting in find_algorithm(name).settings)] for name in own}
    known = list(dict.fromkeys(itertools.chain(of_problem, *owned.values())))
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"{name} (given as {value!r}) is not a setting of any of these; they have: {', '.join(known)}."
            )
    return {
        name: {key: value for key, value in settings.items() if key in owned[name]} | dict(mine)
        for name, mine in own.items()
    }


def _usual_rounds(problem: Definition, bundle: Bundle) -> int:
    """USUAL_ROUNDS, or the rows of a data set if they are fewer; made as it will be played, so that it is made once."""
    if not problem.shared:
        return USUAL_ROUNDS
    own = {setting.name for setting in problem.settings} & set(bundle.settings)
    return min(
        USUAL_ROUNDS, build_problem(problem, {name: bundle.settings[name] for name in own}).limit or USUAL_ROUNDS
    )


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
