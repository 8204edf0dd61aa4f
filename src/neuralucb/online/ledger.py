"""The ledger of decisions: what was chosen and why, which rewards are pending, and the last ones that are resolved."""

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.arms import ArmId
from neuralucb.online.decision_ids import DecisionIds
from neuralucb.online.pending import Pending, let_others_run
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = [
    "PER_ARM",
    "PER_CHOICE",
    "Decision",
    "DecisionBatch",
    "Explanation",
    "FrozenLedger",
    "Ledger",
    "column",
    "refitted",
]

PER_ARM = ("mean", "width", "score", "propensities")
PER_CHOICE = ("chosen", "greedy", "exploration", "propensity")
"""The columns of a choice among K arms, which is one row of 4K + 4 numbers: K of each of the first, then the second.

greedy       the arm with the highest mean
exploration  γ, the scale that turned widths into scores
propensity   of the arm chosen; NaN for a deterministic choice
"""
COLUMNS: dict[str, type[np.int64] | type[np.float64]] = {
    "numbers": np.int64, "versions": np.int64, "times": np.float64, "arms": np.int64, "lengths": np.int64,
}  # fmt: skip
"""What is stored of every pending decision beside its row and context; `arms` counts the sets of arms in `arm_sets`."""
EXPLAINABLE = 1000
"""Resolved decisions that can still be explained."""


@brief
class Decision(NamedTuple):
    """A choice, and what was believed of every arm when it was made.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2))
        >>> decision = bandit.select([[0.0, 1.0], [1.0, 0.0]])
        >>> bandit.observe(decision.id, reward=1.0)
        >>> decision.position in (0, 1), len(decision.score)
        (True, 2)
    """

    id: str
    arm: ArmId
    """its id, or its number where arms have no ids"""
    position: int
    """its index among the arms of the request"""
    mean: np.ndarray
    width: np.ndarray
    score: np.ndarray
    propensity: float | None
    """the probability of this choice; None where it was deterministic, and so must not be divided by"""
    propensities: np.ndarray
    """of every arm"""
    version: int
    """of the belief that chose: the number of observations and lessons before it"""

    @property
    def deterministic(self) -> bool:
        """Whether no other arm could have been chosen."""
        return self.propensity is None


@brief
class Explanation(NamedTuple):
    """A decision in full. Printed, it is a table with one line per arm.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2))
        >>> decision = bandit.select([[0.0, 1.0], [1.0, 0.0]])
        >>> len(str(bandit.explain(decision.id)).splitlines())  # a line of words, a head, and one line per arm
        4
    """

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
        lines = [f"{head}; {why}", f"{'arm':>12} {'mean':>10} {'width':>10} {'score':>10} {'propensity':>10}"]
        columns = decision.mean, decision.width, decision.score, decision.propensities
        for arm, *numbers in zip(self.arms, *columns, strict=True):
            mark = " <" if arm == decision.arm else ""
            lines.append(f"{arm!s:>12} " + " ".join(f"{number:>10.4g}" for number in numbers) + mark)
        return "\n".join(lines)


class DecisionBatch(NamedTuple):
    """B decisions that were made in one call."""

    first: int
    """the number of the first"""
    version: int
    time: float
    arms: tuple[ArmId, ...] | None
    rows: np.ndarray
    """[B, 4K + 4], read by `column`"""
    context: tuple[np.ndarray, ...]
    """the leaves of the chosen arms' contexts"""

    def arm(self, position: int) -> ArmId:
        """The id of an arm, or its number."""
        return position if self.arms is None else self.arms[position]

    def decisions(self, naming: DecisionIds) -> list[Decision]:
        """The decisions as a caller sees them."""
        chosen, propensity = (column(self.rows, name).tolist() for name in ("chosen", "propensity"))
        positions = list(map(int, chosen))
        ids = map(naming.id_of, range(self.first, self.first + len(positions)))
        arms = positions if self.arms is None else map(self.arms.__getitem__, positions)
        mean, width, score, propensities = (column(self.rows, name) for name in PER_ARM)
        propensity = [None if math.isnan(each) else each for each in propensity]
        columns = ids, arms, positions, mean, width, score, propensity, propensities, repeat(self.version)
        return list(map(Decision._make, zip(*columns, strict=False)))

    def single(self, row: int) -> "DecisionBatch":
        """One decision, as a copy that does not keep the others in memory."""
        if len(self.rows) == 1:
            return self
        rows, *context = (array[row : row + 1].copy() for array in (self.rows, *self.context))
        return DecisionBatch(self.first + row, self.version, self.time, self.arms, rows, tuple(context))

    @property
    def bytes(self) -> int:
        """Memory used."""
        return sum(array.nbytes for array in (self.rows, *self.context))


def column(rows: np.ndarray, name: str) -> np.ndarray:
    """A view of one column of choices [B, 4K + 4]: [B, K] for one per arm, or [B]."""
    if name in PER_CHOICE:
        return rows[:, PER_CHOICE.index(name) - len(PER_CHOICE)]
    arms = rows.shape[1] // len(PER_ARM) - 1
    first = PER_ARM.index(name) * arms
    return rows[:, first : first + arms]


