"""The events that the embedded store remembers, with arms, settings and vocabulary: an annex of the bandit's journal.

Everything changes by memos alone, the same live and after a restart. Who makes a memo has checked it: nothing is
refused here. Records are never changed but replaced, so that a moment can be kept by copying a dictionary.
"""

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.features import Vocabulary
from neuralucb.online.annex import Exported
from neuralucb.online.ledger import PER_ARM, PER_CHOICE, column
from neuralucb.online.pending import let_others_run
from neuralucb.runtime.decimals import decimal, decimals
from neuralucb.service.recent import RecentOutcomes
from neuralucb.service.store import (
    Answer,
    Arm,
    Candidate,
    Explained,
    LessonReport,
    Outcome,
    Plan,
    Request,
    Settings,
    Status,
)

__all__ = [
    "COUNTERS",
    "OPEN",
    "EventBook",
    "Kept",
    "arms_in",
    "arms_of",
    "candidates_fields",
    "change_of",
    "entry_of",
    "outcomes_of",
    "plan_fields",
    "read_rows",
    "read_settings",
]

REMEMBERED = 50_000
"""Resolved events that are remembered: so long a repeated request gets its answer again, and can be explained."""

BLOCK = 64
"""Events that are put into JSON without letting other threads run."""

LESSONS = 50
"""Of which it is remembered how they went."""

COUNTERS = ("observed", "defaulted", "expired", "late")
OPEN = ("inactive", "waiting")


class Kept(NamedTuple):
    """One event."""

    id: str
    number: int
    """of the bandit's decision"""
    digest: str
    arms: tuple[str, ...]
    excluded: tuple[int, ...]
    """positions that were not allowed"""
    imposed: int | None
    user: str | None
    row: np.ndarray
    """[4P + 4] what the policy believed, read by `ledger.column`; P ≥ K, the rest is padding"""
    version: int
    time: float
    status: Status
    due: float | None
    """when its time is up"""
    value: float | None = None
    """its reward, so far"""
    reward_ids: tuple[str, ...] = ()

    @property
    def chosen(self) -> int:
        """The position of the arm to use."""
        return int(column(self.row[None], "chosen")[0])

    def answer(self, *, repeated: bool = False) -> Answer:
        """As the caller sees it."""
        allowed = np.zeros((1, arms_in(self.row)), bool)
        allowed[0, : len(self.arms)] = True
        allowed[0, list(self.excluded)] = False
        (read,) = read_rows(self.row[None], allowed, [len(self.arms)])
        return Answer(self.id, self.arms, *read, self.version, self.time, repeated)

    def explained(self, features: bytes | None) -> Explained:
        """Everything about it."""
        mean, width = (decimals(self.numbers(name)) for name in ("mean", "width"))
        exploration = decimal(column(self.row[None], "exploration").item())
        return Explained(self.answer(), mean, width, exploration, self.status, self.value, features, self.user)

    def numbers(self, name: str) -> np.ndarray:
        """[K] one column of what was believed of every arm."""
        return column(self.row[None], name)[0, : len(self.arms)]


