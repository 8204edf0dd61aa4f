"""Running: an algorithm on a problem, over seeds and settings."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.points import Point, find_bundle, read_point, shape_of
from neuralucb.experiments.program import Lanes, Program, Progress
from neuralucb.experiments.results import Result
from neuralucb.memory import require_memory
from neuralucb.presets import Bundle
from neuralucb.problems import Definition, Problem, build_problem, find_problem
from neuralucb.schedules import read_schedule
from neuralucb.settings import whole

__all__ = ["Plan", "compare", "plan", "play", "run", "run_grid", "with_scale"]

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


def run(
    algorithm: str,
    problem: str | Problem | Definition,
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """One algorithm on one problem: `run("neural-ucb", "h1", rounds=2000, seeds=4, step_size=0.1)`.

    problem  a name, or a problem itself, such as `labelled(X, y)`.
    rounds   10 000 if not given, or all rows of a data set that has fewer.

    Settings of the algorithm and of the problem go by name; seeds are a number (0, 1, …) or the seeds themselves.
    """
    grid = {name: [value] for name, value in settings.items()}
    return run_grid(
        algorithm, problem, grid, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, progress=progress
    )[0]


def compare(
    problem: str | Problem | Definition,
    algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    progress: Callable[[str], Progress | None] | None = None,
    **settings: Any,
) -> list[Result]:
    """Several algorithms on the same problems, contexts and noise; each takes those settings that it has.

    algorithms  their names, or a mapping from name to settings of its own.
    """
    prepared = plan(problem, algorithms, settings, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    return play(prepared, progress)


def run_grid(
    algorithm: str,
    problem: str | Problem | Definition,
    grid: Mapping[str, Sequence[Any]],
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Every combination of the grid's values, each over all seeds, in the order of `itertools.product`.

    Combinations that differ only in numbers (exploration, step_size, …) share one compilation.
    """
    for name, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
            raise ValueError(f"grid must have a list of values for {name}, got {values!r}.")
    prepared = plan(problem, [], {}, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    combinations = itertools.product(*grid.values())
    points = [
        read_point(algorithm, prepared.problem, dict(zip(grid, values, strict=True)), preset, prepared.rounds)
        for values in combinations
    ]
    return play(prepared._replace(points={algorithm: points}), None if progress is None else lambda _: progress)


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
        raise ValueError(f"algorithms must be a list of names, got {algorithms!r}.")
    definition = find_problem(problem)
    bundle = find_bundle(definition, preset)
    when = str(schedule or bundle.schedule)
    read_schedule(when)
    count = _usual_rounds(definition, bundle) if rounds is None else whole("rounds", rounds, 1)
    shares = _share_settings(definition, algorithms, settings)
    points = {name: [read_point(name, definition, own, preset, count)] for name, own in shares.items()}
    chosen = _read_seeds(seeds)
    require_memory(
        8 * count * len(chosen),
        what=f"the regret of {len(chosen)} seeds over {count} rounds",
        cure="take fewer of either",
    )
    return Plan(definition, points, count, chosen, when)


def play(prepared: Plan, progress: Callable[[str], Progress | None] | None = None) -> list[Result]:
    """The results of a plan, in its order. `progress` is asked for a meter for each algorithm."""
    results = []
    for algorithm, points in prepared.points.items():
        meter = None if progress is None else progress(algorithm)
        results += _run_algorithm(algorithm, points, prepared, meter)
    return results


def with_scale(prepared: Plan) -> Plan:
    """The same plan with uniform and oracle beside it, for scale."""
    (first, *_), *_ = prepared.points.values()
    return prepared._replace(points={**prepared.points, **{name: [Point({}, first.problem)] for name in SCALE}})


def _run_algorithm(algorithm: str, points: Sequence[Point], prepared: Plan, progress: Progress | None) -> list[Result]:
    """Points of one algorithm, those of one shape together."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(shape_of(find_algorithm(algorithm), point), []).append(index)
    results: dict[int, Result] = {}
    each = len(prepared.seeds) * prepared.rounds
    before = 0
    for members in groups.values():
        meter = None if progress is None else _offset(progress, before, len(points) * each)
        results |= zip(
            members, _run_shape(algorithm, [points[index] for index in members], prepared, meter), strict=True
        )
        before += len(members) * each
    return [results[index] for index in range(len(points))]


def _run_shape(algorithm: str, points: Sequence[Point], prepared: Plan, progress: Progress | None) -> list[Result]:
    """Points that differ in traced numbers alone, as lanes of one program."""
    recipe, seeds = find_algorithm(algorithm), prepared.seeds
    traced = [setting.name for setting in recipe.settings if setting.traced]
    columns = {name: np.asarray([point.algorithm[name] for point in points], np.float64) for name in traced}
    lanes = Lanes(
        np.tile(np.asarray(seeds, np.uint32), len(points)),
        {name: np.repeat(column, len(seeds)) for name, column in columns.items()},
    )
    world = prepared.problem.make(**points[0].problem)
    program = Program(recipe, world, points[0].algorithm, prepared.rounds, prepared.schedule, lanes)
    started = time.perf_counter()
    regret, diverged_at = program.run(lanes, progress)
    seconds = time.perf_counter() - started
    by_point = zip(points, np.split(regret, len(points)), np.split(diverged_at, len(points)), strict=True)
    return [
        Result(
            algorithm=algorithm,
            problem=prepared.problem.name,
            rounds=prepared.rounds,
            schedule=prepared.schedule,
            settings={**point.algorithm, **point.problem},
            seeds=seeds,
            regret=curves,
            diverged_at=at,
            compile_seconds=program.compile_seconds,
            seconds=seconds,
            device=jax.devices()[0].device_kind,
        )
        for point, curves, at in by_point
    ]


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
            raise ValueError(
                f"{name} (given as {value!r}) is not a setting of any of these; they have: {', '.join(known)}."
            )
    return {
        name: {key: value for key, value in settings.items() if key in owned[name]} | dict(mine)
        for name, mine in own.items()
    }


def _offset(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total: progress(before + done, whole)


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
        count = whole("seeds", seeds, 1)
        if count > MOST_RUNS:
            raise ValueError(f"seeds must be at most {MOST_RUNS}, got {seeds}; split the work into several runs.")
        return tuple(range(count))
    if not len(seeds) or not all(isinstance(seed, Integral) and 0 <= seed <= LARGEST_SEED for seed in seeds):
        raise ValueError(f"seeds must be a number of runs, or whole numbers from 0 to {LARGEST_SEED}, got {seeds!r}.")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds must differ, got {seeds!r}; a seed counted twice makes the interval too narrow.")
    return tuple(int(seed) for seed in seeds)
