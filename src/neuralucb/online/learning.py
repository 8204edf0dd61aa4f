"""Training away from the lock: the belief that comes of it, also for a world that is to be forgotten in part."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.programs import Programs
from neuralucb.online.state import Base, State, changed_leaves, with_leaves

__all__ = ["Background", "Lesson", "train"]


class Lesson(NamedTuple):
    """What came of one call to `learn`."""

    promoted: bool
    """False where training diverged or the belief was not finite: the last good one serves on"""
    loss: float
    observations: int
    """how many it was trained on"""


def train(programs: Programs, state: State, base: Base, number: int) -> tuple[Lesson, dict[str, np.ndarray]]:
    """A lesson on what was observed, and the arrays of the belief that it changed.

    With a window the rest of the belief, Z above all, is made anew from the observations in it.
    """
    history = state.observations.history(base.contexts, base.rewards)
    after, info, finite = programs.learn(number, base.belief, history)
    if finite and state.observations.window is not None:
        kept = with_leaves(state.fresh, changed_leaves(base.belief, after))
        after, refused = programs.absorb(kept, base.contexts, base.rewards)
        finite = not refused
    promoted = finite and not bool(info.diverged)
    lesson = Lesson(promoted, float(info.loss), len(base.rewards))
    return lesson, changed_leaves(base.belief, after) if promoted else {}


class Background:
    """A thread that learns when told to, one lesson after the other."""

    def __init__(self, learn: Callable[[], Any]) -> None:
        self._learn = learn
        self._wanted = threading.Event()
        self._closing = False
        self.failure: str | None = None
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
            try:
                self._learn()
            except Exception as problem:  # shown by health(); a thread has nobody to raise to
                self.failure = f"{type(problem).__name__}: {problem}"
