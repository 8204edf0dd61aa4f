"""Running: all seeds and settings of an algorithm as lanes of one compiled program.

On a CPU the lanes go through in small groups that fit the cache, one thread a core; on a GPU all at once.
"""

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.algorithms import Algorithm, find_algorithm
from neuralucb.experiments.results import Result
from neuralucb.presets import find_preset
from neuralucb.problems import Problem, find_problem
from neuralucb.schedules import read_schedule
from neuralucb.settings import read_settings
from neuralucb.simulation import prepare

__all__ = ["Progress", "compare", "plan_settings", "run", "run_grid"]

Progress = Callable[[int, int], None]
"""lane-rounds done, lane-rounds in all"""

CACHE_BYTES = 8 * 2**20
"""State that a core works on at a time. Forty lanes of 2.4 MB at once took three times as long a lane as one or two."""

PIECE_SECONDS = 0.3
"""How long a compiled call should last: short enough for a smooth progress bar and a prompt Ctrl-C."""


class _Lanes(NamedTuple):
    """The lanes of one compiled program: seeds, and traced settings by name."""

    seeds: np.ndarray
    numbers: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "_Lanes":
        return _Lanes(self.seeds[rows], {name: values[rows] for name, values in self.numbers.items()})


def run(
    algorithm: str, problem: str, *, rounds: int = 10_000, seeds: int | Sequence[int] = 10, preset: str = "paper",
    schedule: str | None = None, progress: Progress | None = None, **settings: Any,
) -> Result:
    """One algorithm on one problem: `run("neural-ucb", "h1", rounds=2000, seeds=4, step_size=0.1)`.

    Settings of the algorithm and of the problem go by name; seeds are a number (0, 1, …) or the seeds themselves.
    """
    grid = {name: [value] for name, value in settings.items()}
    options = {"rounds": rounds, "seeds": seeds, "preset": preset, "schedule": schedule, "progress": progress}
    return run_grid(algorithm, problem, grid, **options)[0]


def compare(
    problem: str, algorithms: Sequence[str], *, rounds: int = 10_000, seeds: int | Sequence[int] = 10,
    preset: str = "paper", schedule: str | None = None, progress: Callable[[str], Progress] | None = None, **settings: Any,
) -> list[Result]:
    """Several algorithms on the same problems, contexts and noise; each takes those settings that it has."""
    check_owners(problem, algorithms, settings)
    results = []
    for name in algorithms:
        own = {setting.name for setting in (*find_algorithm(name).settings, *find_problem(problem).settings)}
        mine = {key: value for key, value in settings.items() if key in own}
        meter = None if progress is None else progress(name)
        results.append(
            run(name, problem, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, progress=meter, **mine)
        )
    return results


def run_grid(
    algorithm: str, problem: str, grid: Mapping[str, Sequence[Any]], *, rounds: int = 10_000,
    seeds: int | Sequence[int] = 10, preset: str = "paper", schedule: str | None = None, progress: Progress | None = None,
) -> list[Result]:
    """Every combination of the grid's values, each over all seeds, in the order of `itertools.product`.

    Combinations that differ only in numbers (exploration, step_size, …) share one compilation.
    """
    seeds = _read_seeds(seeds)
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}.")
    when = schedule or find_preset(preset).schedule
    points = [
        plan_settings(algorithm, problem, dict(zip(grid, values, strict=True)), preset=preset)
        for values in itertools.product(*grid.values())
    ]
    results: list[Result | None] = [None] * len(points)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, (settings, world) in enumerate(points):
        groups.setdefault(_shape(find_algorithm(algorithm), settings, world), []).append(index)
    whole = len(points) * len(seeds) * rounds
    before = 0
    for members in groups.values():
        meter = None if progress is None else _offset(progress, before, whole)
        shared = [points[index] for index in members]
        for index, result in zip(members, _run_lanes(algorithm, problem, shared, rounds, seeds, when, meter), strict=True):
            results[index] = result
        before += len(members) * len(seeds) * rounds
    return [result for result in results if result is not None]


def plan_settings(
    algorithm: str, problem: str, given: Mapping[str, Any], *, preset: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the algorithm and of the problem, checked: the given ones, the preset's, the defaults."""
    recipe, definition = find_algorithm(algorithm), find_problem(problem)
    of_problem = {setting.name for setting in definition.settings}
    of_algorithm = {setting.name for setting in recipe.settings}
    unknown = sorted(set(given) - of_problem - of_algorithm)
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: not a setting of {algorithm} ({', '.join(setting.name for setting in recipe.settings)}) "
            f"nor of {problem} ({', '.join(setting.name for setting in definition.settings)})."
        )
    world = read_settings(definition.settings, {k: v for k, v in given.items() if k in of_problem}, of=problem)
    usual = {name: value for name, value in find_preset(preset).settings.items() if name in of_algorithm}
    own = {name: value for name, value in given.items() if name in of_algorithm}
    settings = read_settings(recipe.settings, {**usual, **own}, of=algorithm)
    recipe.check(definition.make(**world).dim, settings)
    return settings, world


