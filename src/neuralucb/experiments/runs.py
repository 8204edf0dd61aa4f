"""Running: an algorithm on a problem, over seeds and settings."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.lanes import Lanes, compile_program
from neuralucb.experiments.plans import (
    Plan,
    Point,
    plan,
    read_point,
    shape_of,
)
from neuralucb.experiments.results import Result
from neuralucb.problems import Definition, Problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress

__all__ = ["compare", "play", "run", "run_grid"]


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
            raise InputError(f"grid must have a list of values for {name}, got {values!r}.")
    prepared = plan(problem, [], {}, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    combinations = itertools.product(*grid.values())
    points = [
        read_point(algorithm, prepared.problem, dict(zip(grid, values, strict=True)), preset, prepared.rounds)
        for values in combinations
    ]
    return play(prepared._replace(points={algorithm: points}), None if progress is None else lambda _: progress)


def play(prepared: Plan, progress: Callable[[str], Progress | None] | None = None) -> list[Result]:
    """The results of a plan, in its order. `progress` is asked for a meter for each algorithm."""
    results = []
    for algorithm, points in prepared.points.items():
        meter = None if progress is None else progress(algorithm)
        results += _run_algorithm(algorithm, points, prepared, meter)
    return results


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
    program = compile_program(
        recipe, world, points[0].algorithm, lanes, rounds=prepared.rounds, schedule=prepared.schedule
    )
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


def _offset(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total: progress(before + done, whole)
