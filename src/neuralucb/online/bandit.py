"""`OnlineBandit`: a policy in front of real traffic. The only class here that owns state which changes."""

import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralucb.online import keeper as recovery
from neuralucb.online.arms import ArmId, arm_id
from neuralucb.online.compiled import Programs
from neuralucb.online.contexts import shape_of_policy
from neuralucb.online.deciding import decide, decide_many
from neuralucb.online.health import Health, examine
from neuralucb.online.inputs import (
    check_policy,
    is_number,
    names_of,
    pieces,
    read_arguments,
    read_request,
    read_rewards,
)
from neuralucb.online.journal import Sync
from neuralucb.online.ledger import Decision, Explanation
from neuralucb.online.lessons import Background, Lesson, train, warn
from neuralucb.online.state import Event, State
from neuralucb.policy import Policy
from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.schedules import is_due, read_schedule
from neuralucb.settings import check_integer

__all__ = ["OnlineBandit"]


class OnlineBandit:
    """A policy that decides, takes rewards late and in any order, learns, and loses nothing.

    policy         made by `build`, or your own
    seed           of everything random; the same calls in the same order give the same decisions
    schedule       when to learn, in observations: "100", or "10:500,100"
    learning       `inline`: the `observe` that makes it due waits for it; `background`: a thread; `manual`: `learn()`
    window         learn from the last so many observations only, and forget the rest, for a world that drifts
    normalize      let the policy see rewards minus their mean, over their deviation; decisions are in your scale
    floor          choose any available arm, uniformly, with this probability: without chance a log teaches little
    count_pending  count decisions without a reward as if they had brought what was expected: batches then explore
    journal        a folder in which every decision and reward is kept before it is answered; what it holds goes on
    sync           when the journal is forced to the disk: `each`, `interval` (50 ms), `none`
    snapshot_every records of the journal between two snapshots: decisions, rewards, lessons
    example        a context of one arm, for a policy that was not made by `build`
    """

    def __init__(
        self,
        policy: Policy,
        *,
        seed: int = 0,
        schedule: str = "100",
        learning: Literal["inline", "background", "manual"] = "inline",
        window: int | None = None,
        normalize: bool = False,
        count_pending: bool = False,
        floor: float = 0.0,
        journal: str | Path | None = None,
        sync: Sync = "interval",
        snapshot_every: int = 20_000,
        example: Any = None,
    ) -> None:
        check_policy(policy, journal)
        self.settings = read_arguments(
            seed=seed, schedule=schedule, learning=learning, window=window, normalize=normalize,
            count_pending=count_pending, floor=floor, snapshot_every=snapshot_every, sync=sync,
        )  # fmt: skip
        self._schedule = read_schedule(schedule)
        shape = shape_of_policy(policy, example)
        if shape is None:
            raise InputError("example must be a context of one arm, got None: build did not make this policy.")
        self.name = secrets.token_hex(8)
        self.policy = policy
        self._programs = Programs(policy, self.settings["seed"], self.settings["floor"])
        places = policy.origin.shared_by if policy.origin is not None else None
        kept = {name: self.settings[name] for name in ("window", "normalize")}
        self._state = State(self._programs, shape, places=places, **kept)
        self._lock = threading.RLock()
        self._learning = threading.RLock()
        self._given = 0
        self.failure: str | None = None
        """why the last lesson or snapshot that was due came to nothing, if it did"""
        self._keeper: recovery.Keeper | None = None
        if journal is not None:
            self._keeper = recovery.Keeper(self, Path(journal), sync)
        self._given = self._state.ledger.next
        self._background = Background(self._learn_and_keep) if learning == "background" else None
        if self._keeper is not None:
            self._after_observing()

    def select(self, contexts: Any = None, *, arms: Sequence[ArmId] | None = None, available: Any = None) -> Decision:
        """Choose an arm: contexts (K, d), or a context that all arms share, for those named or all there are."""
        return decide(self, *read_request(self._state.arms, contexts, arms, available, 1))

    def select_many(
        self, contexts: Any, *, arms: Sequence[ArmId] | None = None, available: Any = None
    ) -> list[Decision]:
        """Choose for many at once: contexts (B, K, d), or (B, d) that arms share. Far faster than one by one."""
        return decide_many(self, *read_request(self._state.arms, contexts, arms, available, 2))

    def observe(self, decision_id: str, reward: float) -> None:
        """Take the reward of a decision, however late."""
        self.observe_many([decision_id], [reward])

    def observe_many(self, decision_ids: Sequence[str], rewards: Sequence[float]) -> None:
        """Take many rewards at once: all of them, or, if one is wrong, none."""
        if isinstance(decision_ids, str) or not isinstance(decision_ids, Sequence | np.ndarray):
            raise InputError(f"decision_ids must be a list of ids, got {decision_ids!r:.80}.")
        values = read_rewards(rewards, len(decision_ids))
        if len(values) == 0:
            return
        with self._lock:
            numbers = self._state.ledger.numbers(decision_ids, self.name)
            self._do(Event("reward", {}, {"numbers": np.asarray(numbers, np.int64), "rewards": values}))
        self._after_observing()

    def fit(self, contexts: Any, arms: Any = None, rewards: Any = None) -> Lesson:
        """Start warm: from a log that `open_log` gave, or from its columns; then learn from all.

        contexts, arms  (n, d) of what was played, without arms; shared ones beside ids; (n, K, d) beside numbers
        """
        names = names_of(contexts, self._state.names)
        for rows, values in pieces(self._state.arms, contexts, arms, rewards):
            with self._lock:
                if names != self._state.names:
                    self._do(Event("names", {"names": names}, {}))
                self._do(Event("fit", {}, {**self._state.context_arrays(rows), "rewards": values}))
        lesson = self.learn()
        self._after_observing()
        return lesson

    def expire(self, older_than: float) -> int:
        """Give up on decisions that wait for longer than so many seconds; returns how many."""
        if not is_number(older_than) or not older_than >= 0:
            raise InputError(f"older_than must be seconds, at least 0, got {older_than!r}.")
        with self._lock:
            numbers = self._state.ledger.older_than(older_than, time.time())
            if numbers:
                self._do(Event("expire", {}, {"numbers": np.asarray(numbers, np.int64)}))
        self._after_observing()
        return len(numbers)

    def learn(self) -> Lesson:
        """Train now, on what was observed so far. Meanwhile others may select and observe."""
        with self._learning:
            with self._lock:
                self._do(Event("start", {}, {}))
                base = self._state.base
                assert base is not None
                number = self._state.counts["learned"] + self._state.counts["diverged"]
            try:
                lesson, arrays = train(self._programs, self._state, base, number)
                with self._lock:
                    self._do(Event("learn", {"promoted": lesson.promoted, "loss": lesson.loss}, arrays))
            except BaseException:
                with self._lock, suppress(StorageError):
                    self._do(Event("abandon", {}, {}))
                raise
            return lesson

    def add_arm(self, arm: ArmId, features: Any = None) -> None:
        """A new arm, from the next decision on."""
        with self._lock:
            arm = arm_id(arm)
            row = self._state.arms.check_new(arm, features)
            self._do(Event("add arm", {"arm": arm}, {"features": row}))

    def remove_arm(self, arm: ArmId) -> None:
        """Not to be chosen any more; rewards of earlier decisions for it are still taken."""
        with self._lock:
            (arm,) = self._state.arms.check([arm])
            self._do(Event("remove arm", {"arm": arm}, {}))

    def save(self, path: str | Path) -> Path:
        """Write all of it into a folder, whole or not at all; an earlier save there is replaced."""
        with self._learning:
            return recovery.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None, *, example: Any = None) -> "OnlineBandit":
        """What `save` wrote, or a journal's folder. A policy that `build` did not make must be given again."""
        return recovery.load(cls, Path(path), policy, example)

    def snapshot(self) -> int:
        """Write a snapshot into the journal's folder now; returns its number."""
        with self._learning:
            return self._kept().snapshot()

    def rollback(self, steps: int = 1) -> int:
        """Believe again what the `steps`-th snapshot from the end has; what was observed since is forgotten.

        Decisions that wait go on waiting. Called again, it goes further back. Returns the number of the snapshot.
        """
        steps = check_integer("steps", steps, 1)
        with self._learning, self._lock:
            return self._kept().rollback(steps)

    def close(self) -> None:
        """Let a lesson at hand end, and the journal go."""
        if self._background is not None:
            self._background.close()
        with self._learning, self._lock:
            if self._keeper is not None:
                self._keeper.close()

    def __enter__(self) -> "OnlineBandit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self, decision_id: str) -> Explanation:
        """Why a decision was made, arm by arm; print it."""
        with self._lock:
            return self._state.ledger.explain(decision_id, self.name)

    def health(self) -> Health:
        """Counts, memory, and whether the belief is sound."""
        with self._lock:
            return examine(self)

    @property
    def names(self) -> dict[str, list[str]] | None:
        """The features of a context in order, if a log said: those `shared` by the arms, then each one's `own`."""
        return self._state.names

    def warm_up(self, arms: int | None = None, decisions: int = 1) -> int:
        """Compile ahead what decisions over so many arms need, and learning; returns how many programs there are."""
        there = self._state.arms
        count = check_integer("arms", arms or there.places or max(1, len(there.place)), 1)
        decisions = check_integer("decisions", decisions, 1)
        contexts = self._state.shape.zeros(decisions, count)
        self._programs.warm_up(self._state.belief, contexts, in_turn=self.settings["count_pending"])
        kept, rewards = self._state.observations.kept()
        history = self._state.observations.history(kept, self._state.seen(rewards))
        self._programs.learn(0, self._state.belief, history)
        return self._programs.compilations

    def _do(self, event: Event) -> None:
        """Keep an event, then let it happen."""
        if self._keeper is not None:
            self._keeper.append(event)
        try:
            self._state.apply(event)
            self._state.settle()
        except BaseException as problem:
            if self._keeper is not None:
                self._keeper.fail(problem)
            raise

    def _after_observing(self) -> None:
        due = self._is_due() and self.settings["learning"] != "manual"
        if due or (self._keeper is not None and self._keeper.is_due()):
            if self._background is not None:
                self._background.want()
            else:
                self._learn_and_keep()

    def _is_due(self) -> bool:
        return is_due(self._schedule, since=self._state.learned_at, now=self._state.observations.total)

    def _learn_and_keep(self) -> None:
        """What is due: a lesson, a snapshot. What was observed is safe, whatever comes of them: health() tells."""
        with self._learning:
            try:
                if self._is_due() and self.settings["learning"] != "manual":
                    self.learn()
                if self._keeper is not None and self._keeper.is_due():
                    self._keeper.snapshot()
                self.failure = None
            except Exception as problem:
                self.failure = warn("a lesson or a snapshot that was due came to nothing", problem)

    def _give(self, count: int) -> int:
        """Numbers for decisions, never given twice."""
        with self._lock:
            first, self._given = self._given, self._given + count
        return first

    def _kept(self) -> recovery.Keeper:
        if self._keeper is None:
            raise InputError("journal must name a folder for this, got None; or take save and load.")
        return self._keeper