def check_owners(problem: str, algorithms: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Refuse a setting that none of the algorithms, nor the problem, has."""
    if not algorithms:
        raise ValueError("algorithms must name at least one, got none.")
    known = [setting.name for setting in find_problem(problem).settings]
    for name in algorithms:
        known += [setting.name for setting in find_algorithm(name).settings if setting.name not in known]
    for name, value in settings.items():
        if name not in known:
            raise ValueError(f"{name} (given as {value!r}) is not a setting of any of these; they have: {', '.join(known)}.")


def _run_lanes(
    algorithm: str, problem: str, points: Sequence[tuple[dict[str, Any], dict[str, Any]]], rounds: int,
    seeds: tuple[int, ...], when: str, progress: Progress | None,
) -> list[Result]:
    recipe = find_algorithm(algorithm)
    world = find_problem(problem).make(**points[0][1])
    traced = [setting.name for setting in recipe.settings if setting.traced]
    lanes = _Lanes(
        np.asarray(list(seeds) * len(points), dtype=np.uint32),
        {name: np.repeat(np.asarray([own[name] for own, _ in points], np.float32), len(seeds)) for name in traced},
    )
    with jax.enable_x64(True):
        program = _Program(recipe, world, points[0][0], rounds, when, lanes)
        started = time.perf_counter()
        regret, diverged_at = program.run(lanes, progress)
        seconds = time.perf_counter() - started
    per_point = zip(np.split(regret, len(points)), np.split(diverged_at, len(points)), strict=True)
    return [
        Result(algorithm, problem, rounds, when, {**own, **of_world}, seeds, curve, at, program.compile_seconds, seconds)
        for (own, of_world), (curve, at) in zip(points, per_point, strict=True)
    ]


class _Program:
    """One compiled program, and the way lanes are led through it."""

    def __init__(
        self, recipe: Algorithm, problem: Problem, settings: Mapping[str, Any], rounds: int, when: str, lanes: _Lanes
    ) -> None:
        def simulation(numbers: dict[str, jax.Array]) -> Any:
            policy = recipe.recipe(problem.dim, {**settings, **numbers})
            return prepare(policy, problem, rounds=rounds, schedule=read_schedule(when))

        def begin(seed: jax.Array, numbers: dict[str, jax.Array]) -> Any:
            return simulation(numbers).begin(jax.random.key(seed))

        def advance(seed: jax.Array, numbers: dict[str, jax.Array], state: Any, first: Any, last: Any) -> Any:
            return simulation(numbers).advance(jax.random.key(seed), state, first, last)

        started = time.perf_counter()
        one = lanes.take(np.arange(1))
        shape = jax.eval_shape(jax.vmap(begin), one.seeds, one.numbers)
        lane_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shape))
        self.group, self.workers = _group(len(lanes.seeds), lane_bytes)
        group = lanes.take(np.arange(self.group) % len(lanes.seeds))
        self.begin = jax.jit(jax.vmap(begin)).lower(group.seeds, group.numbers).compile()
        state = jax.eval_shape(jax.vmap(begin), group.seeds, group.numbers)
        at = np.int32(0)
        batched = jax.jit(jax.vmap(advance, (0, 0, 0, None, None)), donate_argnums=2)
        self.advance = batched.lower(group.seeds, group.numbers, state, at, at).compile()
        self.ends = simulation({name: values[0] for name, values in lanes.numbers.items()}).ends
        self.compile_seconds = time.perf_counter() - started

    def run(self, lanes: _Lanes, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
        """Cumulative regret [lanes, rounds] in float64, and the round of divergence [lanes]."""
        count, rounds = len(lanes.seeds), self.ends[-1]
        starts = range(0, count, self.group)
        done, lock, stop = [0] * len(starts), Lock(), Event()

        def report(group: int, lane_rounds: int) -> None:
            with lock:
                done[group] = lane_rounds
                if progress is not None:
                    progress(sum(done), count * rounds)

        def work(group: int) -> tuple[np.ndarray, np.ndarray]:
            rows = np.arange(starts[group], starts[group] + self.group)
            real = int((rows < count).sum())  # the last group is filled up with lanes that are dropped again
            members = lanes.take(rows % count)
            with jax.enable_x64(True):  # the setting is a thread's own
                trace = self._lead(members, lambda t: report(group, real * t), stop)
            return np.cumsum(np.asarray(trace.regret, np.float64), axis=1)[:real], np.asarray(trace.diverged_at)[:real]

        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(work, group) for group in range(len(starts))]
            try:
                parts = [future.result() for future in futures]
            except BaseException:  # Ctrl-C too: no thread may go on computing
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _lead(self, lanes: _Lanes, report: Callable[[int], None], stop: Event) -> Any:
        """Advance one group to its end, in pieces of about PIECE_SECONDS."""
        state = self.begin(lanes.seeds, lanes.numbers)
        first, stride = 0, 1
        while first < len(self.ends) and not stop.is_set():
            last = min(first + stride, len(self.ends))
            started = time.perf_counter()
            state = jax.block_until_ready(self.advance(lanes.seeds, lanes.numbers, state, np.int32(first), np.int32(last)))
            took = time.perf_counter() - started
            stride = max(1, min(2 * stride, int(stride * PIECE_SECONDS / max(took, 1e-6))))
            report(self.ends[last - 1])
            first = last
        return state.trace


def _group(lanes: int, lane_bytes: int) -> tuple[int, int]:
    """Lanes in a compiled call, and calls at a time."""
    if jax.default_backend() != "cpu":
        return lanes, 1
    workers = min(lanes, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return max(1, min(CACHE_BYTES // lane_bytes, -(-lanes // workers))), workers


def _shape(recipe: Algorithm, settings: Mapping[str, Any], world: Mapping[str, Any]) -> tuple[Any, ...]:
    traced = {setting.name for setting in recipe.settings if setting.traced}
    return (tuple((k, v) for k, v in settings.items() if k not in traced), tuple(world.items()))


def _offset(progress: Progress, before: int, whole: int) -> Progress:
    return lambda done, total: progress(before + done, whole)


def _read_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(seed) for seed in seeds)
    if not chosen or min(chosen) < 0:
        raise ValueError(f"seeds must be a number of at least 1, or seeds that are not negative, got {seeds!r}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds must differ, got {seeds!r}; a seed counted twice makes the interval too narrow.")
    return chosen
