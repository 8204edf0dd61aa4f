"""Lessons beside traffic: a thread that learns when the schedule says so, and rests after each lesson.

With hundreds of rewards per second the schedule alone would make lessons one after the other, and decisions would wait
for the processor. A lesson of a second is followed by three without one.
"""

import threading
import time
from collections.abc import Callable

from neuralucb.online import OnlineBandit
from neuralucb.online.lessons import log_failure
from neuralucb.schedules import next_due, read_schedule

__all__ = ["Learner"]

LOOK_SECONDS = 0.05
"""Between two looks at whether a lesson is due."""

REST = 3.0
"""Seconds of rest per second of a lesson."""


class Learner:
    """Calls `learn` of a bandit whose own schedule is switched off.

    is_on  whether lessons are wanted at the moment
    """

    def __init__(self, bandit: OnlineBandit, is_on: Callable[[], bool]) -> None:
        self._bandit, self._is_on = bandit, is_on
        bandit.settings["learning"] = "manual"  # its thread goes on making snapshots
        self._schedule = read_schedule(bandit.settings["schedule"])
        self._stop = threading.Event()
        self.problem: str | None = None
        """why the last lesson could not be made, if so"""
        self._thread = threading.Thread(target=self._run, name="lessons", daemon=True)
        self._thread.start()

    def words(self) -> str:
        """When the last good lesson was."""
        state = self._bandit.state
        return state.lessons.words(state.observations.total, self._due() if self._is_on() else None)

    def close(self) -> None:
        """Wait for the lesson under way, and stop."""
        self._stop.set()
        self._thread.join()

    def _due(self) -> int | None:
        return next_due(self._schedule, since=self._bandit.state.learned_at)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            due = self._due()
            if due is None or due > self._bandit.state.observations.total or not self._is_on():
                continue
            began = time.monotonic()
            try:
                self._bandit.learn()
                self.problem = None
            except Exception as problem:
                self.problem = log_failure(problem)
            self._stop.wait(REST * (time.monotonic() - began))
