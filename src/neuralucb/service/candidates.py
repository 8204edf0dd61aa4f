"""The candidates of the embedded store: a thread in which they learn and are valued, and the promotion of one.

All of them together work a quarter of the time at most, and never on a request: a decision that was made is handed to
them, and what they would have done is computed later, but before they learn from its reward.
"""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from neuralucb.online import OnlineBandit
from neuralucb.online.compiled import Programs
from neuralucb.online.lesson_record import warn
from neuralucb.policy import Belief
from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.service.candidate import Shadow
from neuralucb.service.events import EventBook, candidates_fields
from neuralucb.service.progressive import Watch
from neuralucb.service.servable import servable
from neuralucb.service.store import Candidate, CandidateReport, Settings

__all__ = ["ORIGINAL", "Candidates"]

MOST = 4
"""Candidates at a time: each learns as much as the policy that decides."""

ORIGINAL = "original"
"""The name of the policy with which a store was made."""

LOOK_SECONDS = 0.1
REST = 3.0
"""Seconds of rest per second of work."""

SAVE_SECONDS = 60.0


class Candidates:
    """Those of a bandit and its book.

    floor     what the service chooses at random at the moment
    schedule  when the service learns
    arms      to how many fewer arms are padded
    """

    def __init__(
        self, bandit: OnlineBandit, book: EventBook, folder: Path, *, arms: int, floor: Callable[[], float],
        schedule: Callable[[], str],
    ) -> None:  # fmt: skip
        self.watch: Watch = Watch()
        self._bandit, self._book, self._folder, self._arms = bandit, book, folder, arms
        self._floor, self._schedule = floor, schedule
        self._lock = threading.Lock()
        """held while they work, and while one is added, removed or promoted"""
        self._shadows: dict[str, Shadow] = {}
        self._saved_at = time.monotonic()
        book.resolved = self.watch.resolve
        for name, candidate in book.candidates.items():
            try:
                self._shadows[name] = self._opened(name, candidate)
            except Exception as problem:  # an algorithm that this version does not have: the service goes on
                warn(f"candidate {name} cannot be followed: {type(problem).__name__}: {problem}")
        self.watch.is_on = bool(self._shadows)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="candidates", daemon=True)
        self._thread.start()

    def deciding(self) -> tuple[str, Candidate]:
        """The name of the policy that decides, and what it is."""
        if self._book.deciding is not None:
            return self._book.deciding
        origin = self._bandit.policy.origin
        assert origin is not None
        return ORIGINAL, Candidate(origin.algorithm, dict(origin.settings))

    def reports(self) -> list[CandidateReport]:
        """How each does; waits for no lesson."""
        return [shadow.report() for shadow in list(self._shadows.values())]

    def put(self, name: str, candidate: Candidate) -> bool:
        """Add one, or replace it by another; returns whether it is new."""
        plan = self._book.plan
        assert plan is not None
        servable(candidate.algorithm, candidate.options, plan.slots)  # refused before it waits for a lesson
        with self._lock:
            if name == self.deciding()[0]:
                raise InputError(f"name must not be {name!r}, which decides; choose another.")
            others = self._book.candidates
            if others.get(name) == candidate and name in self._shadows:
                return False
            if name not in others and len(others) >= MOST:
                raise InputError(f"at most {MOST} candidates can be followed; remove one first.")
            shutil.rmtree(self._home(name), ignore_errors=True)
            opened = self._opened(name, candidate)
            self._record(self._book.deciding, {**others, name: candidate})  # only what can be followed
            self._shadows = {**self._shadows, name: opened}
            self.watch.is_on = True
            return name not in others

    def remove(self, name: str) -> bool:
        """Returns whether there was such a candidate."""
        with self._lock:
            others = self._book.candidates
            if name not in others:
                return False
            self._drop(name)
            self._record(self._book.deciding, {other: each for other, each in others.items() if other != name})
            return True

    def promote(self, name: str, settings: Settings, warm_up: Callable[[Programs, Belief], None]) -> None:
        """Let one decide; what decided becomes a candidate, with all that it has learned.

        settings  that count at the moment; a floor or schedule of the candidate's becomes the service's
        warm_up   compiles decisions, before any needs them
        """
        with self._lock:
            shadow = self._shadows.get(name)
            if shadow is None:
                known = ", ".join(self._shadows) or "none"
                raise InputError(f"there is no candidate {name!r:.60}; there are: {known}.")
            if shadow.failure is not None:
                raise InputError(f"candidate {name!r} must not have failed: {shadow.failure}")
            chosen, (before, was) = shadow.candidate, self.deciding()
            if chosen.floor is not None:
                settings, was = settings._replace(floor=chosen.floor), was._replace(floor=self._floor())
            if chosen.schedule is not None:
                was = was._replace(schedule=self._schedule())
                settings = settings._replace(schedule=chosen.schedule)
            others = {other: each for other, each in self._book.candidates.items() if other != name} | {before: was}
            warm_up(shadow.state.programs, shadow.state.belief)
            kept: list[Shadow] = []

            def keep() -> None:
                kept.append(Shadow(before, was, self._bandit.state.twin()))
                kept[0].save(self._home(before))

            memo = {
                "candidates": candidates_fields((name, chosen._replace(floor=None, schedule=None)), others),
                "settings": settings._asdict(),
            }
            self._bandit.adopt(shadow.state, memo=memo, prepare=keep)
            self._shadows = {other: each for other, each in self._shadows.items() if other != name} | {before: kept[0]}
            self.watch.clear()
            for each in self._shadows.values():
                each.value_anew()
            shutil.rmtree(self._home(name), ignore_errors=True)

    def close(self) -> None:
        """Wait for the lesson under way, and keep what was learned, if it can be kept: the journal has all rewards."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        try:
            self._save()
        except StorageError as problem:
            warn(f"what candidates learned since it was last kept will be learned again: {problem}")

    def step(self) -> None:
        """Score what was decided, learn what was observed, count what is complete: in this order."""
        with self._lock:
            working = [each for each in self._shadows.values() if each.failure is None]
            if not working:
                return
            new = [each for each in working if each.state.observations.total == 0]
            for each in working:
                self._try(each, self._follow)
            unscored = self.watch.unscored()  # all of them were made before what was just observed
            for each in working:
                if unscored and each not in new:  # a new one would be valued before it has learned anything
                    self._try(each, lambda shadow: shadow.score(unscored, self._arms))
            for decision in unscored:
                decision.contexts, decision.is_scored = None, True
            for each in working:
                self._try(each, lambda shadow: shadow.learn(lambda: self._book.settings.learning, self._schedule()))
            complete = self.watch.complete()
            if complete:
                for each in working:
                    each.count(complete)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._save()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            began = time.monotonic()
            try:
                self.step()
            except Exception as problem:  # of none of them: a disk that is full, say
                warn(f"candidates could not be followed: {type(problem).__name__}: {problem}")
                self._stop.wait(SAVE_SECONDS)
            self._stop.wait(REST * (time.monotonic() - began))

    def _follow(self, shadow: Shadow) -> None:
        if shadow.candidate.floor is None:
            shadow.state.programs.set_floor(self._floor())
        if not self._bandit.share(shadow.state):
            shadow.value_anew()

    def _try(self, shadow: Shadow, work: Callable[[Shadow], object]) -> None:
        if shadow.failure is not None:
            return
        try:
            work(shadow)
        except Exception as problem:
            shadow.failure = warn(
                f"candidate {shadow.name} was stopped: {type(problem).__name__}: {str(problem)[:200]}"
            )

    def _opened(self, name: str, candidate: Candidate) -> Shadow:
        assert self._book.plan is not None
        shadow = Shadow.new(name, candidate, self._bandit, self._book.plan.slots, self._floor())
        shadow.restore(self._home(name))
        return shadow

    def _record(self, deciding: tuple[str, Candidate] | None, others: dict[str, Candidate]) -> None:
        self._bandit.record({"candidates": candidates_fields(deciding, others)})

    def _drop(self, name: str) -> None:
        self._shadows = {other: each for other, each in self._shadows.items() if other != name}
        self.watch.is_on = bool(self._shadows)
        if not self.watch.is_on:
            self.watch.clear()
        shutil.rmtree(self._home(name), ignore_errors=True)

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        with self._lock:
            for name, shadow in self._shadows.items():
                if shadow.failure is None:
                    shadow.save(self._home(name))

    def _home(self, name: str) -> Path:
        return self._folder / f"candidate-{name}"
