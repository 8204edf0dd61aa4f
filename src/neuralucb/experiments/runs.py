"""Runs of an algorithm on a problem, over seeds and settings: plans made and played."""

import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias

import jax
import numpy as np

from neuralucb.algorithms import ALGORITHMS, find_algorithm
from neuralucb.experiments.comparisons import SCALE, Comparison
from neuralucb.experiments.lanes import Lanes, Program, compile_program
from neuralucb.experiments.plans import Plan, Point, plan, plan_grid, plan_problems, shape_of
from neuralucb.experiments.results import Result, Traces
from neuralucb.problems import Definition, Problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Meter, Progress, Told, as_meter
from neuralucb.runtime.threads import in_order
from neuralucb.simulation import Trace

__all__ = ["compare", "play", "run", "run_grid"]

OneProblem: TypeAlias = str | Problem | Definition


def run(
    algorithm: str,
    problem: OneProblem,
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    trace: bool = False,
    progress: bool | Told | None = None,
    **settings: Any,
) -> Result:
    """Run one algorithm on one problem, over several seeds.

    Args:
        algorithm: Its name; `neuralucb list` shows them.
        problem: A name, or a problem itself, such as `labelled(X, y)`.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: How many (0, 1, …), or the seeds themselves.
        preset: A bundle of settings by name; if not set, the problem's default.
        schedule: When to learn, such as "50" or "10:500,50:2000,100"; if not set, the preset's.
        trace: Whether to keep arms, rewards, regret, propensities and losses, round by round, as `result.trace`.
        progress: True for a line on stderr, or a function of the stage ("neural-ucb on h1"), rounds done and
            rounds in total, over all seeds.
        **settings: Of the algorithm and of the problem, by name.

    Returns:
        Regret of every seed, with its statistics.

    Raises:
        InputError: If anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import run
        >>> result = run("lin-ucb", "h1", rounds=100, seeds=5, exploration=0.1)
        >>> result.regret.shape
        (5, 100)
    """
    grid = {name: [value] for name, value in settings.items()}
    (result,) = run_grid(
        algorithm, problem, grid,
        rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, trace=trace, progress=progress,
    )  # fmt: skip
    return result


def compare(
    algorithms: Sequence[str] | Mapping[str, Mapping[str, Any]],
    problem: OneProblem | Sequence[OneProblem] | Mapping[str, OneProblem],
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    trace: bool = False,
    progress: bool | Told | None = None,
    **settings: Any,
) -> Comparison:
    """Run several algorithms on the same problem or problems, with the same contexts and noise.

    Args:
        algorithms: Their names, or a mapping from name to settings for that algorithm alone.
        problem: A name, or a problem itself, such as `labelled(X, y)`; or several of them, in a list, or in a mapping
            from the name that each is to have.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: How many (0, 1, …), or the seeds themselves.
        preset: A bundle of settings by name; if not set, the problem's default.
        schedule: When to learn; if not set, the preset's.
        trace: Whether to keep arms, rewards, regret, propensities and losses, round by round.
        progress: True for a line on stderr, or a function of the stage ("lin-ucb on h1"), rounds done and
            rounds in total, over all seeds of that stage.
        **settings: Each algorithm and problem takes those that it has.

    Returns:
        One result per algorithm and problem, with paired differences, a ranking and, over several problems, aggregates,
        for which `uniform` is played along.

    Raises:
        InputError: If anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import compare
        >>> comparison = compare({"lin-ucb": {"exploration": 0.1}, "glm-ucb": {}}, "h1", rounds=100, seeds=5)
        >>> comparison.algorithms
        ('lin-ucb', 'glm-ucb')
    """
    if _are_swapped(algorithms, problem):
        warnings.warn(
            "compare(problem, algorithms) is deprecated and will be refused by the next release: write "
            "compare(algorithms, problem), in the order of run.",
            DeprecationWarning,
            stacklevel=2,
        )
        algorithms, problem = problem, algorithms  # type: ignore[assignment]
    plans = plan_problems(
        problem, algorithms, settings, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, trace=trace
    )
    played = list(plans[0].points)
    if len(plans) > 1 and SCALE not in played:
        plans = [_with_scale(planned) for planned in plans]
    results = [result for planned in plans for result in play(planned, _named_stages(progress, planned))]
    compared, scale = ([one for one in results if (one.algorithm in played) is wanted] for wanted in (True, False))
    return Comparison(tuple(compared), tuple(scale))


