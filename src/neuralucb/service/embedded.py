"""The embedded store: one process, an `OnlineBandit` with its journal, and the events in the same journal."""

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralucb.algorithms import build
from neuralucb.features import Vocabulary
from neuralucb.online import OnlineBandit, snapshots
from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.online.journal import Sync
from neuralucb.online.keeper import Saved, readable
from neuralucb.runtime.errors import InputError
from neuralucb.service.events import (
    OPEN,
    EventBook,
    Kept,
    arms_of,
    change_of,
    entry_of,
    plan_fields,
)
from neuralucb.service.learner import Learner
from neuralucb.service.store import (
    Activated,
    Activity,
    Answer,
    Arm,
    Explained,
    Plan,
    Refusal,
    Request,
    Reward,
    Rewarded,
    Settings,
    SnapshotRecord,
    StoreHealth,
)

__all__ = ["EmbeddedStore"]

BATCH = 8
"""Decisions per call of the policy: more are no faster per decision, since their arrays leave the cache."""

ARMS = 16
"""Arms for which decisions are compiled before the first: fewer are padded, more are compiled when they come."""

SETTLED = 256
"""Events that are settled in one record."""

RECENT = 2000
"""Events whose features can be shown; they are not in the journal, where they would be most of it."""

HEALTH_SECONDS = 1.0
"""For how long an examination counts as new."""


