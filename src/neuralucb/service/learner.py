"""Lessons and snapshots beside traffic: a thread that makes them when they are due, and rests after each.

With hundreds of rewards per second the schedule alone would make lessons one after the other, and decisions would wait
for the processor. A lesson of a second is followed by nine without one; what it cost once, to start its process and to
compile, is not counted. Snapshots bound what a restart has to replay.
"""

import math
import threading
import time
from collections.abc import Callable

from neuralucb.online import OnlineBandit
from neuralucb.online.compiled import history_capacities, history_capacity
from neuralucb.online.lessons import log_failure
from neuralucb.runtime.decimals import decimal
from neuralucb.schedules import next_due, read_schedule
from neuralucb.service.rest import Rest
from neuralucb.service.store import LessonReport

__all__ = ["Learner"]

LOOK_SECONDS = 0.05
"""Between two looks at whether a lesson is due."""

REST = 9.0
"""Seconds of rest per second of a lesson or a snapshot: the slowest decisions are those beside one."""

FAILED_SECONDS = 5.0
"""Before another process is started for lessons, where one could not be, or has ended."""

SOON = 500
"""Observations for whose lessons all is compiled before the first one."""

SNAPSHOT_CHANGES, SNAPSHOT_SECONDS = 10_000, 60.0
"""Decisions and rewards, and seconds, between two snapshots: both must have passed."""

CLOSING_CHANGES = 500
"""Decisions and rewards from which a snapshot is made before the folder is closed."""


class Learner:
    """Calls `learn` of a bandit whose own schedule is switched off.

    is_on     whether lessons are wanted at the moment
    schedule  when to learn; None: as the bandit's settings say
    """

    def __init__(self, bandit: OnlineBandit, is_on: Callable[[], bool], schedule: Callable[[], str | None]) -> None:
        self._bandit: OnlineBandit = bandit
        self._is_on = is_on
        bandit.settings["learning"] = "manual"  # its thread goes on making snapshots
        self._schedule = schedule
        self._stop = threading.Event()
        is_long = bandit.health().replayed >= CLOSING_CHANGES  # the next restart need not replay it all again
        self._snapshot_at = (-SNAPSHOT_SECONDS, -SNAPSHOT_CHANGES) if is_long else (time.monotonic(), self._changes())
        self.pause: threading.Lock = threading.Lock()
        """held by whoever wants neither lessons nor snapshots to begin for a while"""
        self.problem: str | None = None
        """why the last lesson or snapshot could not be made, if so"""
        self._rest = Rest(REST)
        self._thread = threading.Thread(target=self._run, name="lessons", daemon=True)
        self._thread.start()

    def prepare(self) -> bool:
        """Start the process that makes lessons, if another one does, and compile the next; whether that went well."""
        process = self._bandit.lesson_process
        try:
            if process is not None:
                count, window = self._count(), self._bandit.state.observations.window
                soon = count + SOON if window is None else min(count + SOON, window)
                process.prepare(self._bandit.state, history_capacities(count, soon))
        except RuntimeError as problem:
            self.problem = log_failure(problem)
            return False
        return True

    def words(self) -> str:
        """When the last good lesson was."""
        state = self._bandit.state
        return state.lessons.words(state.observations.total, self._due() if self._is_on() else None)

    def close(self) -> None:
        """Wait for the lesson under way, and stop; what would take long to replay is in a snapshot then."""
        if self._stop.is_set():
            return
        self._stop.set()
        if self._bandit.lesson_process is not None:
            self._bandit.lesson_process.stop_compiling()
        self._thread.join()
        if self._changes() - self._snapshot_at[1] >= CLOSING_CHANGES:
            self._make(self._snapshot)

    def _due(self) -> int | None:
        schedule = self._schedule() or self._bandit.settings["schedule"]
        return next_due(read_schedule(schedule), since=self._bandit.state.learned_at)

    def _run(self) -> None:
        is_first = True
        while not self._stop.wait(LOOK_SECONDS):
            with self.pause:
                began = time.monotonic()
            rest = 0.0
            if is_first and self._is_on() and not self.prepare():
                rest = FAILED_SECONDS
            elif self._is_lesson_due():
                began, is_compiled = time.monotonic(), self._is_compiled()
                self._make(self._learn)
                seconds = time.monotonic() - began
                rest = self._rest.after(seconds, was_compiled=is_compiled)
            if began - self._snapshot_at[0] >= SNAPSHOT_SECONDS and (
                self._changes() - self._snapshot_at[1] >= SNAPSHOT_CHANGES
            ):
                wrote = time.monotonic()
                self._make(self._snapshot)
                rest += REST * (time.monotonic() - wrote)
            is_first = False
            self._stop.wait(rest)

    def _count(self) -> int:
        """Observations to learn from."""
        return len(self._bandit.state.observations.in_window()[1])

    def _is_compiled(self) -> bool:
        """Whether the next lesson needs nothing that its process has not compiled; where there is none, who knows."""
        process = self._bandit.lesson_process
        return process is None or process.has_prepared([history_capacity(self._count())])

    def _is_lesson_due(self) -> bool:
        if self._bandit.state.relearns:  # also while learning is paused: what was removed must not be known
            return True
        due = self._due()
        return due is not None and due <= self._bandit.state.observations.total and self._is_on()

    def _changes(self) -> int:
        counts = self._bandit.state.counts
        return counts["decisions"] + counts["observed"]

    def _learn(self) -> None:
        began = time.monotonic()
        lesson = self._bandit.learn()
        loss = decimal(lesson.loss) if math.isfinite(lesson.loss) else None
        report = LessonReport(
            time.time(), lesson.observations, lesson.promoted, loss, lesson.failure, time.monotonic() - began
        )
        self._bandit.record({"lesson": list(report)})

    def _snapshot(self) -> None:
        self._snapshot_at = time.monotonic(), self._changes()
        self._bandit.snapshot()

    def _make(self, work: Callable[[], object]) -> None:
        try:
            work()
            self.problem = None
        except Exception as problem:
            self.problem = log_failure(problem)
