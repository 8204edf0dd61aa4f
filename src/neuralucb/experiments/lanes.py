"""One compiled program, and how lanes (seeds × numeric settings) are led through it.

On a CPU the lanes go through in small groups that fit the cache, one thread a core; on a GPU all at once.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.algorithms import Algorithm, Task
from neuralucb.problems import Problem, reveal
from neuralucb.runtime.memory import available_bytes, require_memory
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.threads import cores
from neuralucb.schedules import read_schedule
from neuralucb.simulation import Simulation, State, Trace, prepare

__all__ = ["Lanes", "Program", "compile_loops"]

CACHE_BYTES = 8 * 2**20
"""State that a core works on at a time. Forty lanes of 2.4 MB at once took three times as long a lane as one or two."""


PIECE_SECONDS = 0.3
"""How long a compiled call should last: short enough for a smooth progress bar and a prompt Ctrl-C."""


WHOLE_LOOPS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU: loops as CUDA graphs. Rounds and steps are many small kernels, slow to launch one by one."""


class Lanes(NamedTuple):
    """Seeds, and traced settings by name; one entry a lane."""

    seeds: np.ndarray
    numbers: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "Lanes":
        """Some of the lanes, in this order."""
        return Lanes(self.seeds[rows], {name: values[rows] for name, values in self.numbers.items()})


class Program:
    """An algorithm of one shape on one problem, compiled once for groups of lanes."""

    def __init__(
        self,
        algorithm: Algorithm,
        problem: Problem,
        settings: Mapping[str, Any],
        rounds: int,
        when: str,
        lanes: Lanes,
        *,
        threads: int | None = None,
    ) -> None:
        def simulation(numbers: Mapping[str, Any]) -> Simulation:
            policy = algorithm.recipe(Task(problem.dim, rounds, problem.shared_by), {**settings, **numbers})
            return prepare(
                policy,
                reveal(problem) if algorithm.sees_expected else problem,
                rounds=rounds,
                schedule=read_schedule(when),
            )

        def begin(data: Any, seed: jax.Array, numbers: Mapping[str, Any]) -> State:
            return simulation(numbers).begin(jax.random.key(seed), data)

        def advance(
            data: Any, seed: jax.Array, numbers: Mapping[str, Any], state: State, first: Any, last: Any
        ) -> State:
            return simulation(numbers).advance(jax.random.key(seed), data, state, first, last)

        started = time.perf_counter()
        with jax.enable_x64(True):
            self.data = jax.device_put(problem.data)
            one = lanes.take(np.arange(1))
            shape = jax.eval_shape(_side_by_side(begin, (None, 0, 0), 1), self.data, one.seeds, one.numbers)
            lane_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shape))
            self.group, self.workers = _group(len(lanes.seeds), lane_bytes, threads)
            require_memory(
                lane_bytes * self.workers,
                what=f"{algorithm.name}, {self.workers} lanes of {lane_bytes / 1e6:.1f} MB at a time,",
                cure="take fewer rounds or seeds, a smaller network, or design='diagonal' where there is one",
            )
            while True:
                self.begin, self.advance = self._compile(begin, advance, lanes)
                if self.group == 1 or _needed(self.advance) * self.workers <= available_bytes():
                    break
                self.group = -(-self.group // 2)  # measured, not guessed: what the compiler asks for
            self.ends = simulation({name: values[0] for name, values in lanes.numbers.items()}).ends
        self.compile_seconds = time.perf_counter() - started

    def _compile(self, begin: Callable[..., State], advance: Callable[..., State], lanes: Lanes) -> tuple[Any, Any]:
        """Both functions, for groups of the present size."""
        group = lanes.take(np.arange(self.group) % len(lanes.seeds))
        start = _side_by_side(begin, (None, 0, 0), self.group)
        state = jax.eval_shape(start, self.data, group.seeds, group.numbers)
        going_on = _side_by_side(advance, (None, 0, 0, 0, None, None), self.group)
        at = np.int32(0)
        return (
            jax.jit(start).lower(self.data, group.seeds, group.numbers).compile(),
            compile_loops(
                jax.jit(going_on, donate_argnums=3).lower(self.data, group.seeds, group.numbers, state, at, at)
            ),
        )

    def run(self, lanes: Lanes, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
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
                return np.cumsum(trace.regret, axis=1, dtype=np.float64)[:real], np.asarray(trace.diverged_at)[:real]

        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(work, group) for group in range(len(starts))]
            try:
                parts = [future.result() for future in futures]
            except BaseException:  # Ctrl-C too: no thread may go on computing
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _lead(self, lanes: Lanes, report: Callable[[int], None], stop: Event) -> Trace:
        """Advance one group to its end, in pieces of about PIECE_SECONDS."""
        state = self.begin(self.data, lanes.seeds, lanes.numbers)
        first, stride = 0, 1
        while first < len(self.ends) and not stop.is_set():
            last = min(first + stride, len(self.ends))
            started = time.perf_counter()
            state = self.advance(self.data, lanes.seeds, lanes.numbers, state, np.int32(first), np.int32(last))
            jax.block_until_ready(state)
            took = time.perf_counter() - started
            stride = max(1, min(2 * stride, int(stride * PIECE_SECONDS / max(took, 1e-6))))
            report(self.ends[last - 1])
            first = last
        return state.trace


def compile_loops(lowered: Any) -> Any:
    """The compiled function, its loops whole on a GPU where XLA knows how; another XLA may not know these options."""
    if jax.default_backend() == "gpu":
        with suppress(jax.errors.JaxRuntimeError):
            return lowered.compile(compiler_options=WHOLE_LOOPS)
    return lowered.compile()


def _side_by_side(function: Callable[..., Any], axes: tuple[int | None, ...], lanes: int) -> Callable[..., Any]:
    """`vmap`; for one lane the function alone, since `vmap` would turn its slices into slower gathers."""
    if lanes > 1:
        return jax.vmap(function, axes)

    def alone(*arguments: Any) -> Any:
        bare = [
            tree if axis is None else jax.tree.map(lambda leaf: leaf[0], tree)
            for tree, axis in zip(arguments, axes, strict=True)
        ]
        return jax.tree.map(lambda leaf: leaf[None], function(*bare))

    return alone


def _needed(compiled: Any) -> int:
    """Bytes that a compiled call asks for beside its arguments that are there already."""
    asked = compiled.memory_analysis()
    return 0 if asked is None else int(asked.temp_size_in_bytes + asked.output_size_in_bytes)


def _group(lanes: int, lane_bytes: int, threads: int | None) -> tuple[int, int]:
    """Lanes in a compiled call, and calls at a time: as many as there are cores, if it is not said."""
    if jax.default_backend() != "cpu":
        return lanes, 1
    workers = min(lanes, threads or cores())
    return max(1, min(CACHE_BYTES // lane_bytes, -(-lanes // workers))), workers