def run_grid(
    algorithm: str,
    problem: OneProblem,
    grid: Mapping[str, Sequence[Any]],
    *,
    rounds: int | None = None,
    seeds: int | Sequence[int] = 10,
    preset: str | None = None,
    schedule: str | None = None,
    trace: bool = False,
    progress: bool | Told | None = None,
) -> list[Result]:
    """Run every combination of settings in a grid, each over all seeds.

    Combinations that differ only in numbers (exploration, step_size, …) share one compilation.

    Args:
        algorithm: Its name.
        problem: A name, or a problem itself, such as `labelled(X, y)`.
        grid: Values by setting, of the algorithm or of the problem.
        rounds: T; if not set, 10 000, or all rows of a data set that has fewer.
        seeds: How many (0, 1, …), or the seeds themselves.
        preset: A bundle of settings by name; if not set, the problem's default.
        schedule: When to learn; if not set, the preset's.
        trace: Whether to keep arms, rewards, regret, propensities and losses, round by round.
        progress: True for a line on stderr, or a function of the stage ("lin-ucb on h1"), rounds done and
            rounds in total, over all seeds and combinations.

    Returns:
        One result per combination, in the order of `itertools.product`.

    Raises:
        InputError: If anything given cannot be run; the message names it, and the cure.

    Example:
        >>> from neuralucb import run_grid
        >>> results = run_grid("lin-ucb", "h1", {"exploration": [0.01, 0.1, 1]}, rounds=100, seeds=5)
    """
    planned = plan_grid(
        algorithm, problem, grid, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, trace=trace
    )
    return play(planned, _named_stages(progress, planned))


def play(planned: Plan, progress: Meter | None = None) -> list[Result]:
    """Run a plan.

    Args:
        planned: From `plan` or `plan_grid`.
        progress: Called with an algorithm's name before it runs; returns where its progress is reported, or None.

    Returns:
        One result per point, in the plan's order.

    Raises:
        InputError: If memory does not hold a single run.

    Example:
        >>> from neuralucb.experiments import plan, play
        >>> (result,) = play(plan("h1", ["lin-ucb"], {}, rounds=100, seeds=5))
    """
    groups = {algorithm: _by_shape(algorithm, points) for algorithm, points in planned.points.items()}
    shapes = [(algorithm, group) for algorithm, found in groups.items() for group in found]
    programs = _compiled([
        partial(_compile, algorithm, [planned.points[algorithm][index] for index in group], planned)
        for algorithm, group in shapes
    ])  # fmt: skip
    results = []
    with closing(programs):
        for algorithm, points in planned.points.items():
            meter = None if progress is None else progress(algorithm)
            results += _run_algorithm(algorithm, points, groups[algorithm], programs, planned, meter)
    return results


def _are_swapped(algorithms: Any, problem: Any) -> bool:
    """Whether a problem stands where the algorithms should: the order of version 0.1."""
    if isinstance(algorithms, Problem | Definition):
        return True
    return isinstance(algorithms, str) and algorithms not in ALGORITHMS and not isinstance(problem, str)


def _with_scale(planned: Plan) -> Plan:
    """The plan with `uniform`, on the same problem with the same settings."""
    scale = plan(
        planned.problem, [SCALE], next(iter(planned.points.values()))[0].problem,
        rounds=planned.rounds, seeds=planned.seeds, schedule=planned.schedule,
    )  # fmt: skip
    return planned._replace(points={**planned.points, **scale.points})


