"""The learner: the state machine of an `OnlineBandit`, fed by rows. Any process may be it, one at a time is.

Rewards that are ready get a place in the order of learning, in batches, and are then absorbed; a lesson is due after a
batch when the schedule says so. Both are recorded, so that a learner which takes over computes what the one before it
would have computed, from the last model on.
"""

import json
import threading
import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from neuralucb.algorithms import build
from neuralucb.online.compiled import Programs, history_capacity
from neuralucb.online.context_shape import ContextShape, shape_of_policy
from neuralucb.online.lesson_process import LessonProcess
from neuralucb.online.lesson_record import warn
from neuralucb.online.lessons import Lesson, log_failure, train
from neuralucb.online.state import Event, State
from neuralucb.policy import Policy
from neuralucb.runtime.decimals import decimal
from neuralucb.runtime.errors import StorageError
from neuralucb.schedules import default_schedule, next_due, read_schedule
from neuralucb.service.postgres import models
from neuralucb.service.postgres.lease import DeposedError, Lease
from neuralucb.service.postgres.link import Link
from neuralucb.service.postgres.retention import Retention, tidy
from neuralucb.service.postgres.schema import read_settings
from neuralucb.service.rest import Rest
from neuralucb.service.servable import servable
from neuralucb.service.store import Plan, Settings

__all__ = ["Learner", "Observed", "check_plan", "new_state"]

ROWS = 4096
"""Rewards per batch, at most."""

IDLE = 0.1
"""Seconds between two looks for rewards that are ready."""

PUBLISH = 0.25
"""Seconds between two models that only absorbed rewards, at least; and ten times what publishing took."""

LOADING = 300.0
"""Seconds that reading all observations may take."""

PREPARING, FIRST = 5.0, 60.0
"""Seconds for which a lesson waits, after an election, for the process that is to make it; then it is made here. A
bandit that has learned must not stand still, though learners were killed every few seconds; a new one has time."""

HOLD = 60.0
"""Seconds without lessons after one that ended with an error."""

SNAPSHOT = 600.0
"""Seconds between two snapshots, as far as lessons are made."""

CLAIM = """
    WITH ready AS (
        SELECT number, row_number() OVER (ORDER BY ready_at, number) AS place FROM (
            SELECT number, ready_at FROM outcomes
            WHERE status IN ('observed', 'defaulted') AND position IS NULL
            ORDER BY ready_at, number LIMIT %(rows)s FOR UPDATE SKIP LOCKED
        ) AS locked
    ), claimed AS (
        UPDATE outcomes SET position = %(after)s + place, batch = %(after)s + 1
        FROM ready WHERE outcomes.number = ready.number
        RETURNING outcomes.number, outcomes.position, outcomes.reward
    )
    SELECT claimed.position, claimed.reward, context FROM claimed JOIN decisions USING (number) ORDER BY 1
"""
"""By what is missing, not by `number > last`: transactions commit in another order than that of their numbers."""

HISTORY = """
    SELECT outcomes.position, reward, context, batch FROM outcomes JOIN decisions USING (number)
    WHERE outcomes.position {where} AND forgotten IS NULL ORDER BY outcomes.position {order}
"""


class Observed(NamedTuple):
    """Rows to learn from."""

    contexts: Any
    rewards: np.ndarray
    last: int
    """the position of the last one"""

    @classmethod
    def read(cls, rows: list[tuple[Any, ...]], shape: ContextShape) -> "Observed":
        """From rows that begin with position, reward and context."""
        ((size, kind),) = shape.leaves
        data = b"".join(bytes(row[2]) for row in rows)
        contexts = np.frombuffer(data, kind).reshape(len(rows), *size)
        return cls(contexts, np.asarray([row[1] for row in rows], np.float64), rows[-1][0] if rows else 0)


