"""The embedded store: one process, an `OnlineBandit` with its journal, and the events in the same journal."""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralucb.online import snapshots
from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.online.disk import storage_errors
from neuralucb.online.journal import Sync
from neuralucb.online.removal import Removal, check_period
from neuralucb.online.snapshots import Retention
from neuralucb.runtime.decimals import decimal
from neuralucb.runtime.errors import InputError
from neuralucb.service.arm_sizes import ArmSizes
from neuralucb.service.bandit_folder import open_folder
from neuralucb.service.candidates import Candidates
from neuralucb.service.decisions import Decisions
from neuralucb.service.event_life import due_at, is_up, rewarded, settled
from neuralucb.service.events import (
    EventBook,
    Kept,
    arms_of,
    change_of,
)
from neuralucb.service.learner import Learner
from neuralucb.service.store import (
    Activated,
    Activity,
    Answer,
    Arm,
    Candidate,
    CandidateReport,
    Explained,
    Forgotten,
    Plan,
    Refusal,
    Request,
    Reward,
    Rewarded,
    Settings,
    SnapshotRecord,
    StoreHealth,
    UnknownEventError,
)

__all__ = ["EmbeddedStore"]

BATCH = 16
"""Decisions per call of a program: more are no faster per decision, since their arrays leave the cache."""

GATHER_SECONDS = 0.05
"""For how long rewards may wait before decisions know them, while others keep coming."""

ARMS = 16
"""Arms for which decisions are compiled before the first: see `arm_sizes`."""

RETENTION = Retention(5, 7)

SETTLED = 256
"""Events that are settled in one record."""

LAST = 2000
"""Of the events that a restart finds, those by which it knows how many arms requests have."""

PREPARING_SECONDS = 3.0
"""For which a new store waits for its process of lessons, once decisions are compiled."""

HEALTH_SECONDS = 1.0
"""For how long an examination counts as new."""


