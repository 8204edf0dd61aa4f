"""Lessons in a process of its own: training takes neither Python's lock nor, where cores are few, decisions' time.

The process has a copy of the observations, to which each lesson adds the new ones, and a lower priority: training gets
what decisions leave. What it computes goes into the journal as any other lesson does.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import jax
import numpy as np

from neuralucb.online.codec import leaves_of, with_leaves
from neuralucb.online.compiled import Programs, history_capacity
from neuralucb.online.context_shape import shape_of_policy
from neuralucb.online.lessons import Lesson, train
from neuralucb.online.observations import Observations
from neuralucb.online.state import State
from neuralucb.online.training_input import TrainingInput
from neuralucb.policy import Policy
from neuralucb.runtime.child import Crash, enter, main_script, name_and_message, without_main_module
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.threads import cores, start_jax_with

__all__ = ["LessonProcess", "serve_lessons"]

NICENESS = 10
"""How much the process yields: decisions come first, and beside a busy machine it still gets a tenth of a core."""

CACHE = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
"""Settings of JAX by which both processes find what the other has compiled."""

GRACE_SECONDS = 1.0
"""For the process to end by itself."""


class LessonProcess:
    """`train`, in a process that is started for the first lesson or before, and again if it has died.

    From any thread: one is served after the other.
    """

    def __init__(self, policy: Policy, settings: dict[str, Any]) -> None:
        if policy.origin is None:
            raise InputError(
                'learning must not be "process" for a policy that build did not make: another process cannot make it '
                'again; set learning="background".'
            )
        if current_process().daemon:
            raise InputError(
                'learning must not be "process" in a daemonic process, such as a worker of a multiprocessing.Pool: it '
                'may start no others; set learning="background".'
            )
        self._policy, self._settings = policy, settings
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._asking = threading.RLock()
        """held from a question to the process until it has answered"""
        self._is_compiling = self._is_ending = False
        """whether it compiles ahead, and whether it shall no more"""
        self._prepared: set[int] = set()
        """capacities of histories whose lessons it has compiled"""
        self._mirrored: Observations | None = None
        """the observations of which the process has a copy"""
        self._sent = 0
        """how many of them"""

    def prepare(self, state: State, capacities: Sequence[int]) -> None:
        """Start the process, and compile lessons over histories of these capacities there, if it has not done so.

        Raises RuntimeError if the process fails.
        """
        if self._pipe is None or not self.has_prepared(capacities):
            self._compile(state.programs.policy, _prepare, list(capacities))
            self._prepared |= {*capacities}

    def has_prepared(self, capacities: Sequence[int]) -> bool:
        """Whether lessons over histories of these capacities are compiled there."""
        return self._prepared.issuperset(capacities)

    def compile_choices(self, programs: Programs, decisions: int, arms: int) -> None:
        """Compile a program that chooses, at the priority of lessons: here it is then found in JAX's cache.

        Nothing is done where JAX keeps no programs, and for another policy than that of lessons. Raises RuntimeError
        if the process fails.
        """
        is_kept = jax.config.values["jax_compilation_cache_dir"] and jax.config.values["jax_enable_compilation_cache"]
        if is_kept and programs.policy.origin == self._policy.origin:
            self._compile(programs.policy, _choose, programs.floor_share, decisions, arms)

    def stop_compiling(self) -> None:
        """Compile nothing ahead any more, and give up what is compiled at the moment: it would be waited for."""
        self._is_ending = True
        process = self._process
        if self._is_compiling and process is not None:
            process.kill()

    def train(self, state: State, training: TrainingInput, number: int) -> tuple[Lesson, dict[str, np.ndarray]]:
        """The same as `lessons.train`. Raises RuntimeError if the process fails; the next lesson starts another."""
        with self._asked(state.programs.policy) as pipe:
            is_known = self._mirrored is state.observations
            rows = len(training.rewards)
            new = min(rows, training.total - self._sent) if is_known else rows
            contexts = [leaf[rows - new :] for leaf in jax.tree.leaves(training.contexts)]
            pipe.send((_train.__name__, (number, training.total, not is_known, len(contexts))))
            _send_arrays(pipe, [*contexts, training.rewards, *leaves_of(training.belief, "").values()])
            self._mirrored, self._sent = state.observations, training.total
            lesson, names = _answer(pipe)
            self._prepared.add(history_capacity(rows))
            return Lesson(*lesson), dict(zip(names, _receive_arrays(pipe), strict=True))

    def close(self) -> None:
        """End the process."""
        with self._asking:
            process, pipe = self._process, self._pipe
            self._process = self._pipe = self._mirrored = None
            self._prepared = set()
            if pipe is not None:
                pipe.close()
            if process is not None:
                process.join(GRACE_SECONDS)
                process.kill()
                process.join()

    def _compile(self, policy: Policy, task: Callable[..., None], *arguments: Any) -> None:
        try:
            with self._asked(policy) as pipe:
                self._is_compiling = True
                if not self._is_ending:
                    pipe.send((task.__name__, arguments))
                    _answer(pipe)
        except RuntimeError:
            if not self._is_ending:
                raise
        finally:
            self._is_compiling = False

    @contextlib.contextmanager
    def _asked(self, policy: Policy) -> Iterator[Connection]:
        """The pipe to a process that learns with this policy. What goes wrong ends it; its end is a RuntimeError."""
        with self._asking:
            if policy.origin != self._policy.origin:  # another policy was adopted
                self.close()
                self._policy = policy
            try:
                yield self._started()
            except (OSError, EOFError) as problem:
                self.close()
                raise RuntimeError(
                    f"the process that learns has ended: {problem!r}; the next lesson starts one."
                ) from None
            except BaseException:
                self.close()  # what is in the pipe is unknown
                raise

    def _started(self) -> Connection:
        if self._pipe is None:
            context = get_context("spawn")
            pipe, theirs = context.Pipe()
            cache = {name: jax.config.values[name] for name in CACHE}
            what = (main_script(), __name__, serve_lessons.__name__, self._policy, self._settings, cache)
            process = context.Process(target=enter, args=(theirs, *what), daemon=True, name="lessons")
            with without_main_module():
                process.start()
            theirs.close()
            self._process, self._pipe = process, pipe
        return self._pipe


def serve_lessons(pipe: Connection, policy: Policy, settings: dict[str, Any], cache: dict[str, Any]) -> None:
    """In the process: make lessons until the pipe is closed, or whoever wants them has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    for name, value in cache.items():
        jax.config.update(name, value)
    start_jax_with(max(1, cores() // 2))  # decisions wait longest for a lesson that computes on every core
    shared_by = None if policy.origin is None else policy.origin.shared_by
    state = State(
        Programs(policy, settings["seed"], 0.0),
        shape_of_policy(policy, None),
        **{name: settings[name] for name in ("window", "normalize")},
        capacity=shared_by,
    )
    tasks = {task.__name__: task for task in (_train, _prepare, _choose)}
    with contextlib.suppress(EOFError, OSError):
        while True:
            name, arguments = pipe.recv()
            tasks[name](pipe, state, *arguments)


def _end_with_parent() -> None:
    """End this process when its parent has ended, killed perhaps: what it computes or compiles is for nobody then."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _train(pipe: Connection, state: State, number: int, total: int, is_new: bool, leaves: int) -> None:
    """Receive the new observations, the rewards in the policy's scale and the belief; train, and send what changed."""
    arrays = _receive_arrays(pipe)
    contexts, rewards = state.kept.unflatten(arrays[:leaves]), arrays[leaves]
    unused = np.zeros(len(arrays[0]), np.float64)  # rewards come with each lesson, in the policy's scale
    if is_new:
        state.observations = Observations(state.kept, state.observations.window)
        state.observations.restore(contexts, unused, total)
    else:
        state.observations.add(contexts, unused)
    parts = {str(index): array for index, array in enumerate(arrays[leaves + 1 :])}
    belief = with_leaves(state.initial_belief, parts, strict=True)
    known, _ = state.observations.in_window()
    try:
        lesson, changed = train(state, TrainingInput(belief, total, known, rewards, 0), number)
    except Exception as problem:
        pipe.send(Crash(name_and_message(problem), ""))
        return
    pipe.send((tuple(lesson), list(changed)))
    _send_arrays(pipe, list(changed.values()))


def _prepare(pipe: Connection, state: State, capacities: list[int]) -> None:
    """Compile lessons over histories of these capacities."""
    with _told_of(pipe):
        for capacity in capacities:
            history = state.observations.history(state.kept.zeros(0), np.zeros(0), capacity=capacity)
            is_windowed = state.observations.window is not None
            state.programs.compile_lesson(state.initial_belief, history, reviewed=is_windowed)


def _choose(pipe: Connection, state: State, floor_share: float, decisions: int, arms: int) -> None:
    """Compile the choice for so many decisions at once among so many arms, into JAX's cache."""
    with _told_of(pipe):
        programs = state.programs.of(state.programs.policy)
        programs.set_floor(floor_share)
        available = np.ones((decisions, arms), bool)
        programs.choose_many(0, state.initial_belief, state.shape.zeros(decisions, arms), available, capacity=arms)


@contextlib.contextmanager
def _told_of(pipe: Connection) -> Iterator[None]:
    """Answer that what is done in here has ended, and how."""
    try:
        yield
    except Exception as problem:
        pipe.send(Crash(name_and_message(problem), ""))
    else:
        pipe.send(None)


def _answer(pipe: Connection) -> Any:
    """What the process answers. Raises RuntimeError if it has failed."""
    answer = pipe.recv()
    if isinstance(answer, Crash):
        raise RuntimeError(f"the process that learns has failed: {answer.reason}")
    return answer


def _send_arrays(pipe: Connection, arrays: list[np.ndarray]) -> None:
    """Types and shapes, then the bytes as they are: copying them into one message would hold Python's lock."""
    whole = [np.asarray(array, order="C") for array in arrays]
    pipe.send([(array.dtype.str, array.shape) for array in whole])
    for array in whole:
        if array.size:
            pipe.send_bytes(array.reshape(-1).view(np.uint8).data)


def _receive_arrays(pipe: Connection) -> list[np.ndarray]:
    arrays = []
    for kind, shape in pipe.recv():
        array = np.empty(shape, kind)
        if array.size:
            pipe.recv_bytes_into(array.reshape(-1).view(np.uint8).data)
        arrays.append(array)
    return arrays
