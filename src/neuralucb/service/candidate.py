"""One candidate: the state of a policy that learns from what another one decided, and says what it would have done."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.online import OnlineBandit, snapshots
from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.online.context_shape import shape_of_policy
from neuralucb.online.ledger import column
from neuralucb.online.lessons import give_lesson
from neuralucb.online.snapshots import Retention, Snapshot
from neuralucb.online.state import State
from neuralucb.runtime.errors import StorageError
from neuralucb.schedules import next_due, read_schedule
from neuralucb.service.progressive import Tally, Watched
from neuralucb.service.servable import servable
from neuralucb.service.store import Candidate, CandidateReport

__all__ = ["Shadow"]

TOGETHER = 8
"""Decisions that are scored in one call: always as many, so that one program is compiled."""


class Shadow:
    """A candidate at work. Used by one thread, but for `report`.

    floor  what the service chooses at random
    """

    def __init__(self, name: str, candidate: Candidate, state: State, *, since: float | None = None) -> None:
        self.name: str = name
        self.candidate: Candidate = candidate
        self.state: State = state
        self.failure: str | None = None
        """why it was stopped, if so"""
        self._since = time.time() if since is None else since
        self._tally = Tally.nothing()
        self._unscorable = 0
        self._values: dict[str, Any] | None = None

    @classmethod
    def new(cls, name: str, candidate: Candidate, bandit: OnlineBandit, slots: int, floor: float) -> "Shadow":
        """One that has learned nothing yet."""
        policy = servable(candidate.algorithm, candidate.options, slots)
        settings = bandit.settings
        programs = Programs(policy, settings["seed"], floor if candidate.floor is None else candidate.floor)
        state = State(
            programs, shape_of_policy(policy, None), window=settings["window"], normalize=settings["normalize"],
            capacity=None,
        )  # fmt: skip
        return cls(name, candidate, state)

    def restore(self, folder: Path) -> None:
        """Continue from what was saved, if that is of the same candidate."""
        if not snapshots.numbers(folder):
            return
        try:
            _, found = snapshots.read(folder)
            if found.fields["candidate"] != _plain(self.candidate):
                return
            empty = {
                f"history.{name}": each for name, each in self.state.context_arrays(self.state.kept.zeros(0)).items()
            }
            self.state.restore(found.fields["state"], {**found.arrays, **empty, "history.rewards": np.zeros(0)})
            self._since, self._tally = found.fields["since"], Tally.from_json(found.fields["tally"])
        except (StorageError, ValueError, KeyError, TypeError):
            self.state.start_over()  # it learns again from the observations, which are in the journal

    def save(self, folder: Path) -> None:
        """Keep what was learned; observations are the bandit's."""
        fields, arrays = self.state.export()
        about = {
            "candidate": _plain(self.candidate), "since": self._since, "tally": self._tally.as_json(), "state": fields,
        }  # fmt: skip
        kept = {name: each for name, each in arrays.items() if not name.startswith("history.")}
        snapshots.write(folder, Snapshot(about, kept), retain=Retention(1), step=lambda name: None)

    def score(self, watched: Sequence[Watched], arms: int) -> None:
        """Note with which probability it would have used the arm that was used.

        arms  to which fewer are padded
        """
        groups: dict[int, list[Watched]] = {}
        for each in watched:
            groups.setdefault(max(arms, power_of_two(len(each.allowed))), []).append(each)
        for size, group in groups.items():
            for first in range(0, len(group), TOGETHER):
                self._score(group[first : first + TOGETHER], size)

    def learn(self, is_on: Callable[[], bool], schedule: str) -> bool:
        """Absorb what was observed, and make the lesson that is due; whether there was one."""
        self.state.absorb_buffer()
        total = self.state.observations.total
        due = next_due(read_schedule(self.candidate.schedule or schedule), since=self.state.learned_at)
        if not is_on() or due is None or due > total:
            return False
        give_lesson(self.state, _Nobody(), self.state.apply)
        return True

    def count(self, watched: Sequence[Watched]) -> None:
        """Count decisions that are complete."""
        self._tally, self._values = self._tally.with_decisions(self.name, watched), None

    def value_anew(self) -> None:
        """Forget what decisions so far were worth."""
        self._tally, self._since, self._values = Tally.nothing(), time.time(), None

    def report(self) -> CandidateReport:
        """How it does."""
        values = self._values = self._values or self._tally.values()
        state, problems = self.state, [self.failure]
        problems.append(state.lessons.failure(state.counts["refused"]))
        if self._unscorable:
            problems.append(f"{self._unscorable} decisions could not be scored: its scores were not finite")
        return CandidateReport(
            self.name, self.candidate, self._since, state.observations.total, state.counts["learned"],
            self._tally.candidate.decisions, values, "; ".join(filter(None, problems)) or None,
        )  # fmt: skip

    def _score(self, watched: Sequence[Watched], size: int) -> None:
        (slots,) = self.state.shape.leaves[0][0]
        contexts = np.zeros((TOGETHER, size, slots), np.float32)
        available = np.zeros((TOGETHER, size), bool)
        available[len(watched) :, 0] = True
        for row, each in enumerate(watched):
            count = len(each.allowed)
            contexts[row, :count], available[row, :count] = each.contexts, each.allowed
        first = watched[0].number
        rows = self.state.programs.choose_many(first, self.state.belief, contexts, available, capacity=size).rows
        chances = np.where(available, column(rows, "propensities"), 0.0).astype(np.float64)
        finite = np.isfinite(np.where(available, column(rows, "score"), 0.0)).min(axis=1).tolist()
        for row, each in enumerate(watched):
            if finite[row] and math.isfinite(sum_ := float(chances[row].sum())) and sum_ > 0:
                each.chances[self.name] = float(chances[row, each.chosen] / sum_)
            else:
                self._unscorable += 1


class _Nobody:
    """A lock that nobody else wants."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _plain(candidate: Candidate) -> dict[str, Any]:
    return {**candidate._asdict(), "options": dict(candidate.options)}
