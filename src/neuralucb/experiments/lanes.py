"""Lanes (seeds × numeric settings) of one algorithm on one problem, run side by side by one compiled program.

On a CPU the lanes run in small groups that fit the cache, one thread per core; on a GPU all at once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.algorithms import Algorithm, Task
from neuralucb.problems import Problem, check_problem, reveal
from neuralucb.runtime.keys import quick
from neuralucb.runtime.memory import available_bytes, require_memory
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.threads import cores, in_order
from neuralucb.simulation import Simulation, State, Trace, prepare

__all__ = [
    "Grouping",
    "LaneResults",
    "Lanes",
    "Leg",
    "Program",
    "compile_loops",
    "compile_program",
    "compile_soon",
    "group_lanes",
]

CACHE_BYTES = 8 * 2**20
"""State that a core works on at a time. Forty lanes of 2.4 MB at once took three times as long per lane as one or two.
"""

ROUND_BYTES = 12
"""Of a round's arm, regret and reward; its context comes on top."""

CALL_SECONDS = 0.3
"""How long a compiled call should last: short enough for a smooth progress bar and a prompt Ctrl-C."""

GRAPH_OPTIONS: dict[str, str | int] = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION",
    "xla_gpu_graph_min_graph_size": 1,
}
"""On a GPU: loops as CUDA graphs. Rounds and steps are many small kernels, slow to launch one by one."""

SOON_OPTIONS: dict[str, str | int] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
"""On a CPU: all kernels in one module of LLVM, instead of each in its own. That takes half the time to compile, but
trainings of such programs take a quarter longer."""

SHORT = 5_000
"""Rounds of all lanes together, up to which a run ends sooner if its program is compiled sooner."""


class Lanes(NamedTuple):
    """Seeds, and traced settings by name; one entry per lane."""

    seeds: np.ndarray
    numbers: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "Lanes":
        """Some of the lanes, in this order."""
        return Lanes(self.seeds[rows], {name: values[rows] for name, values in self.numbers.items()})


class LaneResults(NamedTuple):
    """What happened in every lane."""

    regret: np.ndarray
    """[lanes, rounds] cumulative, in float64"""
    diverged_at: np.ndarray
    """[lanes] round of divergence, 0 if none"""
    trace: Trace | None
    """[lanes, …] round by round, in NumPy; None unless the program was compiled for it"""
    kept: tuple[np.ndarray, ...] | None = None
    """[lanes, …] all that it takes to go on; None unless a leg follows"""


class Leg(NamedTuple):
    """A part of a run, from one round to another."""

    since: int
    """rounds that were played before"""
    kept: tuple[np.ndarray, ...]
    """`LaneResults.kept` of these rounds, one row per lane; nothing where there were none"""
    until: int
    """the last round; it must end a segment"""
    goes_on: bool
    """whether another leg follows, so that the states are kept"""


class Grouping(NamedTuple):
    """How lanes are spread over the machine."""

    size: int
    """lanes per compiled call"""
    workers: int
    """calls at the same time"""


