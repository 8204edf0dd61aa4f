"""Decisions: what was chosen and why, and the ledger of those that wait for their reward."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId

__all__ = ["Asked", "Decision", "Explanation", "Ledger"]

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
    version: int
    """of the belief that chose: how many observations and trainings it had behind it"""


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
        lines = [f"{head}; {why}", f"{'arm':>12} {'mean':>10} {'width':>10} {'score':>10}"]
        for arm, *numbers in zip(self.arms, decision.mean, decision.width, decision.score, strict=True):
            mark = " <" if arm == decision.arm else ""
            lines.append(f"{arm!s:>12} " + " ".join(f"{number:>10.4g}" for number in numbers) + mark)
        return "\n".join(lines)


class Asked(NamedTuple):
    """Decisions made at once, B of them; columns of equal length."""

    first: int
    """the number of the first"""
    version: int
    time: float
    arms: tuple[ArmId, ...] | None
    chosen: np.ndarray
    greedy: np.ndarray
    mean: np.ndarray
    width: np.ndarray
    score: np.ndarray
    exploration: np.ndarray
    context: Any
    """of the arm chosen"""

    def arm(self, position: int) -> ArmId:
        """Its id, or its number."""
        return position if self.arms is None else self.arms[position]

    def decision(self, row: int, name: str) -> Decision:
        """One of them."""
        position = int(self.chosen[row])
        return Decision(
            f"{name}-{self.first + row}", self.arm(position), position,
            self.mean[row], self.width[row], self.score[row], self.version,
        )  # fmt: skip


class _Place(NamedTuple):
    asked: Asked
    row: int


class Ledger:
    """Decisions that wait for a reward, by number; and the last ones that had theirs, to be explained."""

    def __init__(self) -> None:
        self.pending: dict[int, _Place] = {}
        self.next = 0
        self._resolved: OrderedDict[int, tuple[_Place, str, float | None]] = OrderedDict()

    def add(self, asked: Asked) -> None:
        """Take note of decisions."""
        for row in range(len(asked.chosen)):
            self.pending[asked.first + row] = _Place(asked, row)
        self.next = max(self.next, asked.first + len(asked.chosen))

    def contexts(self, numbers: Iterable[int]) -> Any:
        """The contexts of the arms chosen, one row a decision."""
        places = [self.pending[number] for number in numbers]
        if len(places) == 1:
            row = places[0].row
            return jax.tree.map(lambda leaf: leaf[row : row + 1], places[0].asked.context)
        rows = [jax.tree.map(lambda leaf, row=row: leaf[row], asked.context) for asked, row in places]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)

    def resolve(self, numbers: Iterable[int], rewards: Iterable[float] | None) -> None:
        """They had their reward, or never will."""
        for number, reward in (
            zip(numbers, rewards, strict=True) if rewards is not None else ((n, None) for n in numbers)
        ):
            status = "expired" if reward is None else "observed"
            self._resolved[number] = (self.pending.pop(number), status, reward)
        while len(self._resolved) > REMEMBERED:
            self._resolved.popitem(last=False)

    def numbers(self, decision_ids: Iterable[str], name: str) -> list[int]:
        """The numbers of decisions, all of which must wait, by their ids."""
        numbers = [_number(decision_id, name) for decision_id in decision_ids]
        for number in numbers:
            if number not in self.pending:
                raise ValueError(f"decision {name}-{number} waits for no reward: it {self._what_became_of(number)}.")
        if len(set(numbers)) < len(numbers):
            raise ValueError("decision_ids must be distinct: a decision has one reward.")
        return numbers

    def _what_became_of(self, number: int) -> str:
        if number >= self.next or number < 0:
            return "was never made"
        if number in self._resolved:
            return "has had its reward" if self._resolved[number][1] == "observed" else "has expired"
        return "has had its reward, or has expired"

    def older_than(self, time: float) -> list[int]:
        """Those that wait since before that time."""
        return [number for number, (asked, _) in self.pending.items() if asked.time < time]

    def explain(self, decision_id: str, name: str) -> Explanation:
        """All about one decision."""
        number = _number(decision_id, name)
        if number in self.pending:
            (asked, row), status, reward = self.pending[number], "pending", None
        elif number in self._resolved:
            (asked, row), status, reward = self._resolved[number]
        else:
            what = self._what_became_of(number)
            raise ValueError(
                f"decision {name}-{number} {what}; pending ones and the last {REMEMBERED} can be explained."
            )
        decision = asked.decision(row, name)
        greedy = int(asked.greedy[row])
        return Explanation(
            decision, asked.arms or range(len(decision.mean)), float(asked.exploration[row]), asked.arm(greedy),
            decision.position != greedy, status, reward,
        )  # fmt: skip

    def export(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What waits, as plain values and arrays."""
        places = list(self.pending.values())
        fields = {
            "numbers": list(self.pending),
            "next": self.next,
            "versions": [asked.version for asked, _ in places],
            "times": [asked.time for asked, _ in places],
            "arms": [asked.arms for asked, _ in places],
            "counts": [asked.mean.shape[1] for asked, _ in places],
        }
        arrays = {}
        for column in ("chosen", "greedy", "mean", "width", "score", "exploration"):
            rows = [np.atleast_1d(getattr(asked, column)[row]) for asked, row in places]
            arrays[column] = np.concatenate(rows) if rows else np.zeros(0, np.float32)
        if places:
            for leaf, values in enumerate(jax.tree.leaves(self.contexts(self.pending))):
                arrays[f"context.{leaf:04d}"] = values
        return fields, arrays

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray], structure: Any) -> None:
        """What `export` gave."""
        self.next = fields["next"]
        leaves = [arrays[name] for name in sorted(arrays) if name.startswith("context.")]
        start = 0
        for row, number in enumerate(fields["numbers"]):
            arms, end = fields["arms"][row], start + fields["counts"][row]
            scores = (arrays[column][None, start:end] for column in ("mean", "width", "score"))
            context = jax.tree.unflatten(structure, [leaf[row : row + 1] for leaf in leaves])
            one = slice(row, row + 1)
            self.add(Asked._make((
                number, fields["versions"][row], fields["times"][row], None if arms is None else tuple(arms),
                arrays["chosen"][one], arrays["greedy"][one], *scores, arrays["exploration"][one], context,
            )))  # fmt: skip
            start = end


def _number(decision_id: str, name: str) -> int:
    """The number within an id."""
    whose, _, number = str(decision_id).rpartition("-")
    if whose != name or not number.isdecimal():
        raise ValueError(f"decision {decision_id!r} is not of this bandit, whose ids begin with {name}-.")
    return int(number)
