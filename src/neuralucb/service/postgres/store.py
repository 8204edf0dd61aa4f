"""The store in PostgreSQL: a replica that decides with the newest model, and a learner that waits its turn."""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import current_process
from typing import Any

from neuralucb.features import Vocabulary, own_slots
from neuralucb.online.lesson_process import LessonProcess
from neuralucb.online.process_lock import ProcessLock
from neuralucb.online.removal import check_period
from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.service.postgres import events, snapshots, statistics
from neuralucb.service.postgres.activity import recent_activity
from neuralucb.service.postgres.address import Address, read_address
from neuralucb.service.postgres.choosing import Chosen, choose, unstorable
from neuralucb.service.postgres.decision_programs import DecisionPrograms
from neuralucb.service.postgres.erasure import PATIENCE, exclusion
from neuralucb.service.postgres.follower import Follower, read_arms
from neuralucb.service.postgres.learner import Learner, check_plan, new_state
from neuralucb.service.postgres.link import Link
from neuralucb.service.postgres.retention import Retention
from neuralucb.service.postgres.schema import LOCKS, install, is_storable, read_settings, settings_json
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
)

__all__ = ["PostgresStore", "open_postgres"]

REST = 3.0
"""Seconds without a lesson per second of one, where decisions are made beside it."""

LAST = 256
"""Decisions by which it is known how many arms requests have."""

BLOCK = 1024
"""Numbers of decisions that a process takes at a time."""

NO_CANDIDATES = (
    "candidates are followed by a service over a folder, not over PostgreSQL; export the log, and value policies with "
    "`neuralucb evaluate`."
)