class Ledger:
    """Pending decisions by number, and the last resolved ones, which can still be explained."""

    def __init__(self) -> None:
        self.pending: Pending[DecisionBatch] = Pending()
        """by number; a decision's row in its batch is `number - batch.first`"""
        self.bytes: int = 0
        """memory used by pending decisions"""
        self.next: int = 0
        """the number after the last decision recorded"""
        self.reserved: int = 0
        """the number after the last one reserved"""
        self._resolved: OrderedDict[int, tuple[DecisionBatch, str, float | None]] = OrderedDict()
        self._remaining: dict[int, int] = {}
        """pending decisions of each batch, by the number of its first"""

    def reserve(self, count: int) -> int:
        """The first of `count` numbers for new decisions; no number is reserved twice."""
        first = self.reserved
        self.reserved += count
        return first

    def release(self, first: int, count: int) -> None:
        """Take back numbers that were reserved for decisions that were not made, unless later ones are in use.

        The next decision is then the same as if they had never been asked for, also after a restart.
        """
        if self.reserved == first + count:
            self.reserved = first

    def add(self, batch: DecisionBatch) -> None:
        """Record decisions as pending."""
        count = len(batch.rows)
        end = batch.first + count
        self.pending.put(batch.first, count, batch)
        self.bytes += batch.bytes
        if count > 1:
            self._remaining[batch.first] = count
        self.next = max(self.next, end)
        self.reserved = max(self.reserved, end)

    def contexts(self, numbers: Iterable[int]) -> tuple[np.ndarray, ...]:
        """The leaves of the chosen arms' contexts, one row per decision."""
        located = self._locate(numbers)
        if len(located) == 1:  # the usual case, made fast
            ((batch, row),) = located
            return tuple(leaf[row : row + 1] for leaf in batch.context)
        leaves = range(len(located[0][0].context))
        return tuple(np.stack([batch.context[leaf][row] for batch, row in located]) for leaf in leaves)

    def origins(self, numbers: Iterable[int]) -> tuple[list[float], list[ArmId]]:
        """When pending decisions were made, and for which arms."""
        located, chosen = self._locate(numbers), -len(PER_CHOICE)
        return [batch.time for batch, _ in located], [batch.arm(int(batch.rows[row, chosen])) for batch, row in located]

    def expected_rewards(self, numbers: Iterable[int]) -> np.ndarray:
        """The expected reward of pending decisions, at the time when they were made."""
        located = self._locate(numbers)
        chosen = -len(PER_CHOICE)
        return np.asarray([batch.rows[row, int(batch.rows[row, chosen])] for batch, row in located], np.float64)

    def resolve(self, numbers: Sequence[int], rewards: Sequence[float] | None) -> None:
        """Record the rewards of pending decisions, or, for None, that they have expired."""
        for number, reward in zip(numbers, rewards if rewards is not None else [None] * len(numbers), strict=True):
            batch = self.pending.pop(number)
            status = "expired" if reward is None else "observed"
            self._resolved[number] = (batch.single(number - batch.first), status, reward)
            if batch.first in self._remaining:
                self._release(batch)
            else:
                self.bytes -= batch.bytes
        while len(self._resolved) > EXPLAINABLE:
            self._resolved.popitem(last=False)

    def all_pending(self, numbers: Sequence[int], naming: DecisionIds) -> np.ndarray:
        """The numbers as an array; those of decisions that are not pending, or are there twice, are refused."""
        for number in numbers:
            if number not in self.pending:
                raise InputError(
                    f"decision {naming.id_of(number)} {self._history(number)}; observe takes pending decisions only."
                )
        if len(set(numbers)) < len(numbers):
            raise InputError("decision_ids must be distinct: a decision has one reward.")
        return np.asarray(numbers, np.int64)

    def explain(self, decision_id: str, naming: DecisionIds) -> Explanation:
        """Everything about one decision."""
        number = naming.number_of(decision_id)
        if number in self.pending:
            batch, status, reward = self.pending[number], "pending", None
        elif number in self._resolved:
            batch, status, reward = self._resolved[number]
        else:
            raise InputError(
                f"decision {decision_id} {self._history(number)}; only pending decisions and the last {EXPLAINABLE} "
                "resolved ones can be explained."
            )
        batch = batch.single(number - batch.first)
        (decision,) = batch.decisions(naming)
        greedy, exploration = (column(batch.rows, name)[0] for name in ("greedy", "exploration"))
        return Explanation(
            decision, batch.arms or range(len(decision.mean)), float(exploration), batch.arm(int(greedy)),
            decision.position != int(greedy), status, reward,
        )  # fmt: skip

    def freeze(self) -> "FrozenLedger":
        """The ledger at this moment, however it changes later."""
        return FrozenLedger(self.pending.freeze(), self.next)

    @classmethod
    def restored(cls, fields: dict[str, Any], arrays: dict[str, np.ndarray], leaves: int) -> "Ledger":
        """The ledger that `FrozenLedger.export` described."""
        ledger, start = cls(), 0
        numbers, versions, times, arms, lengths = _columns(fields, arrays)
        for row, number in enumerate(numbers):
            end = start + lengths[row]
            context = tuple(arrays[f"context.{leaf}"][row : row + 1] for leaf in range(leaves))
            batch = DecisionBatch(
                number, versions[row], times[row], arms[row], arrays["rows"][None, start:end], context
            )
            ledger.add(batch)
            start = end
        ledger.next = ledger.reserved = int(fields["next"])
        return ledger

    def refit(self, shape: tuple[tuple[tuple[int, ...], str], ...]) -> None:
        """Give pending decisions contexts with these leaves: what another policy noted is dropped, or zeros."""
        made: dict[int, DecisionBatch] = {}
        for number in list(self.pending):
            batch = self.pending[number]
            if batch.first not in made:
                made[batch.first] = batch._replace(context=refitted(batch.context, shape))
            self.pending.put(number, 1, made[batch.first])

    def _locate(self, numbers: Iterable[int]) -> list[tuple[DecisionBatch, int]]:
        """The batch and row of pending decisions."""
        return [(batch := self.pending[number], number - batch.first) for number in numbers]

    def _release(self, batch: DecisionBatch) -> None:
        """Copy the last eighth of a batch that is pending, so that it does not keep the whole batch in memory."""
        self._remaining[batch.first] -= 1
        if self._remaining[batch.first] > len(batch.rows) // 8:
            return
        del self._remaining[batch.first]
        self.bytes -= batch.bytes
        for row in range(len(batch.rows)):
            if batch.first + row in self.pending:
                single = batch.single(row)
                self.pending.put(single.first, 1, single)
                self.bytes += single.bytes

    def _history(self, number: int) -> str:
        """What happened to a decision that is not pending."""
        if number >= self.next or number < 0:
            return "was never made"
        if number in self._resolved:
            return "already has its reward" if self._resolved[number][1] == "observed" else "has expired"
        return "already has its reward, or has expired"


