"""Training away from the lock: the belief that comes of it, also for a world that is to be forgotten in part."""

import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.codec import changed_leaves, leaves_of, with_leaves
from neuralucb.online.compiled import ROWS, Programs
from neuralucb.online.state import Base, State
from neuralucb.policy import Belief

__all__ = ["Background", "Lesson", "train", "warn"]


class Lesson(NamedTuple):
    """What came of one call to `learn`."""

    promoted: bool
    """False where training diverged or the belief was not finite: the last good one serves on"""
    loss: float
    observations: int
    """how many it was trained on"""


def train(programs: Programs, state: State, base: Base, number: int) -> tuple[Lesson, dict[str, np.ndarray]]:
    """A lesson on what was observed, and the arrays of the belief that it changed.

    With a window what observing has put together, Z above all, is made anew from the observations in it.
    """
    history = state.observations.history(base.contexts, base.rewards)
    after, info, finite = programs.learn(number, base.belief, history)
    if finite and state.observations.window is not None:
        after, refused = programs.absorb(_unobserved(state, after), base.contexts, base.rewards)
        finite = not refused
    promoted = finite and not bool(info.diverged)
    lesson = Lesson(promoted, float(info.loss), len(base.rewards))
    return lesson, changed_leaves(base.belief, after) if promoted else {}


def _unobserved(state: State, belief: Belief) -> Belief:
    """The belief with the arrays that observing changes as they were at first. Which those are is tried out."""
    generator = np.random.default_rng(0)
    rows = [
        generator.normal(size=(ROWS, *shape)).astype(kind)
        if np.dtype(kind).kind == "f"
        else generator.integers(state.arms.places or 1, size=(ROWS, *shape)).astype(kind)
        for shape, kind in state.shape.leaves
    ]
    tried, _ = state.programs.absorb(state.fresh, state.whole(rows), np.ones(ROWS, np.float32))
    fresh = leaves_of(state.fresh, "")
    return with_leaves(belief, {index: fresh[f".{index}"] for index in changed_leaves(state.fresh, tried)})


class Background:
    """A thread that learns when told to, one lesson after the other."""

    def __init__(self, learn: Callable[[], Any]) -> None:
        self._learn = learn
        self._wanted = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)
        self._thread.start()

    def want(self) -> None:
        """Ask for a lesson soon."""
        self._wanted.set()

    def close(self) -> None:
        """Let the lesson at hand end."""
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closing:
                return
            self._learn()


def warn(what: str, problem: Exception) -> str:
    """Tell the log, and return the words for `health()`: a caller whose reward was taken is not the one to raise to."""
    words = f"{what}: {type(problem).__name__}: {problem}"
    logging.getLogger("neuralucb").warning(words)
    return words