class EventBook:
    """Events by id, and what else a service keeps. An `Annex` of an OnlineBandit.

    Memos are dictionaries; each key is one kind of change: `plan`, `settings`, `slots`, `arm`, `removed`, `events`
    (with a decision), `changed` (status, reward and deadline of events), `forgotten`, `candidates`, `lesson` and
    `count`.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.plan: Plan | None = None
        """None until a service has begun to use the folder"""
        self.settings: Settings = Settings()
        self.arms: dict[str, Any] = {}
        self.events: dict[str, Kept] = {}
        self.open: int = 0
        """events that wait for a reward or an activation"""
        self.counts: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self.vocabulary: Vocabulary = Vocabulary(Plan().slots)
        self.recent: RecentOutcomes = RecentOutcomes()
        self.lessons: deque[LessonReport] = deque(maxlen=LESSONS)
        self.deciding: tuple[str, Candidate] | None = None
        """which candidate was promoted last; None: none was"""
        self.candidates: dict[str, Candidate] = {}
        self.resolved: Callable[[int, Status, float | None], None] | None = None
        """told of every event that is resolved: its number, status and reward"""
        self._remembered = remembered
        self._resolved: deque[str] = deque()
        """ids in the order in which they were resolved"""
        self._due: list[tuple[float, str]] = []
        """a heap of deadlines; those of events that were resolved or activated meanwhile are passed over"""
        self._arm_sets: dict[tuple[str, ...], tuple[str, ...]] = {}
        """one tuple for events with the same arms, to save memory"""

    def due(self, now: float, most: int) -> list[Kept]:
        """Up to so many events whose time is up, which are no longer on the heap; the caller resolves them."""
        found: list[Kept] = []
        while self._due and self._due[0][0] <= now and len(found) < most:
            deadline, event_id = heapq.heappop(self._due)
            if deadline > now:  # the heap was made anew since it was looked at
                heapq.heappush(self._due, (deadline, event_id))
                break
            event = self.events.get(event_id)
            if event is not None and event.status in OPEN and event.due == deadline:
                found.append(event)
        return found

    def waiting(self, period: tuple[float, float], arm: str) -> list[Kept]:
        """Events that wait, decided in a period for an arm."""
        return [
            each
            for each in list(self.events.values())  # others are decided meanwhile
            if each.status in OPEN and period[0] <= each.time < period[1] and each.arms[each.chosen] == arm
        ]

    def put_back(self, events: Iterable[Kept]) -> None:
        """Return events to the heap that could not be resolved."""
        for event in events:
            if event.due is not None:
                heapq.heappush(self._due, (event.due, event.id))

    def apply(self, kind: str, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Change by the memo of an event."""
        memo = fields["note"]
        if "plan" in memo:
            options = memo["plan"]
            self.plan = Plan(**{**options, "interactions": tuple(map(tuple, options["interactions"]))})
            self.vocabulary = Vocabulary(self.plan.slots)
        if "settings" in memo:
            self.settings = read_settings(memo["settings"])
        self.vocabulary.assign(memo.get("slots", ()))
        if "arm" in memo:
            self.arms = {**self.arms, memo["arm"][0]: memo["arm"][1]}
        if "removed" in memo:
            self.arms = {arm: features for arm, features in self.arms.items() if arm != memo["removed"]}
        if "events" in memo:
            self._add(memo["events"], fields["first"], fields["version"], fields["time"], arrays["rows"])
        for change in memo.get("changed", ()):
            self._change(*change)
        if "forgotten" in memo:
            self._forget(arrays)
        if "candidates" in memo:
            self._set_candidates(memo["candidates"])
        if "lesson" in memo:
            self.lessons.append(LessonReport(*memo["lesson"]))
        for name in memo.get("count", ()):
            self.counts[name] += 1

    def freeze(self) -> Callable[[], Exported]:
        """Events of this moment, exported later: in blocks of lines of JSON, so that other threads are not held up."""
        if self.plan is None:
            return lambda: ({}, {})
        events, resolved = self.events.copy(), list(self._resolved)
        fields = {
            "plan": plan_fields(self.plan),
            "settings": self.settings._asdict(),
            "arms": self.arms,
            "vocabulary": self.vocabulary.names,
            "counts": dict(self.counts),
            "lessons": [list(each) for each in self.lessons],
            "candidates": candidates_fields(self.deciding, self.candidates),
        }
        recent = self.recent.freeze()

        def export() -> Exported:
            every = list(events.values())
            texts: list[bytes] = []
            lengths: list[int] = []
            rows = [np.zeros(0, every[0].row.dtype if every else np.float32)]  # as the policy computes
            for first in range(0, len(every), BLOCK):
                block = every[first : first + BLOCK]
                texts.append(json.dumps([_plain(event) for event in block])[1:-1].encode())
                lengths += [len(event.row) for event in block]
                rows.append(np.concatenate([event.row for event in block]))
                let_others_run()
            return fields, {
                "events": np.frombuffer(b"[" + b",".join(texts) + b"]", np.uint8),
                "resolved": np.frombuffer(json.dumps(resolved).encode(), np.uint8),
                "lengths": np.asarray(lengths, np.int64),
                "rows": np.concatenate(rows),
                **recent(),
            }

        return export

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Become what was exported; nothing in a folder that no service has used."""
        if not fields:
            return
        self.apply("", {"note": {"plan": fields["plan"], "settings": fields["settings"]}}, {})
        self.arms = fields["arms"]
        self.vocabulary.assign(fields["vocabulary"])
        self.counts = dict.fromkeys(COUNTERS, 0) | fields["counts"]
        self.lessons = deque((LessonReport(*each) for each in fields.get("lessons", ())), LESSONS)
        self._set_candidates(fields.get("candidates", {"deciding": None, "others": {}}))
        self.recent.restore(arrays)
        self.events, self._due, start = {}, [], 0
        entries = json.loads(arrays["events"].tobytes())
        for entry, length in zip(entries, arrays["lengths"].tolist(), strict=True):
            event = self._restored(entry, arrays["rows"][start : start + length])
            self.events[event.id] = event
            start += length
            if event.status in OPEN:
                self.put_back([event])
        self._resolved = deque(json.loads(arrays["resolved"].tobytes()))
        self.open = sum(event.status in OPEN for event in self.events.values())

    def _forget(self, arrays: dict[str, np.ndarray]) -> None:
        """Events whose observations were removed: those that waited have expired, and none counts any longer."""
        expired = set(arrays["expired"].tolist())
        waiting = [event for event in self.events.values() if event.number in expired] if expired else []
        for event in waiting:
            self._change(event.id, "expired", event.value, event.due, None)
        self.recent.forget([*arrays["numbers"].tolist(), *expired])

    def _set_candidates(self, fields: dict[str, Any]) -> None:
        deciding = fields["deciding"]
        self.deciding = None if deciding is None else (deciding[0], Candidate(**deciding[1]))
        self.candidates = {name: Candidate(**each) for name, each in fields["others"].items()}

    def _add(self, entries: Sequence[list[Any]], first: int, version: int, time: float, rows: np.ndarray) -> None:
        events = []
        for row, (event_id, digest, arms, excluded, imposed, user, status, due) in enumerate(entries):
            event = Kept(
                event_id, first + row, digest, self._same(arms), tuple(excluded), imposed, user, rows[row], version,
                time, status, due,
            )  # fmt: skip
            self.events[event_id] = event
            if due is not None:
                heapq.heappush(self._due, (due, event_id))
            events.append(event)
        self.open += len(events)
        self.recent.add_wanted([event.number for event in events], lambda wanted: outcomes_of(events, rows, wanted))

    def _change(
        self, event_id: str, status: Status, value: float | None, due: float | None, reward_id: str | None
    ) -> None:
        before = self.events[event_id]
        ids = before.reward_ids if reward_id is None else (*before.reward_ids, reward_id)
        row = before.row if status in OPEN else before.row.copy()  # not the whole batch of decisions
        event = self.events[event_id] = before._replace(row=row, status=status, value=value, due=due, reward_ids=ids)
        self.recent.change(event.number, status, value, due)
        if status in OPEN:
            if due != before.due:
                self.put_back([event])
            return
        if self.resolved is not None:
            self.resolved(event.number, status, value)
        self.open -= 1
        self.counts[status] += 1
        self._resolved.append(event_id)
        while len(self._resolved) > self._remembered:
            self.events.pop(self._resolved.popleft(), None)
        if len(self._due) > 2 * self.open + self._remembered:  # most are passed over, some only in years
            self._due = [(e.due, e.id) for e in self.events.values() if e.status in OPEN and e.due is not None]
            heapq.heapify(self._due)

    def _restored(self, entry: list[Any], row: np.ndarray) -> Kept:
        event_id, number, digest, arms, excluded, imposed, user, version, time, status, due, value, ids = entry
        return Kept(
            event_id, number, digest, self._same(arms), tuple(excluded), imposed, user, row.copy(), version, time,
            status, due, value, tuple(ids),
        )  # fmt: skip

    def _same(self, arms: list[str]) -> tuple[str, ...]:
        key = tuple(arms)
        if len(self._arm_sets) > BLOCK:
            self._arm_sets.clear()
        return self._arm_sets.setdefault(key, key)


def read_rows(
    rows: np.ndarray, allowed: np.ndarray, counts: Sequence[int]
) -> Iterator[tuple[int, np.ndarray, np.ndarray, int]]:
    """Of each decision the position used, and the propensities, scores and preferred position of its first arms.

    The same numbers, to the last bit, for one row and for many; as decimals of the rows' precision.

    rows     [B, 4P + 4] as the policy made them
    allowed  [B, P] arms that the request allowed
    counts   how many arms each has
    """
    score, shares = decimals(column(rows, "score")), decimals(column(rows, "propensities"), by_value=True)
    preferred = np.where(allowed, score, -np.inf).argmax(axis=1).tolist()
    chosen = column(rows, "chosen").astype(np.intp).tolist()
    for row, count in enumerate(counts):
        yield chosen[row], shares[row, :count], score[row, :count], preferred[row]


def outcomes_of(events: Sequence[Kept], rows: np.ndarray, wanted: Sequence[int] | None = None) -> Iterator[Outcome]:
    """New events in few numbers.

    rows    [B, 4P + 4] as the policy made them
    wanted  which of the events; None: all
    """
    if wanted is not None and len(wanted) < len(events):
        events, rows = [events[row] for row in wanted], rows[wanted]
    if not events:
        return
    shares = column(rows, "propensities").astype(np.float64)
    allowed = np.arange(shares.shape[1]) < np.array([len(each.arms) for each in events])[:, None]
    shares[~allowed] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    for row, each in enumerate(events):
        if each.excluded:
            allowed[row, list(each.excluded)] = False
    chosen, greedy = (column(rows, name).astype(np.intp) for name in ("chosen", "greedy"))
    first, every = allowed.argmax(axis=1), np.arange(len(events))
    columns = chosen, greedy, shares[every, chosen], first, shares[every, first], allowed.sum(axis=1)
    least = np.where(allowed, shares, np.inf).min(axis=1).tolist()
    for each, arm, best, chance, usual, of_usual, count, smallest in zip(
        events, *(each.tolist() for each in columns), least, strict=True
    ):
        yield Outcome(
            each.number, each.time, each.arms[arm], chance, arm == usual, of_usual, smallest, count,
            each.imposed is None and arm != best, each.status, each.value, each.due,
        )  # fmt: skip


def arms_in(row: np.ndarray) -> int:
    """P of a row [4P + 4]."""
    return (len(row) - len(PER_CHOICE)) // len(PER_ARM)


def entry_of(request: Request, due: float | None) -> list[Any]:
    """A new event, as `events` of a memo has it."""
    excluded = [] if request.allowed.all() else np.flatnonzero(~request.allowed).tolist()
    status = "inactive" if request.deferred else "waiting"
    return [request.event_id, request.digest.hex(), request.arms, excluded, request.imposed, request.user, status, due]


def change_of(event: Kept, reward_id: str | None = None) -> list[Any]:
    """An event's new status, as `changed` of a memo has it."""
    return [event.id, event.status, event.value, event.due, reward_id]