class EmbeddedStore:
    """A `Store` in a folder of this machine. `plan` counts for a new folder only; its slots must be the folder's.

    sync      when the journal is forced to disk, as in OnlineBandit; killing the process loses nothing in any case
    learning  whether lessons are made by a thread or by a process of its own, as in OnlineBandit
    """

    decides_at_once = True

    def __init__(
        self,
        folder: str | Path,
        plan: Plan | None = None,
        *,
        sync: Sync = "interval",
        arms: int = ARMS,
        learning: Literal["background", "process"] = "background",
    ) -> None:
        self._book = EventBook()
        self._bandit = _open(Path(folder), plan or Plan(), self._book, sync, learning)
        self._folder = Path(folder)
        self._arms = power_of_two(arms)
        self._lock = threading.Lock()
        """held while events are resolved or activated: one of reward, activate and settle at a time"""
        self._configuring = threading.Lock()
        self._deciding = threading.Condition()
        self._under_way: set[str] = set()
        """ids of events that a thread is deciding: another one that has the same waits for its answer"""
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._ignored = {"repeated": 0, "unknown": 0}
        self._examined: tuple[float, StoreHealth] | None = None
        self._adopted = (self._bandit.state.lessons.good_at, time.monotonic())
        """at which observation the model learned last, and when that was seen"""
        self._learner = Learner(
            self._bandit, lambda: self._book.settings.learning, lambda: self._book.settings.schedule
        )
        self._bandit.state.programs.set_floor(self._floor(self._book.settings))

    @property
    def plan(self) -> Plan:
        """With which the folder was made."""
        assert self._book.plan is not None
        return self._book.plan

    def warm_up(self) -> None:
        """Compile what the first requests need; not lessons, for which no request waits."""
        with self._learner.pause:  # a snapshot after a long replay would compete with it
            self._compile(self._bandit.state.programs)

    def vocabulary(self) -> list[str]:
        """Names with slots of their own."""
        return self._book.vocabulary.names

    def assign_slots(self, names: Sequence[str]) -> Mapping[str, int]:
        """Slots for new names, in the journal."""
        known = self._book.vocabulary
        if any(name not in known.places and known.is_free_for(name) for name in names):
            self._bandit.record({"slots": list(names)})
        return {name: known.places[name] for name in names if name in known.places}

    def decide(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Decide together; what has the same event id as an earlier one is answered as that was."""
        ids = {request.event_id for request in requests}
        with self._deciding:
            self._deciding.wait_for(lambda: self._under_way.isdisjoint(ids))
            self._under_way |= ids
        try:
            return self._decide(requests)
        finally:
            with self._deciding:
                self._under_way -= ids
                self._deciding.notify_all()

    def reward(self, rewards: Sequence[Reward]) -> list[Rewarded]:
        """Record rewards, in one record."""
        results: list[Rewarded] = []
        changed: dict[str, Kept] = {}
        notes: list[list[Any]] = []
        with self._lock:
            now, settings = time.time(), self._book.settings
            for reward in rewards:
                event = changed.get(reward.event_id) or self._book.events.get(reward.event_id)
                result, after = _rewarded(event, reward, settings, now)
                results.append(result)
                if after is not None:
                    changed[reward.event_id] = after
                    notes.append(change_of(after, reward.reward_id))
            late = ["late"] * results.count("late")
            self._resolve(changed.values(), {"changed": notes, "count": late} if notes or late else None)
            for name in self._ignored:
                self._ignored[name] += sum(result == name for result in results)
        return results

    def activate(self, event_ids: Sequence[str]) -> list[Activated]:
        """Let deferred events count, in one record."""
        results: list[Activated] = []
        changed: dict[str, Kept] = {}
        with self._lock:
            now, settings = time.time(), self._book.settings
            for event_id in event_ids:
                event = changed.get(event_id) or self._book.events.get(event_id)
                if event is None:
                    results.append("unknown")
                elif event.status == "expired" or (event.status == "inactive" and _is_up(event, now)):
                    results.append("late")
                elif event.status != "inactive":
                    results.append("repeated")
                else:
                    learned = event.value is not None and settings.aggregation == "earliest"
                    changed[event_id] = event._replace(
                        status="observed" if learned else "waiting", due=_due(settings, now)
                    )
                    results.append("activated")
            notes = [change_of(event) for event in changed.values()]
            self._resolve(changed.values(), {"changed": notes} if notes else None)
        return results

    def settle(self) -> int:
        """Resolve events whose time is up."""
        settled = 0
        while True:
            with self._lock:
                due = self._book.due(time.time(), SETTLED)
                try:
                    after = [_settled(event, self._book.settings.default_reward) for event in due]
                    expired = [event for event in after if event.status == "expired"]
                    learned = [event for event in after if event.status != "expired"]
                    for events in (expired, learned):
                        self._resolve(events, {"changed": [change_of(event) for event in events]} if events else None)
                except BaseException:
                    self._book.put_back(due)  # those that were resolved all the same are passed over
                    raise
            settled += len(due)
            if len(due) < SETTLED:
                return settled

    def explain(self, event_id: str) -> Explained | None:
        """One event that is remembered."""
        event = self._book.events.get(event_id)
        return None if event is None else event.explained(self._recent.get(event_id))

    def arms(self) -> list[Arm]:
        """Registered arms."""
        return arms_of(self._book.arms)

    def put_arm(self, arm: Arm) -> bool:
        """Add or replace an arm."""
        is_new = arm.id not in self._book.arms
        self._bandit.record({"arm": [arm.id, arm.features]})
        return is_new

    def remove_arm(self, arm_id: str) -> bool:
        """Remove an arm."""
        if arm_id not in self._book.arms:
            return False
        self._bandit.record({"removed": arm_id})
        return True

    def settings(self) -> Settings:
        """The current ones."""
        return self._book.settings

    def configure(self, settings: Settings) -> None:
        """Use these from now on; another floor is compiled before, while decisions are made with the old one."""
        with self._configuring:
            floor = self._floor(settings)
            if floor != self._floor(self._book.settings):
                self._compile(Programs(self._bandit.policy, self._bandit.settings["seed"], floor))
            self._bandit.record({"settings": settings._asdict()})
            self._bandit.state.programs.set_floor(floor)

    def snapshot(self) -> SnapshotRecord:
        """Write one."""
        return self._record(self._bandit.snapshot())

    def snapshots(self) -> list[SnapshotRecord]:
        """Those in the folder."""
        return [self._record(number) for number in snapshots.numbers(self._folder)]

    def rollback(self, number: int) -> SnapshotRecord:
        """Return to one of them."""
        self._bandit.rollback(snapshot=number)
        return self._record(number)

    def health(self) -> StoreHealth:
        """At most a second old."""
        now = time.monotonic()  # a clock that is set back must not stop examinations
        if self._examined is None or now - self._examined[0] > HEALTH_SECONDS:
            self._examined = now, self._examine(now)
        return self._examined[1]

    def activity(self) -> Activity:
        """As the journal has it, so also across restarts."""
        return Activity(self._book.recent.listed(), tuple(self._book.lessons))

    def close(self) -> None:
        """Wait for the lesson under way, and sync."""
        self._learner.close()
        self._bandit.close()

    def _floor(self, settings: Settings) -> float:
        return self.plan.floor if settings.floor is None else settings.floor

    def _compile(self, programs: Programs) -> None:
        """Compile decisions and observations."""
        state, decisions = self._bandit.state, 1
        while decisions <= BATCH:
            contexts = state.shape.zeros(decisions, self._arms)
            available = np.ones((decisions, self._arms), bool)
            programs.choose_many(0, state.belief, contexts, available, capacity=self._arms)
            decisions *= 2
        programs.absorb(state.belief, state.shape.zeros(1), np.zeros(1, np.float32))

    def _decide(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        refused: dict[int, Refusal] = {}
        groups: dict[int, list[int]] = defaultdict(list)
        first: dict[str, int] = {}
        """the request that each new event is made for: the same id again is a repeat, also within a batch"""
        for index, request in enumerate(requests):
            if request.event_id not in self._book.events and request.event_id not in first:
                first[request.event_id] = index
                groups[max(self._arms, power_of_two(len(request.arms)))].append(index)
        for size, indices in groups.items():
            for start in range(0, len(indices), BATCH):
                refused |= self._select(requests, indices[start : start + BATCH], size)
        return [
            refused[index] if index in refused else self._answer(request, fresh=first.get(request.event_id) == index)
            for index, request in enumerate(requests)
        ]

    def _select(self, requests: Sequence[Request], indices: list[int], size: int) -> dict[int, Refusal]:
        """Decide some requests with one call; those that cannot be scored are refused, one by one."""
        chosen = [requests[index] for index in indices]
        contexts = np.zeros((len(chosen), size, self.plan.slots), np.float32)
        available = np.zeros((len(chosen), size), bool)
        settings, now = self._book.settings, time.time()
        entries = []
        for row, request in enumerate(chosen):
            count = len(request.arms)
            contexts[row, :count] = request.contexts
            available[row, :count] = request.allowed
            if request.imposed is not None:
                available[row] = False
                available[row, request.imposed] = True
            entries.append(entry_of(request, _due(settings, now)))
        try:
            self._bandit.select_many(contexts, available=available, note={"events": entries})
        except InputError as problem:
            if len(indices) == 1:
                return {indices[0]: Refusal("invalid", str(problem))}
            return {k: v for index in indices for k, v in self._select(requests, [index], size).items()}
        for request in chosen:
            self._recent[request.event_id] = request.features
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return {}

    def _answer(self, request: Request, *, fresh: bool) -> Answer | Refusal:
        event = self._book.events.get(request.event_id)
        if event is None:  # another one with the same id in this batch was refused
            return Refusal("invalid", f"event {request.event_id!r:.80} was refused.")
        if event.digest != request.digest.hex():
            return Refusal("conflict", f"event {request.event_id!r:.80} was decided for another request; use a new id.")
        return event.answer(repeated=not fresh)

    def _resolve(self, events: Iterable[Kept], note: dict[str, Any] | None) -> None:
        """Record changes of events, and tell the bandit the rewards of those that have theirs now."""
        if note is None:
            return
        ids = self._bandit.ids
        learned = [event for event in events if event.status in ("observed", "defaulted")]
        expired = [ids.id_of(event.number) for event in events if event.status == "expired"]
        if not learned:
            self._bandit.record(note, expired=expired)
            return
        values = [0.0 if event.value is None else event.value for event in learned]
        self._bandit.observe_many([ids.id_of(event.number) for event in learned], values, note=note)

    def _record(self, number: int) -> SnapshotRecord:
        fields, at, size = snapshots.describe(self._folder, number)
        return SnapshotRecord(number, at, int(fields["total"]), int(fields["version"]), size)

    def _examine(self, now: float) -> StoreHealth:
        health = self._bandit.health()
        good_at = self._bandit.state.lessons.good_at
        if good_at != self._adopted[0]:
            self._adopted = good_at, now
        counters = {
            "decisions": health.decisions,
            "explored": self._bandit.state.counts["explored"],
            **self._book.counts,
            **self._ignored,
            "lessons": health.learned,
            "lessons_failed": health.diverged,
            "rewards_refused": health.refused,
        }
        gauges = {
            "pending": self._book.open,
            "model_version": health.version,
            "model_age_seconds": now - self._adopted[1],
            "vocabulary": len(self._book.vocabulary.places),
            "belief_bytes": health.belief_bytes,
            "history_bytes": health.history_bytes,
            "pending_bytes": health.pending_bytes,
            "journal_bytes": health.journal_bytes,
            "compiled": health.compiled,
            "loss": health.loss,
        }
        finite = {name: float(value) for name, value in gauges.items() if np.isfinite(value)}
        writable = "accepts no more writes" not in (health.failure or "")
        failure = "; ".join(filter(None, (health.failure, self._learner.problem))) or None
        return StoreHealth("embedded", failure, writable, self._learner.words(), counters, finite)


def _open(
    folder: Path, plan: Plan, book: EventBook, sync: Sync, learning: Literal["background", "process"]
) -> OnlineBandit:
    """The bandit of a folder: a new one, one that learned from a log, or one that has served before."""
    if snapshots.numbers(folder):
        with readable(folder):
            saved = Saved.read(folder, None, None)
        settings = {**saved.settings, "learning": learning, "sync": sync, "count_pending": False}
        if "annex" not in saved.snapshot.fields["state"]:  # it learned from a log, and has not served yet
            settings |= {"floor": plan.floor}
        bandit = OnlineBandit(saved.policy, **settings, journal=folder, annex=book)
    else:
        policy = build(plan.algorithm, dim=plan.slots, **plan.options)
        bandit = OnlineBandit(
            policy, seed=plan.seed, schedule=plan.schedule, learning=learning, window=plan.window, floor=plan.floor,
            journal=folder, sync=sync, annex=book,
        )  # fmt: skip
    try:
        if book.plan is None:
            names = _trained_names(bandit, plan, folder)
            bandit.record({"plan": plan_fields(plan), "settings": Settings()._asdict(), "slots": names})
    except BaseException:
        bandit.close()
        raise
    return bandit


def _trained_names(bandit: OnlineBandit, plan: Plan, folder: Path) -> list[str]:
    """The vocabulary of a bandit that learned from a log; none for a new one."""
    origin = bandit.policy.origin
    if origin is None or origin.shared_by is not None or origin.dim != plan.slots:
        raise InputError(
            f"{folder} has a model for contexts that are not of {plan.slots} slots; train it with "
            f"`neuralucb train LOG --slots {plan.slots}`, or set as many slots as it has."
        )
    if bandit.names is None:
        return []
    return Vocabulary.from_slot_names(bandit.names["own"]).names


def _rewarded(event: Kept | None, reward: Reward, settings: Settings, now: float) -> tuple[Rewarded, Kept | None]:
    """What becomes of a reward, and of its event if it changes: the life of an event, as `store.py` draws it."""
    if event is None:
        return "unknown", None
    if reward.reward_id is not None and reward.reward_id in event.reward_ids:
        return "repeated", None  # also when time is up: it has counted, and is not late
    if event.status not in OPEN or _is_up(event, now):
        is_repeat = event.status == "observed" and not _is_up(event, now)
        return ("repeated" if is_repeat else "late"), None
    if settings.aggregation == "earliest":
        if event.value is not None:
            return "repeated", None
        if event.status == "waiting":
            return "learned", event._replace(value=reward.value, status="observed")
        return "kept", event._replace(value=reward.value)
    ids = event.reward_ids if reward.reward_id is None else (*event.reward_ids, reward.reward_id)
    return "kept", event._replace(value=(event.value or 0.0) + reward.value, reward_ids=ids)


def _settled(event: Kept, default: float) -> Kept:
    """An event whose time is up."""
    if event.status == "inactive":
        return event._replace(status="expired")
    if event.value is None:
        return event._replace(status="defaulted", value=default)
    return event._replace(status="observed")


def _is_up(event: Kept, now: float) -> bool:
    return event.due is not None and now >= event.due


def _due(settings: Settings, now: float) -> float | None:
    return None if settings.wait_seconds is None else now + settings.wait_seconds