class Learner:
    """Learns while it is elected; otherwise it waits. `run` is a thread's, or a whole process's.

    rest     seconds without a lesson per second of one, for a process that also serves
    process  makes lessons in place of this one, which serves; it is started at an election
    """

    def __init__(
        self,
        link: Link,
        reader: Link,
        state: State,
        plan: Plan,
        *,
        name: str,
        retention: Retention,
        rest: float = 0.0,
        process: LessonProcess | None = None,
    ) -> None:
        self.lease: Lease = Lease(link, name)
        self.problem: str | None = None
        """what went wrong last, if anything"""
        self._reader = reader
        self._state = state
        self._empty = state.export()
        self._own_schedule = plan.schedule or default_schedule(shared=False)
        self._schedule = read_schedule(self._own_schedule)
        self._name = name
        self._retention = retention
        self._rest = Rest(rest)
        self._process = process
        self._preparing: threading.Thread | None = None
        """starts the process, and lets it compile; rewards are absorbed meanwhile"""
        self._prepare_until = 0.0
        """no lesson before this time, as long as it does"""
        self._stop = threading.Event()
        self._position = 0
        """of the last outcome that was absorbed"""
        self._published_at = 0.0
        self._publishing = 0.0
        """seconds that it took"""
        self._is_published = True
        self._hold_until = 0.0
        """no lesson before this time: the last one ended with an error, or decisions need the processor"""
        self._tidied_at = time.monotonic()

    def run(self) -> None:
        """Learn whenever elected, until `stop`."""
        while not self._stop.is_set():
            try:
                elected = self.lease.elect()
                self.problem = None
                if elected:
                    self.load()
                    self._prepare()
                    while not self._stop.is_set():
                        if not self.step():
                            self._stop.wait(IDLE)
            except DeposedError:
                pass
            except StorageError as problem:
                self.problem = str(problem)
            except Exception as problem:  # whatever it is: the next attempt begins with what is in the database
                self.problem = log_failure(problem)
            self._stop.wait(5 * IDLE)
        self.lease.resign()
        if self._process is not None:
            self._process.close()

    def stop(self) -> None:
        """End `run`, after the lesson under way."""
        self._stop.set()
        if self._process is not None:
            self._process.stop_compiling()

    def step(self) -> bool:
        """Settle, absorb one batch, make the lesson that is due, publish; whether there was anything to absorb."""
        with self.lease.writing() as cursor:
            cursor.execute("SELECT settings FROM bandit")
            settings = read_settings(cursor.fetchone()[0])
            self._schedule = read_schedule(settings.schedule or self._own_schedule)
            cursor.execute("SELECT max(number) FROM deletions WHERE relearned_at IS NULL")
            (deletion,) = cursor.fetchone()
            self._settle(cursor, settings)
            cursor.execute(CLAIM, {"rows": ROWS, "after": self._position}, binary=True)
            batch = Observed.read(cursor.fetchall(), self._state.shape)
        if len(batch.rewards):
            self._absorb(batch)
        now = time.monotonic()
        if now < self._hold_until or (now < self._prepare_until and self._is_preparing()):
            pass
        elif deletion is not None:
            self._relearn(deletion)
        elif settings.learning and self._lesson_is_due():
            self._learn()
        self._publish_if_due()
        self._tidy_if_due()
        return len(batch.rewards) == ROWS

    def load(self) -> None:
        """Become what the newest model and the outcomes since describe."""

        def read(cursor: Any) -> tuple[models.Model | None, list[Any], list[Any], Settings]:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT settings FROM bandit")
            settings = read_settings(cursor.fetchone()[0])
            model = models.newest(cursor)
            position = 0 if model is None else model.position
            window = self._state.observations.window
            past = _fetch(cursor, "<= %s", "DESC" if window is None else f"DESC LIMIT {window}", position)
            return model, past[::-1], _fetch(cursor, "> %s", "", position), settings

        model, past, since, settings = self._reader.run(read, patience=LOADING)
        self._schedule = read_schedule(settings.schedule or self._own_schedule)
        self._state.abandon()
        if model is None:
            self._state.restore(*self._empty)
            self._position = 0
        else:
            rows = Observed.read(past, self._state.shape)
            history = {f"history.{name}": each for name, each in self._state.context_arrays(rows.contexts).items()}
            arrays = models.arrays_of(model) | history | {"history.rewards": rows.rewards}
            fields = json.loads(model.fields)
            self._state.restore(fields, arrays)
            self._position = model.position
        self._replay(since, learning=settings.learning)
        self._is_published = False  # the database may have lost the newest one, which it does not log

    def _prepare(self) -> None:
        """Start the process of lessons, and let it compile the next one, while rewards are absorbed."""
        process, rows = self._process, len(self._state.observations.in_window()[1])
        if process is None:
            return

        def prepare() -> None:
            try:
                process.prepare(self._state, [history_capacity(rows)])
            except RuntimeError as problem:  # the next lesson tries again, and is held up if that fails, too
                self.problem = log_failure(problem)

        self._preparing = threading.Thread(target=prepare, name="learner's process", daemon=True)
        self._preparing.start()
        has_learned = self._state.lessons.good_at is not None
        self._prepare_until = time.monotonic() + (PREPARING if has_learned else FIRST)

    def _is_preparing(self) -> bool:
        return self._preparing is not None and self._preparing.is_alive()

    def _settle(self, cursor: Any, settings: Settings) -> None:
        cursor.execute("SELECT settle_events(%s, %s)", (ROWS, settings.default_reward))
        found = [status for (status,) in cursor.fetchall()]
        if found:
            counts = [found.count(status) for status in ("observed", "defaulted", "expired")]
            cursor.execute(
                "UPDATE processes SET settled = settled + %s, defaulted = defaulted + %s, expired = expired + %s "
                "WHERE name = %s",
                (*counts, self._name),
            )

    def _absorb(self, batch: Observed) -> None:
        arrays = {**self._state.context_arrays(batch.contexts), "rewards": batch.rewards}
        self._state.apply(Event("fit", {}, arrays))
        self._state.absorb_buffer()
        self._position, self._is_published = batch.last, False

    def _lesson_is_due(self) -> bool:
        due = next_due(self._schedule, since=self._state.learned_at)
        return due is not None and due <= self._state.observations.total

    def _learn(self, deletion: int | None = None) -> None:
        """One lesson, as `OnlineBandit.learn` makes it, and the model after it."""
        state, began = self._state, time.monotonic()
        state.apply(Event("start", {}, {}))
        training = state.training
        assert training is not None
        number = state.counts["learned"] + state.counts["diverged"]
        process = None if self._is_preparing() else self._process
        was_compiled = process is not None and process.has_prepared([history_capacity(len(training.rewards))])
        try:
            make = train if process is None else process.train
            lesson, arrays = make(state, training, number)
        except Exception as problem:  # memory, for example: observations go on, and it is tried again later
            state.abandon()
            self.problem, self._hold_until = log_failure(problem), time.monotonic() + HOLD
            return
        ended = {"promoted": lesson.promoted, "loss": lesson.loss, "failure": lesson.failure}
        state.apply(Event("learn", ended, arrays))
        if not lesson.promoted:
            warn(state.lessons.lesson_failure())
        self.problem = state.lessons.failure(state.counts["refused"])
        seconds = time.monotonic() - began
        self._record(lesson, seconds, deletion)
        self._hold_until = time.monotonic() + self._rest.after(seconds, was_compiled=was_compiled)

    def _record(self, lesson: Lesson, seconds: float, deletion: int | None) -> None:
        kind = "lesson" if deletion is None else "relearn"
        assert self.lease.epoch is not None
        model = models.freeze(self._state, epoch=self.lease.epoch, position=self._position)
        with self.lease.writing(patience=60.0) as cursor:
            cursor.execute(
                "INSERT INTO lessons (kind, epoch, position, observations, promoted, loss, failure, seconds) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                (kind, self.lease.epoch, self._position, lesson.observations, lesson.promoted,
                 decimal(lesson.loss) if np.isfinite(lesson.loss) else None, lesson.failure, seconds),
            )  # fmt: skip
            if deletion is not None:
                _forget_models(cursor, deletion)
            cursor.execute("SELECT max(made_at) > now() - make_interval(secs => %s) FROM snapshots", (SNAPSHOT,))
            models.keep(cursor, model, kind="lesson" if cursor.fetchone()[0] else "snapshot")
            models.publish(cursor, model)
        self._is_published, self._published_at = True, time.monotonic()

    def _relearn(self, deletion: int) -> None:
        """Learn again from what deletions up to this one have left, as `OnlineBandit.fit` does, all at once."""
        version, position = self._state.version, self._position
        rows = self._reader.run(lambda cursor: _fetch(cursor, "<= %s", "", position), patience=LOADING)
        self._state.restore(*self._empty)
        for first in range(0, len(rows), ROWS):
            self._absorb(Observed.read(rows[first : first + ROWS], self._state.shape))
        self._state.version, self._position = max(version, self._state.version) + 1, position
        self._learn(deletion)

    def _publish_if_due(self) -> None:
        now = time.monotonic()
        if self._is_published or now < self._published_at + max(PUBLISH, 10 * self._publishing):
            return
        assert self.lease.epoch is not None
        model = models.freeze(self._state, epoch=self.lease.epoch, position=self._position)
        with self.lease.writing(patience=60.0) as cursor:
            models.publish(cursor, model)
        self._published_at = time.monotonic()
        self._publishing, self._is_published = self._published_at - now, True

    def _tidy_if_due(self) -> None:
        if time.monotonic() < self._tidied_at + self._retention.every:
            return
        self._tidied_at = time.monotonic()
        with self.lease.writing(patience=60.0) as cursor:
            removed = tidy(cursor, self._retention)
        if removed:
            self.load()  # lessons learn from what is left

    def _replay(self, rows: list[Any], *, learning: bool) -> None:
        """Absorb batches that a learner before this one claimed, as it would have, lessons included."""
        ends = [end for end in range(1, len(rows) + 1) if end == len(rows) or rows[end][3] != rows[end - 1][3]]
        for first, end in zip([0, *ends], ends, strict=False):
            self._absorb(Observed.read(rows[first:end], self._state.shape))
            if learning and self._lesson_is_due():
                self._learn()