def _named_stages(progress: bool | Told | None, planned: Plan) -> Meter | None:
    """A meter that names both the algorithm and the problem."""
    meter = as_meter(progress)
    return None if meter is None else lambda algorithm: meter(f"{algorithm} on {planned.problem.name}")


def _by_shape(algorithm: str, points: Sequence[Point]) -> list[list[int]]:
    """Numbers of the points that are run together, as they differ in traced numbers alone."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(shape_of(find_algorithm(algorithm), point), []).append(index)
    return list(groups.values())


def _run_algorithm(
    algorithm: str,
    points: Sequence[Point],
    groups: Sequence[Sequence[int]],
    programs: Iterator[Program],
    planned: Plan,
    progress: Progress | None,
) -> list[Result]:
    """Points of one algorithm; those of one shape are run together, by the next of the programs."""
    results: dict[int, Result] = {}
    each = len(planned.seeds) * planned.rounds
    before = 0
    for members in groups:
        meter = None if progress is None else _offset(progress, before, len(points) * each)
        found = _run_shape(algorithm, [points[index] for index in members], next(programs), planned, meter)
        results |= zip(members, found, strict=True)
        before += len(members) * each
    return [results[index] for index in range(len(points))]


def _lanes(algorithm: str, points: Sequence[Point], planned: Plan) -> Lanes:
    """Points × seeds."""
    seeds = planned.seeds
    traced = [setting.name for setting in find_algorithm(algorithm).settings if setting.traced]
    columns = {name: np.asarray([point.algorithm[name] for point in points], np.float64) for name in traced}
    return Lanes(
        np.tile(np.asarray(seeds, np.uint32), len(points)),
        {name: np.repeat(column, len(seeds)) for name, column in columns.items()},
    )


def _compiled(works: Sequence[Callable[[], Program]]) -> Generator[Program, None, None]:
    """The programs, in order. One that memory refused beside those before it is compiled once these have ended."""
    with closing(in_order([partial(_unless_refused, work) for work in works])) as found:
        for work, program in zip(works, found, strict=True):
            yield work() if program is None else program


def _unless_refused(compile_it: Callable[[], Program]) -> Program | None:
    try:
        return compile_it()
    except InputError:
        return None


def _compile(algorithm: str, points: Sequence[Point], planned: Plan) -> Program:
    return compile_program(
        find_algorithm(algorithm),
        planned.problem.make(**points[0].problem),
        points[0].algorithm,
        _lanes(algorithm, points, planned),
        rounds=planned.rounds,
        schedule=planned.schedule,
        detailed=planned.trace,
    )


def _run_shape(
    algorithm: str, points: Sequence[Point], program: Program, planned: Plan, progress: Progress | None
) -> list[Result]:
    """Points that differ in traced numbers alone, as lanes of one program."""
    lanes, seeds = _lanes(algorithm, points, planned), planned.seeds
    started = time.perf_counter()
    found = program.run(lanes, progress)
    seconds = time.perf_counter() - started
    traces = [None] * len(points) if found.trace is None else _split(found.trace, len(points))
    curves, diverged_at = np.split(found.regret, len(points)), np.split(found.diverged_at, len(points))
    return [
        Result(
            algorithm=algorithm,
            problem=planned.problem.name,
            rounds=planned.rounds,
            schedule=planned.schedule,
            settings={**point.algorithm, **point.problem},
            seeds=seeds,
            regret=regret,
            diverged_at=at,
            compile_seconds=program.compile_seconds,
            seconds=seconds,
            device=jax.devices()[0].device_kind,
            trace=trace,
        )
        for point, regret, at, trace in zip(points, curves, diverged_at, traces, strict=True)
    ]


def _split(trace: Trace, points: int) -> list[Traces | None]:
    """The traces of each point; lanes are points × seeds."""
    assert trace.detail is not None
    reward, propensity, loss = trace.detail
    columns = (np.split(np.asarray(each), points) for each in (trace.arm, reward, trace.regret, propensity, loss))
    return [Traces(*parts) for parts in zip(*columns, strict=True)]


def _offset(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)