@dataclass
class Program:
    """An algorithm of one shape on one problem, compiled for groups of lanes; see `compile_program`."""

    data: Any
    """the problem's data, on the device"""
    begin: Callable[..., State]
    advance: Callable[..., State]
    ends: tuple[int, ...]
    """the last round of each segment"""
    grouping: Grouping
    compile_seconds: float

    def run(self, lanes: Lanes, progress: Progress | None = None, leg: Leg | None = None) -> LaneResults:
        """Play all lanes to their end; or one leg of them."""
        count, size = len(lanes.seeds), self.grouping.size
        since, until = (0, self.ends[-1]) if leg is None else (leg.since, leg.until)
        starts = range(0, count, size)
        done, lock, stop = [0] * len(starts), Lock(), Event()

        def report(group: int, lane_rounds: int) -> None:
            with lock:
                done[group] = lane_rounds
                if progress is not None:
                    progress(sum(done), count * (until - since))

        def work(group: int) -> LaneResults:
            rows = np.arange(starts[group], starts[group] + size)
            real = int((rows < count).sum())  # the last group is filled up with lanes that are dropped again
            members = lanes.take(rows % count)
            with jax.enable_x64(True):  # JAX keeps this setting per thread
                state = self.begin(self.data, members.seeds, members.numbers)
                if leg is not None and since:
                    state = _restored(state, [array[rows % count] for array in leg.kept])
                state = _play(self, members, state, (since, until), lambda t: report(group, real * (t - since)), stop)
                trace = jax.tree.map(lambda leaf: np.asarray(leaf)[:real], state.trace)
                kept = None if leg is None or not leg.goes_on else tuple(array[:real] for array in _kept(state, until))
            regret = np.cumsum(trace.regret[:, :until], axis=1, dtype=np.float64)
            return LaneResults(regret, trace.diverged_at, None if trace.detail is None else trace, kept)

        with ThreadPoolExecutor(self.grouping.workers) as pool:
            futures = [pool.submit(work, group) for group in range(len(starts))]
            try:
                parts = [future.result() for future in futures]
            except BaseException:  # Ctrl-C too: no thread may go on computing
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def compile_program(
    algorithm: Algorithm,
    problem: Problem,
    settings: Mapping[str, Any],
    lanes: Lanes,
    *,
    rounds: int,
    schedule: str,
    threads: int | None = None,
    detailed: bool = False,
) -> Program:
    """Compile an algorithm on a problem for lanes like these.

    Args:
        algorithm: What is run.
        problem: What it is run on.
        settings: The algorithm's settings; those in `lanes.numbers` are traced and override them.
        lanes: An example: their number decides the group size, their first values the shapes.
        rounds: T.
        schedule: When to learn, as `read_schedule` reads it.
        threads: The most threads on a CPU; one per core if not set.
        detailed: Whether rewards, propensities and losses are kept round by round.

    Raises:
        InputError: If a single lane per thread needs more memory than is free.
    """
    started = time.perf_counter()

    def simulation(numbers: Mapping[str, Any]) -> Simulation:
        policy = algorithm.recipe(Task(problem.dim, rounds, problem.shared_by), {**settings, **numbers})
        seen = reveal(problem) if algorithm.sees_expected else problem
        return prepare(policy, seen, rounds=rounds, schedule=schedule, detailed=detailed)

    def begin(data: Any, seed: jax.Array, numbers: Mapping[str, Any]) -> State:
        return simulation(numbers).begin(quick(jax.random.key(seed)), data)

    def advance(data: Any, seed: jax.Array, numbers: Mapping[str, Any], state: State, first: Any, last: Any) -> State:
        return simulation(numbers).advance(quick(jax.random.key(seed)), data, state, first, last)

    check_problem(problem)
    require_memory(  # the least it can be, known before anything as long as the rounds is made
        rounds * (ROUND_BYTES + 4 * problem.dim),
        what=f"the history of {rounds} rounds of {problem.name}",
        cure="take fewer rounds",
    )
    with jax.enable_x64(True):
        data = jax.device_put(problem.data)
        lane_bytes = _lane_bytes(begin, data, lanes)
        grouping = group_lanes(len(lanes.seeds), lane_bytes, threads)
        require_memory(
            lane_bytes * grouping.workers,
            what=f"{algorithm.name}, {grouping.workers} lanes of {lane_bytes / 1e6:.1f} MB at a time,",
            cure="take fewer rounds or seeds, a smaller network, or design='diagonal' if the algorithm has it",
        )
        is_short = jax.default_backend() == "cpu" and rounds * len(lanes.seeds) <= SHORT
        while True:
            compiled = _compile_group(begin, advance, data, lanes, grouping.size, is_short)
            needed, free = _call_bytes(compiled[1]), available_bytes()
            if needed * grouping.workers <= free:
                break
            if grouping.size == 1:
                grouping = grouping._replace(workers=max(1, free // needed))
                require_memory(
                    needed,
                    what=f"one lane of {algorithm.name} on {problem.name}, with {problem.arms} arms of {problem.dim} "
                    "numbers,",
                    cure="take fewer arms or rounds, a smaller network, or design='diagonal' if the algorithm has it",
                )
                break
            grouping = grouping._replace(size=-(-grouping.size // 2))  # by what the compiler needs, not by a guess
        ends = simulation({name: values[0] for name, values in lanes.numbers.items()}).ends
    return Program(data, *compiled, ends, grouping, time.perf_counter() - started)


def group_lanes(lanes: int, lane_bytes: int, threads: int | None) -> Grouping:
    """Groups that fit the cache, one thread per core or as many as set; on a GPU all lanes at once."""
    if jax.default_backend() != "cpu":
        return Grouping(lanes, 1)
    workers = min(lanes, threads or cores())
    return Grouping(max(1, min(CACHE_BYTES // lane_bytes, -(-lanes // workers))), workers)


def compile_loops(lowered: Any) -> Any:
    """The compiled function; on a GPU its loops become CUDA graphs, if this version of XLA knows how."""
    if jax.default_backend() == "gpu":
        with suppress(jax.errors.JaxRuntimeError):
            return lowered.compile(compiler_options=GRAPH_OPTIONS)
    return lowered.compile()


def compile_soon(lowered: Any) -> Any:
    """The compiled function for a short run on a CPU: with SOON_OPTIONS, if this version of XLA knows them."""
    with suppress(jax.errors.JaxRuntimeError):
        return lowered.compile(compiler_options=SOON_OPTIONS)
    return lowered.compile()


def _compile_group(
    begin: Callable[..., State],
    advance: Callable[..., State],
    data: Any,
    lanes: Lanes,
    size: int,
    is_short: bool,
) -> tuple[Any, Any]:
    """Both functions, compiled for groups of this size, beside each other: XLA takes one core for each."""
    group = lanes.take(np.arange(size) % len(lanes.seeds))
    start = _batched(begin, (None, 0, 0), size)
    go_on = _batched(advance, (None, 0, 0, 0, None, None), size)
    beginning = jax.jit(start).trace(data, group.seeds, group.numbers)
    state, segment = beginning.out_info, np.int32(0)
    going_on = jax.jit(go_on, donate_argnums=3).lower(data, group.seeds, group.numbers, state, segment, segment)
    first, second = in_order([
        partial(_in_x64, partial(compile_soon, beginning.lower()) if is_short else beginning.lower().compile),
        partial(_in_x64, partial(compile_soon if is_short else compile_loops, going_on)),
    ])  # fmt: skip
    return first, second


def _in_x64(compile_it: Callable[[], Any]) -> Any:
    with jax.enable_x64(True):  # JAX keeps this setting per thread
        return compile_it()


def _batched(function: Callable[..., Any], axes: tuple[int | None, ...], lanes: int) -> Callable[..., Any]:
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


def _lane_bytes(begin: Callable[..., State], data: Any, lanes: Lanes) -> int:
    """Bytes of one lane's state."""
    one = lanes.take(np.arange(1))
    state = jax.eval_shape(_batched(begin, (None, 0, 0), 1), data, one.seeds, one.numbers)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def _call_bytes(compiled: Any) -> int:
    """Bytes that a compiled call needs besides its arguments."""
    needs = compiled.memory_analysis()
    return 0 if needs is None else int(needs.temp_size_in_bytes + needs.output_size_in_bytes)


def _play(
    program: Program, lanes: Lanes, state: State, leg: tuple[int, int], report: Callable[[int], None], stop: Event
) -> State:
    """Advance one group from the round after the leg's first to its last, in calls of about CALL_SECONDS."""
    first, end = (0 if t == 0 else program.ends.index(t) + 1 for t in leg)
    stride = 1
    while first < end and not stop.is_set():
        last = min(first + stride, end)
        started = time.perf_counter()
        state = program.advance(program.data, lanes.seeds, lanes.numbers, state, np.int32(first), np.int32(last))
        jax.block_until_ready(state)
        took = time.perf_counter() - started
        stride = max(1, min(2 * stride, int(stride * CALL_SECONDS / max(took, 1e-6))))
        report(program.ends[last - 1])
        first = last
    return state


def _kept(state: State, until: int) -> list[np.ndarray]:
    """What a group needs to go on, as plain arrays: all but the world, which `begin` makes again, and rounds to come.

    No more rows of the history than rounds are in use.
    """
    by_round = jax.tree.map(lambda leaf: leaf[:, :until], _by_round(state))
    leaves = jax.tree.leaves((state.belief, state.trace.diverged_at, state.trace.loss, by_round))
    return [np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in leaves]


def _restored(state: State, kept: Sequence[np.ndarray]) -> State:
    """The state that `_kept` was called on, from one that has just begun."""
    leaves, structure = jax.tree.flatten((state.belief, state.trace.diverged_at, state.trace.loss, _by_round(state)))
    found = []
    for leaf, array in zip(leaves, kept, strict=True):
        if _is_key(leaf):
            found.append(jax.random.wrap_key_data(jax.numpy.asarray(array), impl=jax.random.key_impl(leaf)))
            continue
        rest = [(0, whole - part) for whole, part in zip(leaf.shape, array.shape, strict=True)]
        found.append(jax.numpy.pad(array, rest))  # with zeros, as rounds to come are at the beginning
    belief, diverged_at, loss, (contexts, rewards, arm, regret) = jax.tree.unflatten(structure, found)
    trace = state.trace._replace(arm=arm, regret=regret, diverged_at=diverged_at, loss=loss)
    return State(state.world, belief, contexts, rewards, trace)


def _by_round(state: State) -> tuple[Any, ...]:
    """The parts of a state with an axis of rounds."""
    return state.contexts, state.rewards, state.trace.arm, state.trace.regret


def _is_key(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))
