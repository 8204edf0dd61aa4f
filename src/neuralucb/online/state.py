"""All that an `OnlineBandit` knows, changed by events alone: the same ones live and from a journal."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import Arms
from neuralucb.online.codec import leaves_of, with_leaves
from neuralucb.online.compiled import Programs
from neuralucb.online.contexts import Shape
from neuralucb.online.ledger import Asked, Ledger, column
from neuralucb.online.observations import Observations
from neuralucb.policy import Belief

__all__ = ["Base", "Event", "Moments", "State"]

COUNTED = ("decisions", "observed", "expired", "learned", "diverged", "refused", "explored")


OF_DECISIONS = ("decisions", "expired", "explored")


class Event(NamedTuple):
    """One change: its kind, plain values, arrays."""

    kind: str
    fields: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Base(NamedTuple):
    """What a training begins with."""

    belief: Belief
    total: int
    contexts: Any
    rewards: np.ndarray
    """as the network is to see them"""
    learned_at: int
    """when the training before this one began"""


class State:
    """Belief, observations, decisions that wait, arms, counts. `apply` is the only way to change it."""

    def __init__(
        self, programs: Programs, shape: Shape, *, window: int | None, normalize: bool, places: int | None
    ) -> None:
        self.programs, self.shape, self.normalize = programs, shape, normalize
        self.fresh = programs.init()
        self.belief = self.fresh
        self.version = 0
        self.ledger = Ledger()
        self.observations = Observations(shape, window)
        self.arms = Arms(shape, places, {}, {}, 0)
        self.moments = Moments()
        self.counts = dict.fromkeys(COUNTED, 0)
        self.names: dict[str, list[str]] | None = None
        """of features, if a log said"""
        self.learned_at = 0
        self.loss = math.nan
        self.smallest_variance = math.inf
        self.base: Base | None = None
        self._supposed: Belief | None = None
        self._unsupposed: list[int] = []
        """decisions since that was made"""
        self._waiting: list[tuple[Any, np.ndarray]] = []
        """observed, but not yet in the belief: replaying absorbs many at once"""
        self._unabsorbed = 0
        """rows among them"""
        self._kinds: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], None]] = {
            "decide": self._decide,
            "reward": self._reward,
            "expire": self._expire,
            "fit": lambda fields, arrays: self._observe(self.context_of(arrays), arrays["rewards"]),
            "names": self._name,
            "start": lambda fields, arrays: self._start(),
            "learn": self._learn,
            "abandon": lambda fields, arrays: self.abandon(),
            "add arm": self._add_arm,
            "remove arm": self._remove_arm,
            "rollback": self._go_back_to,
        }

    def knows(self, kind: str) -> bool:
        """Whether there are such events."""
        return kind in self._kinds

    def apply(self, event: Event) -> None:
        """Change by an event. It must have been checked: this does not refuse."""
        if event.kind != "decide":
            self._supposed = None
        self._kinds[event.kind](event.fields, event.arrays)

    def settle(self, *, if_more_than: int = 0) -> None:
        """Absorb what was observed into the belief."""
        if self._unabsorbed <= if_more_than:
            return
        contexts, rewards = jax.tree.map(lambda *leaves: np.concatenate(leaves), *self._waiting)
        self._waiting.clear()
        self._unabsorbed = 0
        self.belief, refused = self.programs.absorb(self.belief, contexts, rewards)
        self.counts["refused"] += refused
        self.version += len(rewards)

    def seen(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards as the policy sees them."""
        return self.moments.scaled(rewards) if self.normalize else rewards.astype(np.float32)

    def supposed(self) -> Belief:
        """The belief if every decision that waits had brought what was expected of it.

        Made of what waits, in order, and of nothing else: after a restart it is the same to the last bit.
        """
        before, numbers = self._supposed, self._unsupposed
        if before is None:
            before, numbers = self.belief, list(self.ledger.pending)
        if numbers:
            contexts, expected = self.whole(self.ledger.contexts(numbers)), self.ledger.expected(numbers)
            before, _ = self.programs.absorb(before, contexts, self.seen(expected))
        self._supposed, self._unsupposed = before, []
        return before

    def whole(self, leaves: Any) -> Any:
        """Contexts from their leaves."""
        return jax.tree.unflatten(self.shape.structure, leaves)

    def context_of(self, arrays: dict[str, np.ndarray]) -> Any:
        """The contexts among an event's arrays."""
        return self.whole([arrays[f"c{leaf}"] for leaf in range(len(self.shape.leaves))])

    def context_arrays(self, contexts: Any) -> dict[str, np.ndarray]:
        """Contexts as arrays of an event."""
        return {f"c{leaf}": array for leaf, array in enumerate(jax.tree.leaves(contexts))}

    def abandon(self) -> None:
        """A lesson came to nothing: it is due again."""
        if self.base is not None:
            self.learned_at, self.base = self.base.learned_at, None

    def _decide(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arms = None if fields["arms"] is None else tuple(fields["arms"])
        rows, context = arrays["rows"], tuple(arrays[f"c{leaf}"] for leaf in range(len(self.shape.leaves)))
        self.ledger.add(Asked(fields["first"], fields["version"], fields["time"], arms, rows, context))
        if self._supposed is not None:
            self._unsupposed += range(fields["first"], fields["first"] + len(rows))
        self.counts["decisions"] += len(rows)
        self.counts["explored"] += int(np.count_nonzero(column(rows, "chosen") != column(rows, "greedy")))
        self.smallest_variance = min(self.smallest_variance, float(column(rows, "width").min()) ** 2)

    def _reward(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers, rewards = arrays["numbers"].tolist(), arrays["rewards"]
        contexts = self.whole(self.ledger.contexts(numbers))
        self.ledger.resolve(numbers, rewards.tolist())
        self._observe(contexts, rewards)

    def _observe(self, contexts: Any, rewards: np.ndarray) -> None:
        if self.normalize:
            self.moments = self.moments.with_more(rewards)
        self.observations.add(contexts, rewards, keep_from=None if self.base is None else self.base.total)
        self.counts["observed"] += len(rewards)
        self._waiting.append((contexts, self.seen(rewards)))
        self._unabsorbed += len(rewards)

    def _expire(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers = arrays["numbers"].tolist()
        self.ledger.resolve(numbers, None)
        self.counts["expired"] += len(numbers)

    def _add_arm(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.arms = self.arms.with_arm(fields["arm"], arrays["features"])

    def _remove_arm(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.arms = self.arms.without(fields["arm"])

    def _name(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.names = fields["names"]

    def _start(self) -> None:
        self.abandon()
        self.settle()
        contexts, rewards = self.observations.kept()
        self.base = Base(self.belief, self.observations.total, contexts, self.seen(rewards), self.learned_at)
        self.learned_at = self.observations.total

    def _learn(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Put the trained belief in place of the one it began with, and absorb again what came meanwhile."""
        self.settle()
        base, self.base = self.base, None
        assert base is not None
        if not fields["promoted"]:
            self.counts["diverged"] += 1
            return
        self.counts["learned"] += 1
        self.loss = fields["loss"]
        contexts, rewards = self.observations.since(base.total)
        trained = with_leaves(base.belief, arrays)
        self.belief, refused = self.programs.absorb(trained, contexts, self.seen(rewards))
        self.counts["refused"] += refused
        self.version += 1

    def _go_back_to(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Believe and remember what `export` gave then; decisions and arms stay those of now."""
        self.settle()
        now = self.ledger, self.arms, self.version + 1, {name: self.counts[name] for name in OF_DECISIONS}
        self.base = None
        self.restore(fields, arrays)
        self.ledger, self.arms, self.version, counts = now
        self.counts |= counts

    def export(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it, as plain values and arrays."""
        self.settle()
        pending, pending_arrays = self.ledger.export()
        places, features, taken = self.arms.export()
        contexts, rewards = self.observations.kept()
        fields = {
            "pending": pending,
            "places": places,
            "taken": taken,
            "total": self.observations.total,
            "moments": list(self.moments),
            "counts": dict(self.counts),
            "names": self.names,
            "version": self.version,
            "learned_at": self.learned_at,
            "loss": self.loss if math.isfinite(self.loss) else None,  # JSON knows no NaN
            "smallest_variance": self.smallest_variance if math.isfinite(self.smallest_variance) else None,
        }
        arrays = {f"pending.{name}": array for name, array in pending_arrays.items()}
        arrays |= leaves_of(self.belief, "belief")
        arrays |= {f"history.{name}": array for name, array in self.context_arrays(contexts).items()}
        return fields, arrays | {"history.rewards": rewards, "features": features}

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """What `export` gave. Raises KeyError or ValueError, and changes nothing, where it does not fit the policy."""
        belief = with_leaves(self.fresh, _named(arrays, "belief"), strict=True)
        observations = Observations(self.shape, self.observations.window)
        observations.restore(self.context_of(_named(arrays, "history")), arrays["history.rewards"], fields["total"])
        arms = self.arms.restored([tuple(each) for each in fields["places"]], arrays["features"], fields["taken"])
        ledger = Ledger.restored(fields["pending"], _named(arrays, "pending"), len(self.shape.leaves))
        moments, counts = Moments(*fields["moments"]), {name: int(fields["counts"][name]) for name in COUNTED}
        version, learned_at = int(fields["version"]), int(fields["learned_at"])
        self._supposed = None
        self.belief, self.observations, self.arms, self.ledger = belief, observations, arms, ledger
        self.moments, self.counts, self.version, self.learned_at = moments, counts, version, learned_at
        self.names = fields["names"]
        self.loss = math.nan if fields["loss"] is None else float(fields["loss"])
        smallest = fields["smallest_variance"]
        self.smallest_variance = math.inf if smallest is None else float(smallest)


def _named(arrays: dict[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """The arrays of a group, by their names in it."""
    return {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith(f"{group}.")}


ROUNDING = 1e-14
"""Deviations that are this small beside the mean are no deviations, but errors of float64."""


class Moments(NamedTuple):
    """How many, their mean and sum of squared deviations so far (Chan, Golub & LeVeque 1983)."""

    rewards: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_more(self, rewards: np.ndarray) -> "Moments":
        """After more rewards."""
        new = rewards
        count = self.rewards + len(new)
        gap = new.mean() - self.mean
        squares = self.squares + ((new - new.mean()) ** 2).sum() + gap**2 * self.rewards * len(new) / count
        return Moments(count, float(self.mean + gap * len(new) / count), float(squares))

    @property
    def deviation(self) -> float:
        """1 while all rewards are equal, up to rounding: there is no scale yet."""
        spread = (self.squares / self.rewards) ** 0.5 if self.rewards else 0.0
        return spread if spread > ROUNDING * abs(self.mean) else 1.0

    def scaled(self, rewards: np.ndarray) -> np.ndarray:
        """As the network sees them."""
        return ((rewards - self.mean) / self.deviation).astype(np.float32)
