"""Lessons in a process of its own: training takes neither Python's lock nor, where cores are few, decisions' time.

The process has a copy of the observations, to which each lesson adds the new ones, and a lower priority: training gets
what decisions leave. What it computes goes into the journal as any other lesson does.
"""

import contextlib
import os
import signal
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import jax
import numpy as np

from neuralucb.online.codec import leaves_of, with_leaves
from neuralucb.online.compiled import Programs
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

GRACE_SECONDS = 5.0
"""For the process to end by itself."""


class LessonProcess:
    """`train`, in a process that is started for the first lesson, and again if it has died."""

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
        self._mirrored: Observations | None = None
        """the observations of which the process has a copy"""
        self._sent = 0
        """how many of them"""

    def train(self, state: State, training: TrainingInput, number: int) -> tuple[Lesson, dict[str, np.ndarray]]:
        """The same as `lessons.train`. Raises RuntimeError if the process fails; the next lesson starts another."""
        if state.programs.policy.origin != self._policy.origin:  # another policy was adopted
            self.close()
            self._policy = state.programs.policy
        try:
            pipe = self._started()
            is_known = self._mirrored is state.observations
            rows = len(training.rewards)
            new = min(rows, training.total - self._sent) if is_known else rows
            contexts = [leaf[rows - new :] for leaf in jax.tree.leaves(training.contexts)]
            pipe.send((number, training.total, not is_known, len(contexts)))
            _send_arrays(pipe, [*contexts, training.rewards, *leaves_of(training.belief, "").values()])
            self._mirrored, self._sent = state.observations, training.total
            answer = pipe.recv()
            if isinstance(answer, Crash):
                raise RuntimeError(f"the process that learns has failed: {answer.reason}")
            lesson, names = answer
            return Lesson(*lesson), dict(zip(names, _receive_arrays(pipe), strict=True))
        except (OSError, EOFError) as problem:
            raise RuntimeError(f"the process that learns has ended: {problem!r}; the next lesson starts one.") from None
        except BaseException:
            self.close()  # what is in the pipe is unknown
            raise
        finally:
            if self._process is not None and not self._process.is_alive():
                self.close()

    def close(self) -> None:
        """End the process."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = self._mirrored = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.join(GRACE_SECONDS)
            process.kill()
            process.join()

    def _started(self) -> Connection:
        if self._pipe is None:
            context = get_context("spawn")
            pipe, theirs = context.Pipe()
            cache = jax.config.values["jax_compilation_cache_dir"]
            what = (main_script(), __name__, serve_lessons.__name__, self._policy, self._settings, cache)
            process = context.Process(target=enter, args=(theirs, *what), daemon=True, name="lessons")
            with without_main_module():
                process.start()
            theirs.close()
            self._process, self._pipe = process, pipe
        return self._pipe


def serve_lessons(pipe: Connection, policy: Policy, settings: dict[str, Any], cache: str | None) -> None:
    """In the process: make lessons until the pipe is closed, or whoever wants them has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", cache)
    start_jax_with(max(1, cores() // 2))  # decisions wait longest for a lesson that computes on every core
    shared_by = None if policy.origin is None else policy.origin.shared_by
    state = State(
        Programs(policy, settings["seed"], 0.0),
        shape_of_policy(policy, None),
        **{name: settings[name] for name in ("window", "normalize")},
        capacity=shared_by,
    )
    with contextlib.suppress(EOFError, OSError):
        while True:
            _serve_one(pipe, state)


def _serve_one(pipe: Connection, state: State) -> None:
    """Receive the new observations, the rewards in the policy's scale and the belief; train, and send what changed."""
    number, total, is_new, leaves = pipe.recv()
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
