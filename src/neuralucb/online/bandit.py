"""`OnlineBandit`: a policy in front of real traffic. The only class in the library that owns changing state."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from neuralucb.online.adoption import adoption_event
from neuralucb.online.annex import Annex, with_memo
from neuralucb.online.arms import ArmId, arm_id
from neuralucb.online.choices import begin, decide
from neuralucb.online.compiled import Programs
from neuralucb.online.context_shape import shape_of_policy
from neuralucb.online.decision_ids import DecisionIds
from neuralucb.online.duties import Duties
from neuralucb.online.expiry import expire
from neuralucb.online.fitting import fit
from neuralucb.online.health import Health, examine
from neuralucb.online.inputs import (
    Request,
    RewardBounds,
    check_policy,
    feature_names,
    read_ids,
    read_observations,
    read_request,
    read_rewards,
    read_settings,
)
from neuralucb.online.journal import Sync
from neuralucb.online.keeper import Identity, Keeper, Saved, absorb, commit, readable, restore_saved, save
from neuralucb.online.ledger import Decision, DecisionBatch, Explanation
from neuralucb.online.lesson_process import LessonProcess
from neuralucb.online.lessons import Lesson, give_lesson
from neuralucb.online.process_lock import ProcessLock
from neuralucb.online.removal import Removal, read_removal, removal_event
from neuralucb.online.snapshots import Retention
from neuralucb.online.state import Event, State
from neuralucb.online.warm_up import warm_up
from neuralucb.policy import Policy
from neuralucb.runtime.errors import InputError
from neuralucb.schedules import default_schedule
from neuralucb.settings import check_integer

__all__ = ["OnlineBandit"]


class OnlineBandit:
    """A policy that decides, takes rewards late and in any order, learns, and loses nothing. Safe to use from threads.

    Args:
        policy: Made by `build`, or your own.
        seed: Of everything random; the same calls in the same order give the same decisions.
        schedule: When to learn, in observations: `"100"`, or `"10:500,100"`; if not set, `default_schedule`'s.
        learning: `"inline"`: the `observe` that makes a lesson due waits for it; `"background"`: a thread learns;
            `"process"`: a process of its own does, which delays decisions least; `"manual"`: only `learn()` does.
        window: Learn from the last so many observations only, and forget older ones, for a world that drifts.
        normalize: Show the policy rewards minus their mean, over their standard deviation; decisions are denormalized.
        reward_range: The lowest and the highest reward there can be; those outside are treated as `outside` says.
        outside: `"refuse"`: they raise InputError; `"clip"`: they are moved to the bound, and counted in `health()`.
        count_pending: Treat pending decisions as if they had brought their expected reward, so that a batch explores.
        floor: The probability of choosing uniformly among the available arms. Without it the choices of UCB are
            deterministic, and their log says little about other policies.
        journal: A folder to which every decision and reward is written before it is acknowledged; a bandit that the
            folder already holds is continued.
        sync: When the journal is forced to disk: `"each"` record, at an `"interval"` of 50 ms, or `"none"`.
        snapshot_every: Journal records (decisions, rewards, lessons) between two snapshots.
        example: The context of one arm, for a policy that was not made by `build`.
        annex: State of the caller's that is kept in the journal too, and changes by the memos of the caller's calls.

    Raises:
        InputError: An argument cannot be used, or the folder belongs to another bandit.
        StorageError: The folder is damaged, in use, of a newer format, or cannot be written.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2), journal="shop")
        >>> decision = bandit.select([[0.0, 1.0], [1.0, 0.0]])
        >>> bandit.observe(decision.id, 1.0)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        seed: int = 0,
        schedule: str | None = None,
        learning: Literal["inline", "background", "process", "manual"] = "inline",
        window: int | None = None,
        normalize: bool = False,
        reward_range: tuple[float, float] | None = None,
        outside: Literal["refuse", "clip"] = "refuse",
        count_pending: bool = False,
        floor: float = 0.0,
        journal: str | Path | None = None,
        sync: Sync = "interval",
        snapshot_every: int = 20_000,
        example: Any = None,
        annex: Annex | None = None,
    ) -> None:
        check_policy(policy, journal)
        shared_by = policy.origin.shared_by if policy.origin is not None else None
        schedule = default_schedule(shared=shared_by is not None) if schedule is None else schedule
        self.settings: dict[str, Any] = read_settings(
            seed=seed, schedule=schedule, learning=learning, window=window, normalize=normalize,
            reward_range=reward_range, outside=outside, count_pending=count_pending, floor=floor,
            snapshot_every=snapshot_every, sync=sync,
        )  # fmt: skip
        self.ids: DecisionIds = DecisionIds.new()
        self.state: State = State(
            Programs(policy, self.settings["seed"], self.settings["floor"]),
            shape_of_policy(policy, example),
            **{name: self.settings[name] for name in ("window", "normalize")},
            capacity=shared_by, annex=annex,
        )  # fmt: skip
        """everything it knows, to look at; only the methods of the bandit change it"""
        self._bounds = RewardBounds.read(self.settings)
        self._lock = ProcessLock()  # held while the state is read or changed
        self._learning = ProcessLock()  # held during a lesson or a snapshot, of which there is one at a time
        self.between_lessons: ProcessLock = self._learning
        """whoever holds it has waited for the lesson or snapshot under way, and no other begins"""
        self._keeper: Keeper | None = None
        if journal is not None:
            self._keeper = Keeper(Path(journal), sync, self.state, Identity(self.ids, self.settings, policy))
            self.ids = self._keeper.identity.ids
        self._duties = Duties(self.state, self.settings, self._keeper, self._lock, self._learning, self.learn)
        self.lesson_process: LessonProcess | None = self._duties.process
        """which makes lessons where learning is "process"; it compiles ahead, too"""
        if self._keeper is not None:
            self._duties.catch_up()

    def select(self, contexts: Any = None, *, arms: Sequence[ArmId] | None = None, available: Any = None) -> Decision:
        """Choose an arm.

        Args:
            contexts: (K, d), one row per arm; or (d,), the context that all arms share, if arms were added.
            arms: Ids of the arms to choose from; by default all that were added.
            available: K booleans; arms that are False are not chosen.

        Returns:
            The decision, recorded. Pass its `id` to `observe` when the reward is known.

        Raises:
            InputError: An argument cannot be used, or the contexts are so large that what the policy believes of an
                available arm is not finite; nothing has changed.
            StorageError: The journal accepts no more writes.
        """
        return self._decide(read_request(self.state.arms, contexts, arms, available, 1)).decisions(self.ids)[0]

    def select_many(
        self, contexts: Any, *, arms: Sequence[ArmId] | None = None, available: Any = None
    ) -> list[Decision]:
        """Choose an arm for each of many requests at once, far faster than one by one. Raises what `select` raises.

        Args:
            contexts: (B, K, d); or (B, d), the contexts that all arms share, if arms were added.
            arms: Ids of the arms to choose from; by default all that were added.
            available: (B, K) booleans; arms that are False are not chosen.

        Returns:
            B decisions, in order.
        """
        return self._decide(read_request(self.state.arms, contexts, arms, available, 2)).decisions(self.ids)

    def begin_many(self, contexts: Any, available: Any, memo: Any) -> Callable[[], DecisionBatch]:
        """Begin `select_many`, whose end it returns: as arrays, without ids, and with a memo for the `annex`."""
        with self._lock:
            absorb(self._keeper, self.state)
        self._duties.catch_up(lessons=False)
        request = read_request(self.state.arms, contexts, None, available, 2)
        return begin(self.state, self._lock, self._commit, request, memo, sequential=False)

    def observe(self, decision_id: str, reward: float) -> None:
        """Record the reward of a decision, however late.

        Args:
            decision_id: The `id` of a pending decision.
            reward: A finite number.

        Raises:
            InputError: The decision is unknown, has expired or already has its reward, or the reward is not finite or
                outside `reward_range`.
            StorageError: The journal accepts no more writes.
        """
        self.observe_many([decision_id], [reward])

    def observe_many(self, decision_ids: Sequence[str], rewards: Sequence[float]) -> None:
        """Record many rewards at once: all of them, or, if one is refused, none. Raises what `observe` raises.

        Args:
            decision_ids: Ids of pending decisions, in any order.
            rewards: One finite number per decision.
        """
        ids = read_ids(decision_ids)
        read_rewards(rewards, self._bounds, len(ids))  # first: what is wrong with ids is asked of good rewards only
        self.resolve([self.ids.number_of(each) for each in ids], rewards)

    def resolve(
        self, numbers: Sequence[int], rewards: Sequence[float], *, labels: Sequence[str] | None = None, memo: Any = None
    ) -> None:
        """`observe_many` by numbers of decisions; with the arms' ids, for `forget`, and a memo for the `annex`."""
        values, clipped = read_rewards(rewards, self._bounds, len(numbers))
        if len(values) == 0:
            return
        with self._lock:
            fields = ({"clipped": clipped} if clipped else {}) | ({} if labels is None else {"labels": list(labels)})
            arrays = {"numbers": self.state.ledger.all_pending(numbers, self.ids), "rewards": values}
            self._commit(Event("reward", with_memo(fields, memo), arrays))
        self._duties.catch_up()

    def fit(self, contexts: Any, arms: Any = None, rewards: Any = None) -> Lesson:
        """Start warm: observe the decisions of a log, then learn.

        Args:
            contexts: A log from `open_log`; or (n, d), the contexts of the arms played; or, with `arms`, (n, d) shared
                contexts for arms that were added, or (n, K, d).
            arms: The arm played in each row: its id, or its number among the K.
            rewards: One finite number per row.

        Returns:
            The lesson.

        Raises:
            InputError: An argument cannot be used. A log is checked to its end before anything changes.
            StorageError: The journal accepts no more writes.
        """
        read = read_observations(self.state.arms, contexts, arms, rewards, self._bounds)
        fit(self.state, self._lock, self._commit, feature_names(contexts, self.state.names), read)
        lesson = self.learn()
        self._duties.catch_up()
        return lesson

    def expire(self, older_than: float) -> int:
        """Give up on decisions that have been pending for `older_than` seconds or more; returns how many."""
        expired = expire(self.state, self._lock, self._commit, older_than=older_than)
        self._duties.catch_up()
        return expired

    def record(self, memo: Any, *, expired: Sequence[int] = ()) -> None:
        """Record a memo for the `annex`, and that the decisions with these numbers have expired."""
        with self._lock:
            arrays = {"numbers": self.state.ledger.all_pending(expired, self.ids)} if expired else {}
            self._commit(Event("expire" if expired else "note", with_memo({}, memo), arrays))
        self._duties.catch_up(lessons=False)

    def learn(self) -> Lesson:
        """Train now, on what has been observed so far; other threads may select and observe during it.

        Returns:
            The lesson. If it is not `promoted`, the last good belief stays in use; its `failure`, a warning on the
            logger `neuralucb` and `health()` say why.
        """
        with self._learning:
            return give_lesson(self.state, self._lock, self._commit, self._duties.trainer)

    def forget(
        self, decision_ids: Sequence[str] | None = None, *, since: float | None = None, until: float | None = None,
        arm: ArmId | None = None, missing: Literal["refuse", "ignore"] = "refuse", memo: Any = None, learn: bool = True,
    ) -> Removal:  # fmt: skip
        """Remove observations, and learn again from the rest, all at once: the belief is as if `fit` had got the rest.

        Args:
            decision_ids: Of these decisions; or, if None, of a period.
            since: Made from this moment on, in seconds since 1970.
            until: Made before this moment.
            arm: Only of this arm.
            missing: What becomes of decisions that have nothing to remove, or no longer.
            memo: For the `annex`, as in `begin_many`.
            learn: Whether to do so now; if not, the next lesson does.

        Raises:
            InputError: Neither decisions nor a period is given, one is not known, or the period is to come.
        """
        which = read_removal(self.ids, decision_ids, since, until)
        with self._learning:
            with self._lock:
                barrier = 0 if self._keeper is None else self._keeper.newest
                event, found = removal_event(self.state, which, arm, missing, barrier=barrier, memo=memo)
                if any(found):
                    self._commit(event)
            if found.observations and learn:
                self.learn()
        return found

    def share(self, follower: State) -> bool:
        """Let another state observe what this bandit has observed since it did so last; see `State.follow`."""
        with self._lock:
            return follower.follow(self.state)

    def adopt(self, successor: State, *, memo: Any = None, prepare: Callable[[], object] | None = None) -> None:
        """Decide with another policy from now on, made by `build`, which has learned from the same; decisions stay.

        It is brought up to date, then `prepare` is called, while nothing can change.
        """
        with self._learning, self._lock:
            barrier = 0 if self._keeper is None else self._keeper.newest
            self._commit(adoption_event(self.state, successor, prepare, barrier=barrier, memo=memo))

    def add_arm(self, arm: ArmId, features: Any = None) -> None:
        """Add an arm, from the next decision on.

        Args:
            arm: A string or an integer that names it.
            features: Numbers that follow the shared context; None for a policy built with `shared_by`.

        Raises:
            InputError: The arm already exists, or its features do not fit.
        """
        with self._lock:
            arm = arm_id(arm)
            row = self.state.arms.check_new(arm, features)
            self._commit(Event("add arm", {"arm": arm}, {"features": row}))

    def remove_arm(self, arm: ArmId) -> None:
        """Stop choosing an arm; rewards of its earlier decisions are still accepted."""
        with self._lock:
            (arm,) = self.state.arms.check([arm])
            self._commit(Event("remove arm", {"arm": arm}, {}))

    def save(self, path: str | Path) -> Path:
        """Write the whole bandit to a folder, completely or not at all; an earlier save in it is replaced.

        Raises:
            InputError: The folder is a journal's; `snapshot` writes there.
            StorageError: The folder cannot be written.
        """
        with self._learning:
            return save(Path(path), self.state, Identity(self.ids, self.settings, self.policy), self._lock)

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None, *, example: Any = None) -> "OnlineBandit":
        """The bandit that `save` wrote, or that a journal's folder holds.

        Args:
            path: The folder.
            policy: Only for a policy that was not made by `build`: the same one again.
            example: As in the constructor.

        Returns:
            The bandit, which continues exactly where it was.

        Raises:
            InputError: The policy is missing, or another one than was saved.
            StorageError: The folder is damaged, in use, of a newer format, or holds no bandit.
        """
        folder = Path(path)
        with readable(folder):
            saved = Saved.read(folder, policy, example)
            bandit = cls(saved.policy, **saved.settings, journal=saved.journal, example=saved.example)
            if saved.journal is None:
                identity = Identity(bandit.ids, bandit.settings, bandit.policy)
                bandit.ids = restore_saved(bandit.state, identity, saved, folder).ids
        return bandit

    def snapshot(self) -> int:
        """Write a snapshot to the journal's folder now; returns its number."""
        with self._learning:
            return self._require_keeper().snapshot(self._lock)

    def retain(self, snapshots: int, days: int = 0) -> None:
        """From the next one on, keep the last so many snapshots, and the last of each of so many days."""
        self._require_keeper().retention = Retention(check_integer("snapshots", snapshots, 1), days)

    def gather(self, seconds: float) -> None:
        """From now on, let rewards wait up to so long before decisions know them: many cost little more than one."""
        self.state.gathering = seconds

    def rollback(self, steps: int = 1, *, snapshot: int | None = None) -> int:
        """Return to the `steps`-th last snapshot's belief and observations, or to those of `snapshot`, a number.

        Pending decisions stay pending. Called again, it goes further back.

        Returns:
            The number of the snapshot.

        Raises:
            InputError: There are fewer snapshots, or no journal.
            StorageError: The snapshot is damaged, or the journal accepts no more writes.
        """
        with self._learning, self._lock:
            return self._require_keeper().rollback(check_integer("steps", steps, 1), snapshot)

    def close(self) -> None:
        """Wait for the lesson under way, sync the journal, and release its folder. In a fork it does nothing."""
        if self._lock.is_inherited:
            return
        self._duties.close()
        with self._learning, self._lock:
            if self._keeper is not None:
                self._keeper.close()

    def __enter__(self) -> "OnlineBandit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self, decision_id: str) -> Explanation:
        """Why a decision was made, arm by arm; print it. Pending decisions, and the last 1000 resolved ones."""
        with self._lock:
            return self.state.ledger.explain(decision_id, self.ids)

    def health(self) -> Health:
        """Counters, memory, and whether the belief is sound; print it."""
        return examine(self.state, self._keeper, self._lock, self._duties.problem, self._duties.next_lesson)

    @property
    def policy(self) -> Policy:
        """The one that decides."""
        return self.state.programs.policy

    @property
    def name(self) -> str:
        """With which the ids of its decisions begin."""
        return self.ids.name

    @property
    def names(self) -> dict[str, list[str]] | None:
        """The names of a context's features, if it learned from a log: the `shared` ones, then each arm's `own`."""
        return self.state.names

    def warm_up(self, arms: int | None = None, decisions: int = 1, observations: int | None = None) -> int:
        """Compile in advance what decisions over so many arms, and learning, need.

        Args:
            arms: How many to choose from; by default those that were added.
            decisions: How many per call; above 1 for `select_many`.
            observations: Up to how many lessons are compiled; by default the `window`, or as many as there are.

        Returns:
            How many programs have been compiled so far.
        """
        self._lock.check()
        sequential = self.settings["count_pending"]
        warm_up(self.state, self.lesson_process, decisions, arms, observations, sequential=sequential)
        return self.health().compiled

    def _decide(self, request: Request) -> DecisionBatch:
        with self._lock:
            absorb(self._keeper, self.state)
        batch = decide(self.state, self._lock, self._commit, request, sequential=self.settings["count_pending"])
        self._duties.catch_up(lessons=False)
        return batch

    def _commit(self, event: Event) -> None:
        commit(self._keeper, self.state, event)

    def _require_keeper(self) -> Keeper:
        if self._keeper is None:
            raise InputError("journal must be a folder for this, got None; without a journal, use save and load.")
        return self._keeper
