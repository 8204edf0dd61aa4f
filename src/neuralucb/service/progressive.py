"""Progressive off-policy values of candidates: what each would have done is noted before it learns from the reward.

Decisions are watched from the moment they are made until they are complete, in the order in which they were made: were
they counted when their reward comes, clicks would be counted before the lack of them, and every value would be too
high. Of a busy service one in two, four, … is watched, which then stands for as many.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.evaluation.estimators import COLUMNS, Rounds, Sums, add, total
from neuralucb.evaluation.records import with_interval
from neuralucb.service.events import OPEN, Kept
from neuralucb.service.store import Status
from neuralucb.service.values import LEVEL, Value, value_of_policy, value_served

__all__ = ["Tally", "Watch", "Watched"]

MOST = 20_000
"""Decisions that are watched at a time."""

MOST_BYTES = 1 << 25
"""Of contexts that wait to be scored; while there are more, decisions are not watched."""


class Watched:
    """One decision."""

    __slots__ = (
        "allowed",
        "chances",
        "chosen",
        "contexts",
        "count",
        "first",
        "is_scored",
        "number",
        "propensities",
        "reward",
        "stands_for",
        "status",
        "waits",
    )

    def __init__(self, event: Kept, contexts: np.ndarray, allowed: np.ndarray, stands_for: int) -> None:
        self.number: int = event.number
        self.contexts: np.ndarray | None = contexts
        """[K, slots]; None once every candidate has scored it"""
        self.allowed: np.ndarray = allowed
        propensities = event.numbers("propensities").astype(np.float64)
        self.propensities: np.ndarray | None = propensities / propensities.sum()
        self.chosen: int = event.chosen
        self.first: int = int(allowed.argmax())
        """the first arm that was allowed"""
        self.count: int = int(allowed.sum())
        self.stands_for: int = stands_for
        self.chances: dict[str, float] = {}
        """by candidate: its probability of the arm used"""
        self.is_scored: bool = False
        self.waits: bool = event.due is not None
        """whether it is resolved in the end"""
        self.status: Status = event.status
        self.reward: float | None = None

    @property
    def propensity(self) -> float:
        """Of the arm used."""
        assert self.propensities is not None
        return float(self.propensities[self.chosen])


class Watch:
    """The decisions that are watched. `offer` and `resolve` are called beside traffic, and take microseconds."""

    def __init__(self, most: int = MOST) -> None:
        self.is_on: bool = False
        """whether there is a candidate to watch for"""
        self._most = most
        self._lock = threading.Lock()
        self._stride = 1
        self._watched: dict[int, Watched] = {}
        self._unscored: list[Watched] = []
        self._bytes = 0

    def offer(self, event: Kept, contexts: np.ndarray, allowed: np.ndarray) -> None:
        """Watch a decision that was just made, unless it is not one of the sample, or nothing can be learned of it."""
        if event.number % self._stride or event.imposed is not None or event.status not in OPEN:
            return
        with self._lock:
            if self._bytes > MOST_BYTES:
                return
            watched = self._watched[event.number] = Watched(event, contexts, allowed, self._stride)
            self._unscored.append(watched)
            self._bytes += contexts.nbytes
            if len(self._watched) > self._most:
                self._thin()

    def resolve(self, number: int, status: Status, reward: float | None) -> None:
        """Note what became of a decision."""
        watched = self._watched.get(number)
        if watched is not None:
            watched.reward, watched.status = reward, status

    def unscored(self) -> list[Watched]:
        """Decisions that were offered since; the caller scores them, and sets `is_scored`."""
        with self._lock:
            found, self._unscored, self._bytes = self._unscored, [], 0
        return found

    def complete(self) -> list[Watched]:
        """Scored decisions with their reward, in order, that are watched no longer."""
        found = []
        with self._lock:
            for number, each in list(self._watched.items()):
                if each.status in OPEN or not each.is_scored:
                    if each.waits or not each.is_scored:
                        break
                    continue  # it may wait for ever
                del self._watched[number]
                if each.status != "expired":
                    found.append(each)
            if self._stride > 1 and len(self._watched) < self._most // 4:
                self._stride //= 2
        return found

    def clear(self) -> None:
        """Watch none of those any longer."""
        with self._lock:
            self._watched, self._unscored, self._bytes = {}, [], 0

    def _thin(self) -> None:
        self._stride *= 2
        self._watched = {number: each for number, each in self._watched.items() if number % self._stride == 0}
        for each in self._watched.values():
            each.stands_for *= 2


class Tally(NamedTuple):
    """Sums over the decisions that a candidate was valued with."""

    candidate: Sums
    baseline: Sums
    """the first arm"""
    uniform: Sums
    unknown: int
    """decisions in which an arm that was allowed could not be chosen: of them nothing is known"""

    @classmethod
    def nothing(cls) -> "Tally":
        """Before the first decision."""
        return cls(Sums.nothing(), Sums.nothing(), Sums.nothing(), 0)

    def with_decisions(self, name: str, watched: Sequence[Watched]) -> "Tally":
        """With more decisions, as far as the candidate of this name has scored them."""
        scored = [each for each in watched if name in each.chances]
        known = [each for each in scored if _least(each) > 0]
        unknown = self.unknown + len(scored) - len(known)
        if not known:
            return self._replace(unknown=unknown)
        return Tally(
            _added(self.candidate, known, [each.chances[name] for each in known]),
            _added(self.baseline, known, [float(each.chosen == each.first) for each in known]),
            _added(self.uniform, known, [1 / each.count for each in known]),
            unknown,
        )

    def values(self) -> dict[str, Value]:
        """What each policy is worth."""
        if self.unknown > 9 * self.candidate.decisions:
            words = "nothing can be estimated: arms that were allowed could not be chosen; a floor above 0 cures it"
            return dict.fromkeys(("candidate", "served", "baseline", "uniform", "difference"), _nothing(words))
        return {
            "candidate": value_of_policy(self.candidate),
            "served": value_served(self.candidate),
            "baseline": value_of_policy(self.baseline),
            "uniform": value_of_policy(self.uniform),
            "difference": _difference(self.candidate),
        }

    def as_json(self) -> dict[str, Any]:
        """To be kept."""
        sums = {name: getattr(self, name) for name in ("candidate", "baseline", "uniform")}
        fields = {name: [each.tolist() if isinstance(each, np.ndarray) else each for each in one]
                  for name, one in sums.items()}  # fmt: skip
        return {**fields, "unknown": self.unknown}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Tally":
        """As it was kept."""

        def read(each: Sequence[Any]) -> Sums:
            return Sums(int(each[0]), np.asarray(each[1], float), np.asarray(each[2], float), each[3], each[4])

        candidate, baseline, uniform = (read(fields[name]) for name in ("candidate", "baseline", "uniform"))
        return cls(candidate, baseline, uniform, int(fields["unknown"]))


def _least(watched: Watched) -> float:
    assert watched.propensities is not None
    return float(watched.propensities[watched.allowed].min())


def _added(sums: Sums, watched: Sequence[Watched], target: Sequence[float]) -> Sums:
    count = len(watched)
    rounds = Rounds(
        np.asarray([each.reward or 0.0 for each in watched], np.float64),
        np.asarray([each.propensity for each in watched], np.float64),
        np.zeros(count, np.int64),
        np.asarray(target, np.float64).reshape(count, 1),
        np.zeros((count, 1)),
        np.asarray([each.stands_for for each in watched], np.float64),
    )
    return add(sums, rounds, switch=math.inf)


def _difference(sums: Sums) -> Value:
    """The candidate's value minus what was served; both come from the same rewards, so they vary together.

    By the delta method decision i moves the first by s w (r - v)/Σ s w, and the second by s (r - m)/Σ s.
    """
    theirs, ours = value_of_policy(sums), value_served(sums)
    if theirs.value is None or ours.value is None:
        return _nothing(theirs.words or ours.words)
    at = {name: index for index, name in enumerate(COLUMNS)}
    moves = np.zeros(len(COLUMNS))
    moves[at["snips"]], moves[at["weight"]] = 1 / total(sums, "weight"), -theirs.value / total(sums, "weight")
    moves[at["reward"]] -= 1 / total(sums, "decision")
    moves[at["decision"]] += ours.value / total(sums, "decision")
    error = math.sqrt(max(float(moves @ sums.second @ moves), 0.0))
    found = with_interval("difference", theirs.value - ours.value, error, theirs.effective, level=LEVEL)
    return Value(found.value, found.low, found.high, found.effective, theirs.words)


def _nothing(words: str) -> Value:
    return Value(None, None, None, 0.0, words)
