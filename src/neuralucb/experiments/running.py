"""Running: an algorithm on a problem, over seeds and settings."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.algorithms import Algorithm, find_algorithm
from neuralucb.experiments.program import Lanes, Program, Progress
from neuralucb.experiments.results import Result
from neuralucb.presets import find_preset
from neuralucb.problems import find_problem
from neuralucb.schedules import read_schedule
from neuralucb.settings import read_settings

__all__ = ["compare", "run", "run_grid"]


class _Point(NamedTuple):
    """One combination of settings: the algorithm's and the problem's."""

    algorithm: dict[str, Any]
    problem: dict[str, Any]


def run(
    algorithm: str,
    problem: str,
    *,
    rounds: int = 10_000,
    seeds: int | Sequence[int] = 10,
    preset: str = "paper",
    schedule: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """One algorithm on one problem: `run("neural-ucb", "h1", rounds=2000, seeds=4, step_size=0.1)`.

    Settings of the algorithm and of the problem go by name; seeds are a number (0, 1, …) or the seeds themselves.
    """
    grid = {name: [value] for name, value in settings.items()}
    return run_grid(
        algorithm, problem, grid, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, progress=progress
    )[0]


def compare(
    problem: str,
    algorithms: Sequence[str],
    *,
    rounds: int = 10_000,
    seeds: int | Sequence[int] = 10,
    preset: str = "paper",
    schedule: str | None = None,
    progress: Callable[[str], Progress | None] | None = None,
    **settings: Any,
) -> list[Result]:
    """Several algorithms on the same problems, contexts and noise; each takes those settings that it has."""
    shares = _share_settings(problem, algorithms, settings)
    for name, own in shares.items():  # all mistakes before any computing
        _read_point(name, problem, own, preset)
    return [
        run(
            name,
            problem,
            rounds=rounds,
            seeds=seeds,
            preset=preset,
            schedule=schedule,
            progress=None if progress is None else progress(name),
            **own,
        )
        for name, own in shares.items()
    ]


def run_grid(
    algorithm: str,
    problem: str,
    grid: Mapping[str, Sequence[Any]],
    *,
    rounds: int = 10_000,
    seeds: int | Sequence[int] = 10,
    preset: str = "paper",
    schedule: str | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Every combination of the grid's values, each over all seeds, in the order of `itertools.product`.

    Combinations that differ only in numbers (exploration, step_size, …) share one compilation.
    """
    chosen = _read_seeds(seeds)
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}.")
    when = schedule or find_preset(preset).schedule
    read_schedule(when)
    combinations = itertools.product(*grid.values())
    points = [_read_point(algorithm, problem, dict(zip(grid, values, strict=True)), preset) for values in combinations]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, point in enumerate(points):
        groups.setdefault(_shape(find_algorithm(algorithm), point), []).append(index)
    results: dict[int, Result] = {}
    whole, before = len(points) * len(chosen) * rounds, 0
    for members in groups.values():
        meter = None if progress is None else _offset(progress, before, whole)
        shared = [points[index] for index in members]
        results |= zip(members, _run_points(algorithm, problem, shared, rounds, chosen, when, meter), strict=True)
        before += len(members) * len(chosen) * rounds
    return [results[index] for index in range(len(points))]


def _run_points(
    algorithm: str,
    problem: str,
    points: Sequence[_Point],
    rounds: int,
    seeds: tuple[int, ...],
    when: str,
    progress: Progress | None,
) -> list[Result]:
    """Points that differ in traced numbers alone, as lanes of one program."""
    recipe = find_algorithm(algorithm)
    traced = [setting.name for setting in recipe.settings if setting.traced]
    columns = {name: np.asarray([point.algorithm[name] for point in points], np.float32) for name in traced}
    lanes = Lanes(
        np.tile(np.asarray(seeds, np.uint32), len(points)),
        {name: np.repeat(column, len(seeds)) for name, column in columns.items()},
    )
    world = find_problem(problem).make(**points[0].problem)
    program = Program(recipe, world, points[0].algorithm, rounds, when, lanes)
    started = time.perf_counter()
    regret, diverged_at = program.run(lanes, progress)
    seconds = time.perf_counter() - started
    return [
        Result(
            algorithm,
            problem,
            rounds,
            when,
            {**point.algorithm, **point.problem},
            seeds,
            curves,
            at,
            program.compile_seconds,
            seconds,
        )
        for point, curves, at in zip(
            points, np.split(regret, len(points)), np.split(diverged_at, len(points)), strict=True
        )
    ]


def _read_point(algorithm: str, problem: str, given: Mapping[str, Any], preset: str) -> _Point:
    """The given settings, the preset's, the defaults: sorted by owner and checked, also together."""
    recipe, definition = find_algorithm(algorithm), find_problem(problem)
    of_problem = {setting.name for setting in definition.settings}
    of_algorithm = {setting.name for setting in recipe.settings}
    unknown = sorted(set(given) - of_problem - of_algorithm)
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: not a setting of {algorithm} ({_names(recipe.settings)}) "
            f"nor of {problem} ({_names(definition.settings)})."
        )
    world = read_settings(definition.settings, {k: v for k, v in given.items() if k in of_problem}, of=problem)
    usual = {name: value for name, value in find_preset(preset).settings.items() if name in of_algorithm}
    own = {name: value for name, value in given.items() if name in of_algorithm}
    settings = read_settings(recipe.settings, {**usual, **own}, of=algorithm)
    recipe.check(definition.make(**world).dim, settings)
    return _Point(settings, world)


def _share_settings(problem: str, algorithms: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each algorithm the settings that it or the problem has; one that nobody has is refused."""
    if not algorithms:
        raise ValueError("algorithms must name at least one, got none.")
    of_problem = [setting.name for setting in find_problem(problem).settings]
    owned = {name: [*of_problem, *(setting.name for setting in find_algorithm(name).settings)] for name in algorithms}
    known = list(dict.fromkeys(itertools.chain(*owned.values())))
    for name, value in settings.items():
        if name not in known:
            raise ValueError(
                f"{name} (given as {value!r}) is not a setting of any of these; they have: {', '.join(known)}."
            )
    return {name: {key: value for key, value in settings.items() if key in owned[name]} for name in algorithms}


def _shape(recipe: Algorithm, point: _Point) -> tuple[Any, ...]:
    """What must be equal for two points to share a compiled program."""
    traced = {setting.name for setting in recipe.settings if setting.traced}
    return (tuple(item for item in point.algorithm.items() if item[0] not in traced), tuple(point.problem.items()))


def _names(settings: Sequence[Any]) -> str:
    return ", ".join(setting.name for setting in settings)


def _offset(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total: progress(before + done, whole)


def _read_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(seed) for seed in seeds)
    if not chosen or min(chosen) < 0:
        raise ValueError(f"seeds must be a number of at least 1, or seeds that are not negative, got {seeds!r}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds must differ, got {seeds!r}; a seed counted twice makes the interval too narrow.")
    return chosen