class FrozenLedger(NamedTuple):
    """The pending decisions of one moment."""

    blocks: list[dict[int, DecisionBatch]]
    next: int

    def export(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As plain values and arrays: block by block, so that other threads are held up by one block at most."""
        arms_seen: dict[tuple[ArmId, ...], int] = {}
        texts: list[str] = []
        pieces: dict[str, list[np.ndarray]] = {"rows": [np.zeros(0, np.float32)]}
        for name, kind in COLUMNS.items():
            pieces[name] = [np.zeros(0, kind)]
        for block in self.blocks:
            let_others_run()
            located = [(batch, number - batch.first) for number, batch in block.items()]
            sets = [batch.arms for batch, _ in located]
            new = [arms for arms in dict.fromkeys(sets) if arms is not None and arms not in arms_seen]
            arms_seen |= {arms: len(arms_seen) + index for index, arms in enumerate(new)}
            texts += [json.dumps(new)[1:-1]] if new else []
            columns = {
                "numbers": list(block),
                "versions": [batch.version for batch, _ in located],
                "times": [batch.time for batch, _ in located],
                "arms": [-1 if arms is None else arms_seen[arms] for arms in sets],
                "lengths": [batch.rows.shape[1] for batch, _ in located],
            }
            for name, values in columns.items():
                pieces[name].append(np.asarray(values, COLUMNS[name]))
            pieces["rows"].append(np.concatenate([batch.rows[row] for batch, row in located]))
            for leaf in range(len(located[0][0].context)):
                rows = np.stack([batch.context[leaf][row] for batch, row in located])
                pieces.setdefault(f"context.{leaf}", []).append(rows)
        arrays = {name: np.concatenate(parts) for name, parts in pieces.items()}
        arrays["arm_sets"] = np.frombuffer(f"[{','.join(texts)}]".encode(), np.uint8)
        return {"next": self.next}, arrays


def refitted(context: Sequence[np.ndarray], shape: tuple[tuple[tuple[int, ...], str], ...]) -> tuple[np.ndarray, ...]:
    """Leaves of contexts of another policy, for one that notes more or less of a decision: the note is the last."""
    missing = (np.zeros((len(context[0]), *size), kind) for size, kind in shape[len(context) :])
    if len(context) == len(shape) and context[-1].shape[1:] != shape[-1][0]:  # two policies that note different things
        return (*context[:-1], np.zeros((len(context[0]), *shape[-1][0]), shape[-1][1]))
    return (*context[: len(shape)], *missing)


def _columns(fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[list[Any], ...]:
    """Numbers, versions, times, arms and lengths of pending decisions; version 0.1 kept them among the fields."""
    if "numbers" in fields:
        numbers, versions, times, lengths = (fields[name] for name in ("numbers", "versions", "times", "lengths"))
        sets = [None if arms is None else tuple(arms) for arms in fields["arms"]]
    else:
        numbers, versions, times, lengths = (
            arrays[name].tolist() for name in ("numbers", "versions", "times", "lengths")
        )
        known = [tuple(arms) for arms in json.loads(arrays["arm_sets"].tobytes())]
        sets = [None if index < 0 else known[index] for index in arrays["arms"].tolist()]
    return numbers, versions, times, sets, lengths
