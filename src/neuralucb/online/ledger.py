"""Decisions: what was chosen and why, and the ledger of those that wait for their reward."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.arms import ArmId
from neuralucb.runtime.errors import InputError

__all__ = ["BY_ARM", "SINGLE", "Asked", "Decision", "Explanation", "Ledger", "column"]

BY_ARM = ("mean", "width", "score", "propensities")


SINGLE = ("chosen", "greedy", "exploration", "propensity")
"""A choice among K arms is one row of numbers, [4K + 4]: each of the first for every arm, then each of the second.

greedy      the arm with the highest mean
exploration γ, the scale that turned widths into scores
propensity  of the arm chosen; NaN where there was no chance in it
"""


REMEMBERED = 1000
"""Decisions that can still be explained after their reward has come."""


class Decision(NamedTuple):
    """A choice, and why: what was believed of every arm."""

    id: str
    arm: ArmId
    """its id, or its number where arms have none"""
    position: int
    """its place among the arms asked about"""
    mean: np.ndarray
    width: np.ndarray
    score: np.ndarray
    propensity: float | None
    """the probability of this choice; None where there was no chance in it: nothing may be divided by that"""
    propensities: np.ndarray
    """of every arm"""
    version: int
    """of the belief that chose: how many observations and trainings it had behind it"""

    @property
    def deterministic(self) -> bool:
        """Whether there was no chance in it."""
        return self.propensity is None


class Explanation(NamedTuple):
    """A decision in full. Printed, it is a table."""

    decision: Decision
    arms: Sequence[ArmId]
    exploration: float
    """γ, the scale that turned widths into scores"""
    greedy: ArmId
    """the arm with the highest mean"""
    explored: bool
    """whether exploration changed the choice"""
    status: str
    """pending, observed or expired"""
    reward: float | None

    def __str__(self) -> str:
        decision = self.decision
        head = f"{decision.id}: arm {decision.arm}, belief {decision.version}, {self.status}"
        head += "" if self.reward is None else f", reward {self.reward:g}"
        why = f"exploration chose it over {self.greedy}" if self.explored else "it also has the highest mean"
        lines = [f"{head}; {why}", f"{'arm':>12} {'mean':>10} {'width':>10} {'score':>10} {'chance':>10}"]
        columns = decision.mean, decision.width, decision.score, decision.propensities
        for arm, *numbers in zip(self.arms, *columns, strict=True):
            mark = " <" if arm == decision.arm else ""
            lines.append(f"{arm!s:>12} " + " ".join(f"{number:>10.4g}" for number in numbers) + mark)
        return "\n".join(lines)


def column(rows: np.ndarray, name: str) -> np.ndarray:
    """A column of choices [B, 4K + 4], not a copy: [B, K] of every arm, or [B]."""
    if name in SINGLE:
        return rows[:, SINGLE.index(name) - len(SINGLE)]
    arms = rows.shape[1] // len(BY_ARM) - 1
    first = BY_ARM.index(name) * arms
    return rows[:, first : first + arms]


class Asked(NamedTuple):
    """Decisions made at once, B of them."""

    first: int
    """the number of the first"""
    version: int
    time: float
    arms: tuple[ArmId, ...] | None
    rows: np.ndarray
    """[B, 4K + 4], of which `column` gives one"""
    context: tuple[np.ndarray, ...]
    """of the arm chosen: the leaves"""

    def arm(self, position: int) -> ArmId:
        """Its id, or its number."""
        return position if self.arms is None else self.arms[position]

    def decisions(self, name: str) -> list[Decision]:
        """Each of them, as a caller gets it."""
        chosen, chances = (column(self.rows, name).tolist() for name in ("chosen", "propensity"))
        places = list(map(int, chosen))
        ids = [f"{name}-{number}" for number in range(self.first, self.first + len(places))]
        arms = places if self.arms is None else map(self.arms.__getitem__, places)
        mean, width, score, propensities = (column(self.rows, name) for name in BY_ARM)
        chances = [None if math.isnan(chance) else chance for chance in chances]
        columns = ids, arms, places, mean, width, score, chances, propensities, repeat(self.version)
        return list(map(Decision._make, zip(*columns, strict=False)))

    def alone(self, row: int) -> "Asked":
        """One of them, without the memory of the others."""
        if len(self.rows) == 1:
            return self
        rows, *context = (array[row : row + 1].copy() for array in (self.rows, *self.context))
        return Asked(self.first + row, self.version, self.time, self.arms, rows, tuple(context))

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(array.nbytes for array in (self.rows, *self.context))


class Ledger:
    """Decisions that wait for a reward, by number; and the last ones that had theirs, to be explained."""

    def __init__(self) -> None:
        self.pending: dict[int, Asked] = {}
        """by number; it is their row number - asked.first"""
        self.next = 0
        self._resolved: OrderedDict[int, tuple[Asked, str, float | None]] = OrderedDict()
        self._left: dict[int, int] = {}
        """of batches, by the number of their first decision: how many wait still"""

    def add(self, asked: Asked) -> None:
        """Take note of decisions."""
        count = len(asked.rows)
        self.pending.update(dict.fromkeys(range(asked.first, asked.first + count), asked))
        if count > 1:
            self._left[asked.first] = count
        self.next = max(self.next, asked.first + count)

    def contexts(self, numbers: Iterable[int]) -> tuple[np.ndarray, ...]:
        """The contexts of the arms chosen, one row a decision: their leaves."""
        places = self._places(numbers)
        if len(places) == 1:  # as it mostly is
            ((asked, row),) = places
            return tuple(leaf[row : row + 1] for leaf in asked.context)
        leaves = range(len(places[0][0].context))
        return tuple(np.stack([asked.context[leaf][row] for asked, row in places]) for leaf in leaves)

    def expected(self, numbers: Iterable[int]) -> np.ndarray:
        """What decisions that wait are expected to bring."""
        places = self._places(numbers)
        return np.asarray([asked.rows[row, int(asked.rows[row, -len(SINGLE)])] for asked, row in places], np.float64)

    def _places(self, numbers: Iterable[int]) -> list[tuple[Asked, int]]:
        """Where decisions stand: among which, in which row."""
        return [(asked := self.pending[number], number - asked.first) for number in numbers]

    def resolve(self, numbers: Sequence[int], rewards: Sequence[float] | None) -> None:
        """They had their reward, or never will."""
        for number, reward in zip(numbers, rewards if rewards is not None else [None] * len(numbers), strict=True):
            asked = self.pending.pop(number)
            self._resolved[number] = (
                asked.alone(number - asked.first),
                "expired" if reward is None else "observed",
                reward,
            )
            if asked.first in self._left:
                self._thin(asked)
        while len(self._resolved) > REMEMBERED:
            self._resolved.popitem(last=False)

    def _thin(self, asked: Asked) -> None:
        """Let go of a batch of which few wait still, so that they do not hold the memory of all."""
        self._left[asked.first] -= 1
        if self._left[asked.first] > len(asked.rows) // 8:
            return
        del self._left[asked.first]
        for row in range(len(asked.rows)):
            if asked.first + row in self.pending:
                self.pending[asked.first + row] = asked.alone(row)

    def numbers(self, decision_ids: Iterable[str], name: str) -> list[int]:
        """The numbers of decisions, all of which must wait, by their ids."""
        numbers = [_number(decision_id, name) for decision_id in decision_ids]
        for number in numbers:
            if number not in self.pending:
                raise InputError(f"decision {name}-{number} waits for no reward: it {self._what_became_of(number)}.")
        if len(set(numbers)) < len(numbers):
            raise InputError("decision_ids must be distinct: a decision has one reward.")
        return numbers

    def _what_became_of(self, number: int) -> str:
        if number >= self.next or number < 0:
            return "was never made"
        if number in self._resolved:
            return "has had its reward" if self._resolved[number][1] == "observed" else "has expired"
        return "has had its reward, or has expired"

    def older_than(self, seconds: float, now: float) -> list[int]:
        """Those that wait for so long. A clock that was set back makes none younger than 0."""
        return [number for number, asked in self.pending.items() if max(0.0, now - asked.time) >= seconds]

    def explain(self, decision_id: str, name: str) -> Explanation:
        """All about one decision."""
        number = _number(decision_id, name)
        if number in self.pending:
            asked, status, reward = self.pending[number], "pending", None
        elif number in self._resolved:
            asked, status, reward = self._resolved[number]
        else:
            what = self._what_became_of(number)
            raise InputError(f"decision {decision_id} {what}; pending ones and the last {REMEMBERED} can be explained.")
        asked = asked.alone(number - asked.first)
        (decision,) = asked.decisions(name)
        greedy, exploration = (column(asked.rows, each)[0] for each in ("greedy", "exploration"))
        return Explanation(
            decision, asked.arms or range(len(decision.mean)), float(exploration), asked.arm(int(greedy)),
            decision.position != int(greedy), status, reward,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """Memory held by what waits."""
        return sum({id(asked): asked.bytes for asked in self.pending.values()}.values())

    def export(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What waits, as plain values and arrays."""
        places = self._places(self.pending)
        fields = {
            "numbers": list(self.pending),
            "next": self.next,
            "versions": [asked.version for asked, _ in places],
            "times": [asked.time for asked, _ in places],
            "arms": [asked.arms for asked, _ in places],
            "lengths": [asked.rows.shape[1] for asked, _ in places],
        }
        empty = np.zeros(0, np.float32)
        arrays = {"rows": np.concatenate([asked.rows[row] for asked, row in places] or [empty])}
        if places:
            arrays |= {f"context.{leaf}": rows for leaf, rows in enumerate(self.contexts(self.pending))}
        return fields, arrays

    @classmethod
    def restored(cls, fields: dict[str, Any], arrays: dict[str, np.ndarray], leaves: int) -> "Ledger":
        """From what `export` gave."""
        ledger, start = cls(), 0
        for row, number in enumerate(fields["numbers"]):
            arms, end = fields["arms"][row], start + fields["lengths"][row]
            context = tuple(arrays[f"context.{leaf}"][row : row + 1] for leaf in range(leaves))
            ledger.add(Asked(
                number, fields["versions"][row], fields["times"][row], None if arms is None else tuple(arms),
                arrays["rows"][None, start:end], context,
            ))  # fmt: skip
            start = end
        ledger.next = int(fields["next"])
        return ledger


def _number(decision_id: str, name: str) -> int:
    """The number within an id."""
    whose, _, number = str(decision_id).rpartition("-")
    if f"{whose}-{number}" != decision_id or whose != name or not number.isdecimal() or str(int(number)) != number:
        raise InputError(f"decision {decision_id!r} is not of this bandit, whose ids begin with {name}-.")
    return int(number)
