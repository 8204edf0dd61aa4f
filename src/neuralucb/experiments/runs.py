"""Runs of an algorithm on a problem, over seeds and settings: plans made and played."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.lanes import Lanes, compile_program
from neuralucb.experiments.plans import Plan, Point, plan, plan_grid, shape_of
from neuralucb.experiments.results import Result
from neuralucb.problems import Definition, Problem
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
    """Run one algorithm on one problem, over several seeds.

    Args:
        algorithm: its name; `neuralucb list` shows them.
        problem: a name, or a problem itself, such as `labelled(X, y)`.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: how many (0, 1, …), or the seeds themselves.
        preset: a bundle of settings by name; if not set, the problem's default.
        schedule: when to learn, such as "50" or "10:500,50:2000,100"; if not set, the preset's.
        progress: called with rounds done and rounds in total, over all seeds.
        **settings: of the algorithm and of the problem, by name.

    Returns:
        Regret of every seed, with its statistics.

    Raises:
        InputError: if anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import run
        >>> result = run("neural-ucb", "h1", rounds=2000, seeds=4, step_size=0.1)
        >>> result.summary().mean
    """
    grid = {name: [value] for name, value in settings.items()}
    (result,) = run_grid(
        algorithm, problem, grid, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, progress=progress
    )
    return result


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
    """Run several algorithms on the same problem, with the same contexts and noise.

    Args:
        problem: a name, or a problem itself, such as `labelled(X, y)`.
        algorithms: their names, or a mapping from name to settings for that algorithm alone.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: how many (0, 1, …), or the seeds themselves.
        preset: a bundle of settings by name; if not set, the problem's default.
        schedule: when to learn; if not set, the preset's.
        progress: called with an algorithm's name before it runs; returns where its progress is reported, or None.
        **settings: each algorithm takes those that it has.

    Returns:
        One result per algorithm, in their order.

    Raises:
        InputError: if anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import compare
        >>> results = compare("h1", {"lin-ucb": {"exploration": 0.1}, "neural-ucb": {}}, rounds=2000, seeds=4)
    """
    planned = plan(problem, algorithms, settings, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    return play(planned, progress)


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
    """Run every combination of settings in a grid, each over all seeds.

    Combinations that differ only in numbers (exploration, step_size, …) share one compilation.

    Args:
        algorithm: its name.
        problem: a name, or a problem itself, such as `labelled(X, y)`.
        grid: values by setting, of the algorithm or of the problem.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: how many (0, 1, …), or the seeds themselves.
        preset: a bundle of settings by name; if not set, the problem's default.
        schedule: when to learn; if not set, the preset's.
        progress: called with rounds done and rounds in total, over all seeds and combinations.

    Returns:
        One result per combination, in the order of `itertools.product`.

    Raises:
        InputError: if anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import run_grid
        >>> results = run_grid("lin-ucb", "h1", {"exploration": [0.01, 0.1, 1]}, rounds=2000, seeds=4)
    """
    planned = plan_grid(algorithm, problem, grid, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    return play(planned, None if progress is None else lambda _: progress)


def play(planned: Plan, progress: Callable[[str], Progress | None] | None = None) -> list[Result]:
    """Run a plan.

    Args:
        planned: from `plan`.
        progress: called with an algorithm's name before it runs; returns where its progress is reported, or None.

    Returns:
        One result per point, in the plan's order.
    """
    results = []
    for algorithm, points in planned.points.items():
        meter = None if progress is None else progress(algorithm)
        results += _run_algorithm(algorithm, points, planned, meter)
    return results


def _run_algorithm(algorithm: str, points: Sequence[Point], planned: Plan, progress: Progress | None) -> list[Result]:
    """Points of one algorithm; those of one shape are run together."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(shape_of(find_algorithm(algorithm), point), []).append(index)
    results: dict[int, Result] = {}
    each = len(planned.seeds) * planned.rounds
    before = 0
    for members in groups.values():
        meter = None if progress is None else _offset(progress, before, len(points) * each)
        found = _run_shape(algorithm, [points[index] for index in members], planned, meter)
        results |= zip(members, found, strict=True)
        before += len(members) * each
    return [results[index] for index in range(len(points))]


def _run_shape(algorithm: str, points: Sequence[Point], planned: Plan, progress: Progress | None) -> list[Result]:
    """Points that differ in traced numbers alone, as lanes of one program."""
    recipe, seeds = find_algorithm(algorithm), planned.seeds
    traced = [setting.name for setting in recipe.settings if setting.traced]
    columns = {name: np.asarray([point.algorithm[name] for point in points], np.float64) for name in traced}
    lanes = Lanes(
        np.tile(np.asarray(seeds, np.uint32), len(points)),
        {name: np.repeat(column, len(seeds)) for name, column in columns.items()},
    )
    world = planned.problem.make(**points[0].problem)
    program = compile_program(
        recipe, world, points[0].algorithm, lanes, rounds=planned.rounds, schedule=planned.schedule
    )
    started = time.perf_counter()
    regret, diverged_at = program.run(lanes, progress)
    seconds = time.perf_counter() - started
    by_point = zip(points, np.split(regret, len(points)), np.split(diverged_at, len(points)), strict=True)
    return [
        Result(
            algorithm=algorithm,
            problem=planned.problem.name,
            rounds=planned.rounds,
            schedule=planned.schedule,
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


def _offset(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)