class EmbeddedStore:
    """A `Store` in a folder of this machine. `plan` counts for a new folder only; its slots must be the folder's.

    sync       when the journal is forced to disk, as in OnlineBandit; killing the process loses nothing in any case
    retention  which snapshots are kept
    learning   whether lessons are made by a thread or by a process of its own, as in OnlineBandit
    """

    def __init__(
        self,
        folder: str | Path,
        plan: Plan | None = None,
        *,
        sync: Sync = "interval",
        arms: int = ARMS,
        retention: Retention = RETENTION,
        learning: Literal["background", "process"] = "background",
    ) -> None:
        self._book = EventBook()
        self._bandit = open_folder(Path(folder), plan or Plan(), self._book, sync, learning)
        self._bandit.retain(*retention)
        self._bandit.gather(GATHER_SECONDS)
        self._folder = Path(folder)
        self._lock = threading.Lock()
        """held while events are resolved or activated: one of reward, activate and settle at a time"""
        self._configuring = threading.Lock()
        self._bandit.state.programs.batch = BATCH
        self._sizes = ArmSizes(arms, BATCH, self._bandit.state.shape, self._prepare)
        self._ignored = {"repeated": 0, "unknown": 0}
        self._examined: tuple[float, StoreHealth] | None = None
        self._adopted = (self._bandit.state.lessons.good_at, time.monotonic())
        """at which observation the model learned last, and when that was seen"""
        self._learner = Learner(
            self._bandit, lambda: self._book.settings.learning, lambda: self._book.settings.schedule
        )
        self._bandit.state.programs.set_floor(self._floor(self._book.settings))
        self._candidates = Candidates(
            self._bandit, self._book, self._folder, arms=power_of_two(arms),
            floor=lambda: self._floor(self._book.settings),
            schedule=lambda: self._book.settings.schedule or self._bandit.settings["schedule"],
        )  # fmt: skip
        self._decisions = Decisions(self._bandit, self._book, self._sizes, self._candidates, lambda: time.time())

    @property
    def plan(self) -> Plan:
        """With which the folder was made."""
        assert self._book.plan is not None
        return self._book.plan

    def warm_up(self) -> None:
        """Compile what the first requests need, and meanwhile what the first lesson of a new bandit needs.

        One that is started again is ready before its process of lessons, which begins then, at its low priority. So
        do programs for as many arms as earlier requests had.
        """
        preparing = threading.Thread(target=self._learner.prepare, daemon=True)
        with self._learner.pause:  # a snapshot after a long replay would compete with it
            is_new = not self._bandit.state.observations.total
            if is_new:
                preparing.start()
            self._sizes.compile(self._bandit.state.programs, self._bandit.state.belief)
            if is_new:
                preparing.join(PREPARING_SECONDS)
        last = itertools.islice(reversed(self._book.events.values()), LAST)
        self._sizes.expect(len(event.arms) for event in last)

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
        return self.begin(requests)()

    def begin(self, requests: Sequence[Request]) -> Callable[[], list[Answer | Refusal]]:
        """Begin to decide."""
        return self._decisions.begin(requests)

    def reward(self, rewards: Sequence[Reward]) -> list[Rewarded]:
        """Record rewards, in one record."""
        results: list[Rewarded] = []
        changed: dict[str, Kept] = {}
        notes: list[list[Any]] = []
        with self._lock:
            now, settings = time.time(), self._book.settings
            for reward in rewards:
                event = changed.get(reward.event_id) or self._book.events.get(reward.event_id)
                result, after = rewarded(event, reward, settings, now)
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
                elif event.status == "expired" or (event.status == "inactive" and is_up(event, now)):
                    results.append("late")
                elif event.status != "inactive":
                    results.append("repeated")
                else:
                    learned = event.value is not None and settings.aggregation == "earliest"
                    changed[event_id] = event._replace(
                        status="observed" if learned else "waiting", due=due_at(settings, now)
                    )
                    results.append("activated")
            notes = [change_of(event) for event in changed.values()]
            self._resolve(changed.values(), {"changed": notes} if notes else None)
        return results

    def settle(self) -> int:
        """Resolve events whose time is up."""
        count = 0
        while True:
            with self._lock:
                due = self._book.due(time.time(), SETTLED)
                try:
                    after = [settled(event, self._book.settings.default_reward) for event in due]
                    expired = [event for event in after if event.status == "expired"]
                    learned = [event for event in after if event.status != "expired"]
                    for events in (expired, learned):
                        self._resolve(events, {"changed": [change_of(event) for event in events]} if events else None)
                except BaseException:
                    self._book.put_back(due)  # those that were resolved all the same are passed over
                    raise
            count += len(due)
            if len(due) < SETTLED:
                return count

    def explain(self, event_id: str) -> Explained | None:
        """One event that is remembered."""
        event = self._book.events.get(event_id)
        return None if event is None else event.explained(self._decisions.shown(event_id))

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
        """Use these from now on."""
        self.amend(lambda _: settings)

    def amend(self, change: Callable[[Settings], Settings]) -> Settings:
        """Change settings; another floor is compiled before, while decisions are made with the old one."""
        with self._configuring:
            settings = change(self._book.settings)
            floor = self._floor(settings)
            if floor != self._floor(self._book.settings):
                programs = Programs(self._bandit.policy, self._bandit.settings["seed"], floor)
                for size in self._sizes.ready:
                    self._compile_aside(programs, size)
                self._sizes.compile(programs, self._bandit.state.belief)
            self._bandit.record({"settings": settings._asdict()})
            self._bandit.state.programs.set_floor(floor)
            return settings

    def snapshot(self) -> SnapshotRecord:
        """Write one."""
        return self._record(self._bandit.snapshot())

    def snapshots(self) -> list[SnapshotRecord]:
        """Those in the folder."""
        barrier = self._bandit.state.barrier
        return [self._record(number) for number in snapshots.numbers(self._folder) if number > barrier]

    def pin(self, number: int, *, pinned: bool = True) -> SnapshotRecord:
        """Keep one whatever the retention says, or no longer."""
        known = [each.number for each in self.snapshots()]
        if number not in known:
            raise InputError(f"number must be one of {', '.join(map(str, known)) or 'none'}, got {number}.")
        with storage_errors(self._folder):
            snapshots.pin(self._folder, number, pinned=pinned)
        return self._record(number)

    def rollback(self, number: int) -> SnapshotRecord:
        """Return to one of them."""
        self._bandit.rollback(snapshot=number)
        return self._record(number)

    def forget(
        self, event_ids: Sequence[str] | None, since: float | None, until: float | None, arm: str | None
    ) -> Forgotten:
        """Remove observations; the learner learns again from the rest. Rewards do not wait for a lesson under way."""
        with self._bandit.between_lessons, self._lock:
            waiting = [] if arm is None else self._book.waiting(check_period(since, until), arm)
            chosen = waiting if event_ids is None else self._known(event_ids)
            ids = [self._bandit.ids.id_of(each.number) for each in chosen]
            memo = {"forgotten": arm}
            found = Removal(0, 0)
            if ids:  # again what was removed before is no error: a request may be repeated
                found = self._bandit.forget(ids, missing="ignore", memo=memo, learn=False)
            if event_ids is None:
                more = self._bandit.forget(since=since, until=until, arm=arm, memo=memo, learn=False)
                found = Removal(found.observations + more.observations, found.pending + more.pending)
        return Forgotten(*found)

    def deciding(self) -> tuple[str, Candidate]:
        """The policy that decides."""
        return self._candidates.deciding()

    def candidates(self) -> list[CandidateReport]:
        """How others do."""
        return self._candidates.reports()

    def put_candidate(self, name: str, candidate: Candidate) -> bool:
        """Add one, which begins with what was observed so far."""
        return self._candidates.put(name, candidate)

    def remove_candidate(self, name: str) -> bool:
        """Remove one."""
        return self._candidates.remove(name)

    def promote(self, name: str) -> None:
        """Let one decide; its decisions are compiled before."""
        with self._configuring:
            self._candidates.promote(name, self._book.settings, self._sizes.compile)
            self._bandit.state.programs.set_floor(self._floor(self._book.settings))
        self._bandit.snapshot()

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
        with closing(self._bandit), closing(self._learner):
            if self._bandit.lesson_process is not None:
                self._bandit.lesson_process.stop_compiling()
            self._sizes.close()
            self._candidates.close()

    def _known(self, event_ids: Sequence[str]) -> list[Kept]:
        for event_id in event_ids:
            if event_id not in self._book.events:
                raise UnknownEventError(f"there is no event {event_id!r:.80}, or it is too long ago.")
        return [self._book.events[event_id] for event_id in dict.fromkeys(event_ids)]

    def _floor(self, settings: Settings) -> float:
        return self.plan.floor if settings.floor is None else settings.floor

    def _prepare(self, size: int) -> None:
        """Compile decisions over so many arms."""
        self._compile_aside(self._bandit.state.programs, size)
        with self._configuring:  # programs are not replaced meanwhile
            self._sizes.compile_size(self._bandit.state.programs, self._bandit.state.belief, size)

    def _compile_aside(self, programs: Programs, size: int) -> None:
        """Compile decisions over so many arms in the process of lessons, at its priority; here they are loaded then."""
        process = self._bandit.lesson_process
        if process is None:
            return
        for decisions in self._sizes.decisions:
            if not self._sizes.is_closing:
                with suppress(RuntimeError):  # it has ended: they are compiled here
                    process.compile_choices(programs, decisions, size)

    def _resolve(self, events: Iterable[Kept], memo: dict[str, Any] | None) -> None:
        """Record changes of events, and tell the bandit the rewards of those that have theirs now."""
        if memo is None:
            return
        learned = [event for event in events if event.status in ("observed", "defaulted")]
        expired = [event.number for event in events if event.status == "expired"]
        if not learned:
            self._bandit.record(memo, expired=expired)
            return
        values = [0.0 if event.value is None else event.value for event in learned]
        labels = [event.arms[event.chosen] for event in learned]
        self._bandit.resolve([event.number for event in learned], values, labels=labels, memo=memo)

    def _record(self, number: int) -> SnapshotRecord:
        fields, at, size = snapshots.describe(self._folder, number)
        is_pinned = number in snapshots.pinned(self._folder)
        return SnapshotRecord(number, at, int(fields["total"]), int(fields["version"]), size, is_pinned)

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
            "relearning": self._bandit.state.relearns,
            "loss": decimal(health.loss),
        }
        finite = {name: float(value) for name, value in gauges.items() if np.isfinite(value)}
        writable = "accepts no more writes" not in (health.failure or "")
        failure = "; ".join(filter(None, (health.failure, self._learner.problem))) or None
        return StoreHealth("embedded", failure, writable, self._learner.words(), counters, finite)