class PostgresStore:
    """What `open_postgres` opens. Its connections come back by themselves; meanwhile methods raise StorageError."""

    def __init__(self, address: Address, plan: Plan, retention: Retention) -> None:
        self.address: Address = address
        self.name: str = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        """of this process, in the table `processes`"""
        self._links = {use: Link(address, use) for use in ("decisions", "rewards", "questions", "models")}
        self._fork = ProcessLock()
        """refuses the fork of a process, which would write to its connections"""
        self._learner: Learner | None = None
        self._thread: threading.Thread | None = None
        try:
            self.plan: Plan = install(self._links["questions"], plan, Settings(), check_plan)
            self._deciding = DecisionPrograms(new_state(self.plan).programs, self.plan)
            self._links["questions"].execute(
                "INSERT INTO processes (name, role) VALUES (%s, %s) ON CONFLICT DO NOTHING", self.name, address.role
            )
            initial = self._deciding.programs.init()
            self._follower = Follower(self._links["models"], initial, self.name, self._use)
            self._follower.start()
            self._statistics = statistics.Statistics(self._links["questions"])
            if address.role != "serve":
                self._start_learner(retention)
        except BaseException:
            for link in self._links.values():
                link.close()
            raise
        self._numbers: list[int] = []
        """of a block, not used yet; the last is the next"""
        self._closed = False

    @property
    def learner(self) -> Learner | None:
        """The learner of this process, elected or not; None in one that only serves."""
        return self._learner

    def warm_up(self, arms: int = 16) -> None:
        """Compile what the first decisions over so many arms need, and over as many as recent ones had."""
        recent = self._ask(
            "SELECT DISTINCT cardinality(arms) FROM (SELECT arms FROM decisions ORDER BY number DESC LIMIT %s) AS last",
            LAST,
        )
        self._deciding.warm_up((arms, *(count for (count,) in recent)), self._follower.served.belief)

    def vocabulary(self) -> list[str]:
        """Names of features that have a slot of their own, in the order of slots."""
        return [name for (name,) in self._ask("SELECT name FROM vocabulary ORDER BY slot")]

    def assign_slots(self, names: Sequence[str]) -> Mapping[str, int]:
        """Slots for names, the same in all replicas."""
        wanted = [name for name in dict.fromkeys(names) if is_storable(name)]

        def work(cursor: Any) -> dict[str, int]:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(current_schema()))", (LOCKS["vocabulary"],))
            cursor.execute("SELECT name FROM vocabulary ORDER BY slot")
            known = [name for (name,) in cursor.fetchall()]
            vocabulary = Vocabulary(self.plan.slots, known)
            assigned = vocabulary.assign(wanted)
            cursor.executemany(
                "INSERT INTO vocabulary (slot, name) VALUES (%s, %s)",
                list(enumerate(vocabulary.names[len(known) :], start=len(known))),
            )
            return assigned

        return self._links["decisions"].run(work)

    def decide(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Decide requests together, and write the decisions in one transaction."""
        self._fork.check()
        served, settings = self._follower.served, self._follower.settings
        first = {request.event_id: index for index, request in reversed(list(enumerate(requests)))}
        answers: dict[str, Answer | Refusal] = {
            request.event_id: refusal for request in requests if (refusal := unstorable(request))
        }
        asked = [requests[index] for index in sorted(first.values()) if requests[index].event_id not in answers]
        made = choose(self._deciding.programs, served.belief, asked, self._take_numbers(len(asked)))
        pairs = [(request, each) for request, each in zip(asked, made, strict=True) if isinstance(each, Chosen)]
        written, stored = self._write(pairs, served.version, settings)
        answers |= written
        answers |= {each[0].event_id: each[1] for each in zip(asked, made, strict=True) if isinstance(each[1], Refusal)}
        return [
            _for_repeat(
                requests[first[request.event_id]], request, answers[request.event_id], stored.get(request.event_id)
            )
            if first[request.event_id] != index
            else answers[request.event_id]
            for index, request in enumerate(requests)
        ]

    def begin(self, requests: Sequence[Request]) -> Callable[[], list[Answer | Refusal]]:
        """Nothing to begin: a transaction is short."""
        return lambda: self.decide(requests)

    def reward(self, rewards: Sequence[Reward]) -> list[Rewarded]:
        """Join rewards with their events, in one transaction."""
        self._fork.check()
        if not rewards:
            return []
        work = events.rewarding(rewards, replica=self.name, settings=self._follower.settings)
        done: list[Rewarded] = self._links["rewards"].run(work)
        return done

    def activate(self, event_ids: Sequence[str]) -> list[Activated]:
        """Let deferred events count, in one transaction."""
        self._fork.check()
        if not event_ids:
            return []
        done: list[Activated] = self._links["rewards"].run(
            events.activations(event_ids, settings=self._follower.settings)
        )
        return done

    def settle(self) -> int:
        """Nothing: the learner settles."""
        return 0

    def explain(self, event_id: str) -> Explained | None:
        """One event, as long as it is retained."""
        if not is_storable(event_id):
            return None
        return self._questions.run(lambda cursor: events.explained(cursor, event_id))

    def arms(self) -> list[Arm]:
        """Registered arms, in the order in which they were put; those of another replica within a second."""
        return self._follower.arms

    def put_arm(self, arm: Arm) -> bool:
        """Add an arm or replace its features; returns whether it is new."""
        if not is_storable(arm.id):
            raise InputError(f"id of an arm must be text without NUL, got {arm.id!r:.80}.")
        statement = """
            INSERT INTO arms (id, features) VALUES (%s, %s)
            ON CONFLICT (id) DO UPDATE SET features = excluded.features RETURNING xmax = 0
        """
        return self._change_arms(statement, arm.id, json.dumps(arm.features))

    def remove_arm(self, arm_id: str) -> bool:
        """Returns whether there was such an arm."""
        return is_storable(arm_id) and self._change_arms("DELETE FROM arms WHERE id = %s RETURNING true", arm_id)

    def settings(self) -> Settings:
        """The current ones."""
        return self._follower.settings

    def configure(self, settings: Settings) -> None:
        """Use these from now on, in all replicas."""
        self.amend(lambda _: settings)

    def amend(self, change: Callable[[Settings], Settings]) -> Settings:
        """Change settings in all replicas; the row is locked meanwhile."""

        def work(cursor: Any) -> tuple[Settings, Settings, None]:
            cursor.execute("SELECT settings FROM bandit FOR UPDATE")
            settings = change(read_settings(cursor.fetchone()[0]))
            if settings.wait_seconds is None and settings.aggregation == "sum":
                raise InputError("wait_seconds must be a number with aggregation sum, got None.")
            cursor.execute("UPDATE bandit SET settings = %s", (settings_json(settings),))
            cursor.execute("SELECT pg_notify('neuralucb_' || current_schema(), 'settings')")
            return settings, settings, None

        changed: Settings = self._follower.change(self._questions, work)
        return changed

    def forget(
        self, event_ids: Sequence[str] | None, since: float | None, until: float | None, arm: str | None
    ) -> Forgotten:
        """Learn no more from these; the learner does so again without them, and deletes snapshots that know them."""
        if event_ids is None:
            check_period(since, until)
        if not all(map(is_storable, (*(event_ids or ()), arm or ""))):
            raise InputError("event_ids and arm must be text without NUL.")
        found = self._questions.run(exclusion(event_ids, since, until, arm), patience=PATIENCE)
        return Forgotten(found.learned, found.decisions - found.learned)

    def deciding(self) -> tuple[str, Candidate]:
        """The policy of the plan."""
        return "original", Candidate(self.plan.algorithm, self.plan.options)

    def candidates(self) -> list[CandidateReport]:
        """None."""
        return []

    def put_candidate(self, name: str, candidate: Candidate) -> bool:
        """Refused."""
        raise InputError(NO_CANDIDATES)

    def remove_candidate(self, name: str) -> bool:
        """There is none."""
        return False

    def promote(self, name: str) -> None:
        """Refused."""
        raise InputError(NO_CANDIDATES)

    def snapshot(self) -> SnapshotRecord:
        """Keep the newest model."""
        return self._questions.run(snapshots.take, patience=60.0)

    def snapshots(self) -> list[SnapshotRecord]:
        """Those that exist, oldest first."""
        return self._questions.run(snapshots.listed)

    def rollback(self, number: int) -> SnapshotRecord:
        """Return to a snapshot; whoever learns begins again from it."""
        return self._questions.run(lambda cursor: snapshots.restore(cursor, number), patience=60.0)

    def pin(self, number: int, *, pinned: bool = True) -> SnapshotRecord:
        """Keep a snapshot whatever the retention says, or no longer."""
        return self._questions.run(lambda cursor: snapshots.pin(cursor, number, pinned=pinned))

    def activity(self) -> Activity:
        """Recent decisions of all replicas, and lessons."""
        wait = self._follower.settings.wait_seconds
        return self._questions.run(lambda cursor: recent_activity(cursor, wait))

    def health(self) -> StoreHealth:
        """Counters of all processes, and what is wrong; known also while the database cannot be reached."""
        elected = self._learner is not None and self._learner.lease.epoch is not None
        found = self._statistics.read()
        writing = self._links["decisions"]
        writable = found.is_reachable and writing.failed_at < found.at
        problems = [None if writable else writing.failure, self._follower.problem, *found.problems]
        if self._learner is not None:
            problems.append(self._learner.problem)
        served = self._follower.served
        gauges = {
            **found.gauges,
            "model_version": float(served.version),
            "model_age_seconds": max(0.0, time.time() - served.time),
            "slots_free": own_slots(self.plan.slots) - found.gauges.get("vocabulary", 0.0),
        }
        failure = "; ".join(dict.fromkeys(filter(None, problems))) or None
        role = "learner" if elected else "replica"
        return StoreHealth(role, failure, writable, found.learning, found.counters, gauges)

    def close(self) -> None:
        """Stop learning and following, and release the connections."""
        if self._fork.is_inherited or self._closed:
            return
        self._closed = True
        if self._learner is not None and self._thread is not None:
            self._learner.stop()
            self._thread.join()
        self._follower.stop()
        with suppress(StorageError):
            self._ask("UPDATE processes SET seen_at = now() WHERE name = %s", self.name)
        for link in self._links.values():
            link.close()

    def __enter__(self) -> "PostgresStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _questions(self) -> Link:
        self._fork.check()
        return self._links["questions"]

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._questions.execute(statement, *values)

    def _use(self, settings: Settings) -> None:
        """Decide as settings say."""
        self._deciding.use_floor(settings.floor, self._follower.served.belief)

    def _change_arms(self, statement: str, *values: Any) -> bool:
        """Change arms in all replicas; the one result of the statement."""

        def work(cursor: Any) -> tuple[bool, None, list[Arm]]:
            cursor.execute("UPDATE bandit SET arms = arms + 1")
            cursor.execute(statement, values)
            row = cursor.fetchone()
            cursor.execute("SELECT pg_notify('neuralucb_' || current_schema(), 'arms')")
            return row is not None and row[0], None, read_arms(cursor)

        changed: bool = self._follower.change(self._questions, work)
        return changed

    def _start_learner(self, retention: Retention) -> None:
        writer, reader = (Link(self.address, use) for use in ("learner", "history"))
        self._links |= {"learner": writer, "history": reader}
        state, serves = new_state(self.plan), self.address.role == "all"
        settings = {"seed": self.plan.seed, "window": self.plan.window, "normalize": False}
        process = LessonProcess(state.programs.policy, settings) if serves and not current_process().daemon else None
        self._learner = Learner(
            writer,
            reader,
            state,
            self.plan,
            name=self.name,
            retention=retention,
            rest=REST if serves else 0.0,
            process=process,
        )
        self._thread = threading.Thread(target=self._learner.run, name="learner", daemon=True)
        self._thread.start()

    def _take_numbers(self, count: int) -> list[int]:
        """Numbers that no other decision has, in rising order."""
        while len(self._numbers) < count:
            ((block,),) = self._links["decisions"].execute("SELECT nextval('blocks')")
            self._numbers = list(range((block + 1) * BLOCK - 1, block * BLOCK - 1, -1)) + self._numbers
        return [self._numbers.pop() for _ in range(count)]

    def _write(
        self, pairs: Sequence[tuple[Request, Chosen]], version: int, settings: Settings
    ) -> tuple[dict[str, Answer | Refusal], dict[str, events.Stored]]:
        """Make choices durable; the answers by event id, and earlier decisions of these events."""
        if not pairs:
            return {}, {}
        requests, chosen = zip(*pairs, strict=True)
        work = events.insertion(requests, chosen, model=version, replica=self.name, wait=settings.wait_seconds)
        now, stored = self._links["decisions"].run(work)
        answers = {
            request.event_id: _answer(request, each, stored.get(request.event_id), version, now)
            for request, each in pairs
        }
        return answers, stored


def open_postgres(
    address: str,
    plan: Plan,
    *,
    role: str | None = None,
    retention: Retention | None = None,
    snapshots: tuple[int, int] | None = None,
) -> PostgresStore:
    """Open the store at an address, and make it if the schema is empty.

    Args:
        address: `postgresql://user@host/database?schema=shop`; what the password needs is libpq's.
        plan: Of a new bandit; one that exists continues as it was made.
        role: `all`, `serve` or `learn`; by default what the address says.
        retention: What the learner keeps how long; by default what the address says.
        snapshots: Of which the last so many, and the last of each of so many days, unless `retention` is given.

    Raises:
        InputError: The address or the plan cannot be used.
        StorageError: The database cannot be reached, or has something that this version cannot read.

    Example:
        >>> from neuralucb.service.postgres import open_postgres
        >>> store = open_postgres("postgresql://shop@db/bandits", Plan(slots=64))  # doctest: +SKIP
    """
    read = read_address(address, role)
    days = None if read.keep_days is None else 86400 * read.keep_days
    kept = {} if snapshots is None else {"snapshots": snapshots[0], "days": snapshots[1]}
    return PostgresStore(read, plan, retention or Retention(decisions=days, **kept))


def _answer(
    request: Request, chosen: Chosen, stored: events.Stored | None, version: int, now: float
) -> Answer | Refusal:
    """What a request is answered: its own decision, or the one that its event already has."""
    if stored is None or stored.number == chosen.number:
        return Answer(
            request.event_id, request.arms, chosen.position, chosen.propensities, chosen.score, chosen.preferred,
            version, now if stored is None else stored.time,
        )  # fmt: skip
    if bytes(stored.digest) != request.digest:
        return _conflict(request)
    return stored.answer(repeated=True)


def _for_repeat(
    first: Request, again: Request, answer: Answer | Refusal, stored: events.Stored | None
) -> Answer | Refusal:
    """What a second request of the same batch with the same event id is answered, whatever the first one was."""
    if isinstance(answer, Answer):
        return answer._replace(repeated=True) if first.digest == again.digest else _conflict(again)
    if stored is not None and bytes(stored.digest) == again.digest:  # the first one was the stranger
        return stored.answer(repeated=True)
    return _conflict(again) if answer.code == "conflict" else answer


def _conflict(request: Request) -> Refusal:
    return Refusal(
        "conflict", f"event_id {request.event_id!r:.80} belongs to another request; choose another, or leave it out."
    )
