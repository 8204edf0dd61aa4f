"""Lessons: training on what was observed, without holding the lock, also in a background thread."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from neuralucb.online.codec import changed_leaves, leaves_of, with_leaves
from neuralucb.online.compiled import ROWS
from neuralucb.online.lesson_record import warn
from neuralucb.online.state import Event, State
from neuralucb.online.training_input import CaughtUp, TrainingInput
from neuralucb.policy import Belief
from neuralucb.runtime.errors import StorageError
from neuralucb.runtime.records import brief

__all__ = ["Background", "Lesson", "Trainer", "give_lesson", "log_failure", "train"]

CAUGHT_UP = 64
"""Observations that a lesson's belief may lack when it is adopted: absorbing them takes about a millisecond."""


@brief
class Lesson(NamedTuple):
    """The result of one call to `learn`.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2))
        >>> lesson = bandit.fit([[0.0, 1.0], [1.0, 0.0]], None, [1.0, 0.0])
        >>> lesson.promoted, lesson.observations
        (True, 2)
    """

    promoted: bool
    """False where training diverged or the belief was not finite: the last good belief stays in use"""
    loss: float
    observations: int
    """how many it was trained on"""
    failure: str | None = None
    """why it was not promoted"""


Trainer: TypeAlias = Callable[[State, TrainingInput, int], tuple[Lesson, dict[str, np.ndarray]]]
"""state, what the lesson starts from, its number -> the lesson, and the arrays of the belief that it changed"""


class Background:
    """A thread that learns on request, one lesson at a time."""

    def __init__(self, learn: Callable[[], Any]) -> None:
        self._learn = learn
        self._requested = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Ask for a lesson; returns at once."""
        self._requested.set()

    def close(self) -> None:
        """Wait for the lesson under way, and stop."""
        self._closing = True
        self._requested.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._requested.wait()
            self._requested.clear()
            if self._closing:
                return
            self._learn()


def give_lesson(
    state: State, lock: AbstractContextManager[Any], commit: Callable[[Event], None], make: Trainer | None = None
) -> Lesson:
    """One lesson; the lock is held while it begins and when it ends, not while it is computed.

    make  computes it; `train` if not given, as also where all is learned again
    """
    with lock:
        commit(Event("start", {}, {}))
        training = state.training
        assert training is not None
        number = state.counts["learned"] + state.counts["diverged"]
    state.observations.make_room(lock)
    try:
        chosen = train if make is None or training.relearns else make
        lesson, arrays = chosen(state, training, number)
        _catch_up(state, arrays, lock)
        ended = {"promoted": lesson.promoted, "loss": lesson.loss, "failure": lesson.failure}
        with lock:
            commit(Event("learn", ended, arrays))
    except BaseException:
        with lock, suppress(StorageError):
            commit(Event("abandon", {}, {}))
        raise
    if not lesson.promoted:
        warn(state.lessons.lesson_failure())
    return lesson


def train(state: State, training: TrainingInput, number: int) -> tuple[Lesson, dict[str, np.ndarray]]:
    """The lesson of this number, and the arrays of the belief that it changed.

    With a window, what observing accumulates, Z above all, is computed again from the observations in the window: by
    the policy's `review` if it has one, which keeps what observing again cannot tell, such as errors of predictions.
    """
    if training.relearns:
        return _relearn(state, training)
    history = state.observations.history(training.contexts, training.rewards)
    after, info, finite = state.programs.learn(number, training.belief, history)
    if finite and state.observations.window is not None and state.programs.reviews:
        after, finite = state.programs.review(after, history)
    elif finite and state.observations.window is not None:
        after, refused = state.programs.absorb(_unobserved(state, after), training.contexts, training.rewards)
        finite = not refused
    failure = None
    if info.diverged:
        failure = "training diverged, or made the fit worse"
    elif not finite:
        failure = "the belief after training was not finite"
    lesson = Lesson(failure is None, float(info.loss), len(training.rewards), failure)
    return lesson, changed_leaves(training.belief, after) if lesson.promoted else {}


def log_failure(problem: Exception) -> str:
    """Log why a lesson or snapshot failed, and return it for `health()`: the reward that made it due was recorded."""
    return warn(f"a lesson or a snapshot that was due failed: {type(problem).__name__}: {problem}")


def _catch_up(state: State, arrays: dict[str, np.ndarray], lock: AbstractContextManager[Any]) -> None:
    """Absorb what was observed during a lesson, without the lock, so that little is left when it is adopted.

    Observations are absorbed one by one in any case, so that the belief is the same to the last bit; but where rewards
    are normalized, by the scale of the moment when the lesson is adopted, it has to wait for that.
    """
    training = state.training
    if training is None or state.normalize or not arrays:
        return
    reached = CaughtUp(training, with_leaves(training.belief, arrays), training.total, 0)
    while True:
        with lock:
            contexts, rewards = state.observations.since(reached.total)
            if len(rewards) <= CAUGHT_UP:
                state.caught_up = reached
                return
        belief, refused = state.programs.absorb(reached.belief, contexts, state.normalized(rewards))
        jax.block_until_ready(belief)
        reached = CaughtUp(training, belief, reached.total + len(rewards), reached.refused + refused)


def _relearn(state: State, training: TrainingInput) -> tuple[Lesson, dict[str, np.ndarray]]:
    """Learn from all observations at once, as `fit` does. If training fails, they are observed all the same."""
    observed, _ = state.programs.absorb(training.belief, training.contexts, training.rewards)
    if not len(training.rewards):
        return Lesson(True, float("nan"), 0), {}
    lesson, arrays = train(state, training._replace(belief=observed, relearns=False), 0)
    return lesson, changed_leaves(training.belief, with_leaves(observed, arrays))


def _unobserved(state: State, belief: Belief) -> Belief:
    """The belief with all arrays that observing changes reset; observing random rows shows which those are."""
    generator = np.random.default_rng(0)
    rows = [
        generator.normal(size=(ROWS, *shape)).astype(kind)
        if np.dtype(kind).kind == "f"
        else generator.integers(state.arms.capacity or 1, size=(ROWS, *shape)).astype(kind)
        for shape, kind in state.kept.leaves
    ]
    tried, _ = state.programs.absorb(state.initial_belief, state.kept.unflatten(rows), np.ones(ROWS, np.float32))
    initial = leaves_of(state.initial_belief, "")
    changed = changed_leaves(state.initial_belief, tried)
    return with_leaves(belief, {index: initial[f".{index}"] for index in changed})
