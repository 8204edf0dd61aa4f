"""Recent decisions with their outcomes, in bounded memory: all of them while there is room, then a uniform sample.

An event may wait minutes for its reward, in which busy services make more decisions than are worth remembering. Had
the oldest to go, only what was rewarded at once would be known, and every mean would be too high. So instead of
forgetting a decision that still waits, every second one is forgotten, and each of the others stands for two.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from neuralucb.service.store import Outcome, Status

__all__ = ["RecentOutcomes"]

MOST = 4096
"""Decisions that are remembered."""

REACH = 2.0
"""How far back they go at least, in times that events wait for rewards: so at least half of them are complete."""

STATUSES: tuple[Status, ...] = ("inactive", "waiting", "observed", "defaulted", "expired")
"""In the order in which a snapshot numbers them."""


class RecentOutcomes:
    """A sample of the last decisions, by number. Time is that of the newest decision, so that a replay agrees."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._stride = 1
        """one decision in so many is remembered"""
        self._kept: dict[int, Outcome] = {}

    def wants(self, number: int) -> bool:
        """Whether the decision of this number is to be remembered."""
        return number % self._stride == 0

    def add_wanted(self, numbers: Sequence[int], outcomes: Callable[[Sequence[int]], Iterator[Outcome]]) -> None:
        """Of decisions with these numbers, remember those that are wanted; only their outcomes are asked for."""
        start = 0
        while start < len(numbers):
            stride = self._stride
            wanted = [row for row in range(start, len(numbers)) if self.wants(numbers[row])]
            start = len(numbers)
            for row, outcome in zip(wanted, outcomes(wanted), strict=True):
                self.add(outcome)
                if self._stride != stride:  # others of the rest are wanted now
                    start = row + 1
                    break

    def add(self, outcome: Outcome) -> None:
        """Remember a decision that is wanted."""
        self._kept[outcome.number] = outcome._replace(stands_for=self._stride)
        if len(self._kept) <= self._most:
            return
        oldest = next(iter(self._kept.values()))
        waits = math.inf if oldest.due is None else (outcome.time - oldest.time) / max(oldest.due - oldest.time, 1e-3)
        if waits < REACH:
            self._stride *= 2
            self._kept = {
                number: each._replace(stands_for=self._stride)
                for number, each in self._kept.items()
                if number % self._stride == 0
            }
            return
        del self._kept[oldest.number]
        if self._stride > 1 and waits > 2.5 * REACH:  # half as far back would do
            self._stride //= 2

    def change(self, number: int, status: Status, reward: float | None, due: float | None) -> None:
        """Note what became of a decision, if it is remembered."""
        if number in self._kept:
            self._kept[number] = self._kept[number]._replace(status=status, reward=reward, due=due)

    def forget(self, numbers: Sequence[int]) -> None:
        """Remember these no longer."""
        for number in numbers:
            self._kept.pop(number, None)

    def listed(self) -> list[Outcome]:
        """Those remembered, oldest first."""
        return list(self._kept.values())

    def freeze(self) -> Callable[[], dict[str, np.ndarray]]:
        """Those of this moment, exported later."""
        kept, stride = self.listed(), self._stride

        def export() -> dict[str, np.ndarray]:
            arms = list(dict.fromkeys(each.arm for each in kept))
            places = {arm: place for place, arm in enumerate(arms)}
            columns: dict[str, Sequence[Any]] = {
                name: [each[index] for each in kept] for index, name in enumerate(Outcome._fields)
            }
            columns["arm"] = [places[each.arm] for each in kept]
            columns["status"] = [STATUSES.index(each.status) for each in kept]
            text = json.dumps({"stride": stride, "arms": arms}).encode()
            return {
                "outcomes": np.stack([_numbers(each) for each in columns.values()], axis=1),
                "outcome_arms": np.frombuffer(text, np.uint8),
            }

        return export

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Become what was exported; nothing by a version that did not."""
        if "outcomes" not in arrays:
            return
        fields = json.loads(arrays["outcome_arms"].tobytes())
        self._stride = int(fields["stride"])
        outcomes = (_outcome(row, fields["arms"]) for row in arrays["outcomes"].tolist())
        self._kept = {each.number: each for each in outcomes}


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """A column; NaN for what is None."""
    return np.asarray([math.nan if value is None else value for value in values], np.float64)


def _outcome(row: list[float], arms: list[str]) -> Outcome:
    read: dict[str, Any] = dict(zip(Outcome._fields, row, strict=True))
    read |= {name: int(read[name]) for name in ("number", "allowed", "stands_for")}
    read |= {name: bool(read[name]) for name in ("is_first", "explored")}
    read |= {name: None if read[name] != read[name] else read[name] for name in ("reward", "due")}
    return Outcome(**{**read, "arm": arms[int(read["arm"])], "status": STATUSES[int(read["status"])]})
