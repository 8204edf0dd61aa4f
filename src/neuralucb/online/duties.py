"""What a bandit does by itself when it is due, lessons and snapshots: at once, in a thread, or in a process."""

from collections.abc import Callable
from typing import Any

from neuralucb.online.keeper import Keeper
from neuralucb.online.lesson_process import LessonProcess
from neuralucb.online.lessons import Background, Trainer, log_failure
from neuralucb.online.process_lock import ProcessLock
from neuralucb.online.state import State
from neuralucb.schedules import next_due, read_schedule

__all__ = ["Duties"]


class Duties:
    """Those of one bandit. If one fails, observations are safe all the same, and `problem` says why.

    lock      held while the state is read or changed
    learning  held during a lesson or a snapshot, of which there is one at a time
    learn     makes a lesson
    """

    def __init__(
        self,
        state: State,
        settings: dict[str, Any],
        keeper: Keeper | None,
        lock: ProcessLock,
        learning: ProcessLock,
        learn: Callable[[], object],
    ) -> None:
        self.problem: str | None = None
        """why the last lesson or snapshot that was due could not be made, if so"""
        self._state, self._settings, self._keeper = state, settings, keeper
        self._lock, self._learning, self._learn = lock, learning, learn
        self._schedule = read_schedule(settings["schedule"])
        how = settings["learning"]
        self.process: LessonProcess | None = (
            LessonProcess(state.programs.policy, settings) if how == "process" else None
        )
        """which makes lessons, if it is not this one"""
        self._background = Background(self._do_what_is_due) if how in ("background", "process") else None

    def catch_up(self, *, lessons: bool = True) -> None:
        """Make what is due. After a decision, which waits for no lesson, only a snapshot, and none during a lesson."""
        if not self._snapshot_is_due() and not (lessons and self._lesson_is_due()):
            return
        if self._background is not None:
            self._background.request()
        elif self._learning.take(wait=lessons):
            try:
                self._do_what_is_due(lessons=lessons)
            finally:
                self._learning.release()

    @property
    def trainer(self) -> Trainer | None:
        """What computes lessons, if it is not this process."""
        return None if self.process is None else self.process.train

    def next_lesson(self) -> int | None:
        """At which observation the next lesson is due, if one is."""
        is_manual = self._settings["learning"] == "manual"
        return None if is_manual else next_due(self._schedule, since=self._state.learned_at)

    def close(self) -> None:
        """Wait for the lesson under way, if a thread makes it, and end what was started for lessons."""
        if self._background is not None:
            self._background.close()
        if self.process is not None:
            with self._learning:
                self.process.close()

    def _lesson_is_due(self) -> bool:
        due, state = self.next_lesson(), self._state
        owes = state.relearns and self._settings["learning"] != "manual"
        return owes or (due is not None and due <= state.observations.total)

    def _snapshot_is_due(self) -> bool:
        return self._keeper is not None and self._keeper.is_due()

    def _do_what_is_due(self, *, lessons: bool = True) -> None:
        with self._learning:
            try:
                if lessons and self._lesson_is_due():
                    self._learn()
                if self._keeper is not None and self._keeper.is_due():
                    self._keeper.snapshot(self._lock)
                self.problem = None if lessons else self.problem
            except Exception as problem:
                self.problem = log_failure(problem)