def new_state(plan: Plan) -> State:
    """The state of a bandit before the first observation. Those of equal plans share their compiled programs."""
    policy = _policy(plan.algorithm, plan.slots, json.dumps(dict(plan.options), sort_keys=True))
    programs = Programs(policy, plan.seed, plan.floor)
    return State(programs, shape_of_policy(policy, None), window=plan.window, normalize=False, capacity=None)


def check_plan(plan: Plan) -> None:
    """Refuse the plan of a new bandit if it cannot be served: it is kept for ever."""
    servable(plan.algorithm, plan.options, plan.slots)
    read_schedule(plan.schedule or default_schedule(shared=False))
    new_state(plan)


@lru_cache(maxsize=4)
def _policy(algorithm: str, slots: int, options: str) -> Policy:
    return build(algorithm, dim=slots, **json.loads(options))


def _fetch(cursor: Any, where: str, order: str, position: int) -> list[Any]:
    cursor.execute(HISTORY.format(where=where, order=order), (position,), binary=True)
    return list(cursor.fetchall())


def _forget_models(cursor: Any, deletion: int) -> None:
    """Delete models that have learned from rows that are gone: a rollback would bring them back."""
    cursor.execute(
        "UPDATE deletions SET relearned_at = now() WHERE relearned_at IS NULL AND number <= %s RETURNING unchanged",
        (deletion,),
    )
    unchanged = min(position for (position,) in cursor.fetchall())
    cursor.execute("DELETE FROM models WHERE position > %s", (unchanged,))