def plan_fields(plan: Plan) -> dict[str, Any]:
    """A plan in JSON."""
    return {**plan._asdict(), "options": dict(plan.options), "interactions": [list(pair) for pair in plan.interactions]}


def candidates_fields(deciding: tuple[str, Candidate] | None, others: Mapping[str, Candidate]) -> dict[str, Any]:
    """Candidates in JSON."""

    def plain(candidate: Candidate) -> dict[str, Any]:
        return {**candidate._asdict(), "options": dict(candidate.options)}

    named = None if deciding is None else [deciding[0], plain(deciding[1])]
    return {"deciding": named, "others": {name: plain(each) for name, each in others.items()}}


def read_settings(fields: dict[str, Any]) -> Settings:
    """Settings from JSON."""
    bounds = fields.get("reward_range")
    read = {**fields, "reward_range": None if bounds is None else (bounds[0], bounds[1])}
    return Settings(**{**read, "excluded": tuple(fields.get("excluded", ()))})


def arms_of(arms: dict[str, Any]) -> list[Arm]:
    """Registered arms as records."""
    return [Arm(name, features) for name, features in arms.items()]


def _plain(event: Kept) -> list[Any]:
    """All of an event but its row, in JSON."""
    return [
        event.id, event.number, event.digest, event.arms, event.excluded, event.imposed, event.user, event.version,
        event.time, event.status, event.due, event.value, event.reward_ids,
    ]  # fmt: skip
