"""All that an `OnlineBandit` knows, changed by events alone: the same ones live and from a journal."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import Arms
from neuralucb.online.contexts import Shape
from neuralucb.online.decisions import Asked, Ledger
from neuralucb.online.observations import Observations
from neuralucb.online.programs import Programs
from neuralucb.online.rewards import Moments
from neuralucb.policy import Belief

__all__ = ["Base", "Event", "State", "changed_leaves"]

COUNTED = ("decisions", "observed", "expired", "learned", "diverged", "refused", "explored")


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


class State:
    """Belief, observations, decisions that wait, arms, counts. `apply` is the only way to change it."""

    def __init__(
        self, programs: Programs, shape: Shape, *, window: int | None, normalize: bool, places: int | None
    ) -> None:
        self.programs, self.shape, self.normalize, self.places = programs, shape, normalize, places
        self.fresh = programs.init()
        self.belief = self.fresh
        self.version = 0
        self.ledger = Ledger()
        self.observations = Observations(shape, window)
        self.arms = Arms(shape, places)
        self.moments = Moments()
        self.counts = dict.fromkeys(COUNTED, 0)
        self.learned_at = 0
        self.loss = float("nan")
        self.smallest_variance = float("inf")
        self.base: Base | None = None
        self._supposed: Belief | None = None
        self._waiting: list[tuple[Any, np.ndarray]] = []
        """observed, but not yet in the belief: replaying absorbs many at once"""
        self._kinds: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], None]] = {
            "decide": self._decide,
            "reward": self._reward,
            "expire": self._expire,
            "fit": lambda fields, arrays: self._observe(self.context_of(arrays), arrays["rewards"]),
            "start": lambda fields, arrays: self._start(),
            "learn": self._learn,
            "add arm": lambda fields, arrays: self.arms.add(fields["arm"], arrays["features"]),
            "remove arm": lambda fields, arrays: self.arms.remove(fields["arm"]),
        }

    def apply(self, event: Event) -> None:
        """Change by an event. It must have been checked: this does not refuse."""
        self._supposed = None
        self._kinds[event.kind](event.fields, event.arrays)

    def settle(self, *, if_more_than: int = 0) -> None:
        """Absorb what was observed into the belief."""
        if sum(len(rewards) for _, rewards in self._waiting) <= if_more_than:
            return
        contexts, rewards = jax.tree.map(lambda *leaves: np.concatenate(leaves), *self._waiting)
        self._waiting.clear()
        self.belief, refused = self.programs.absorb(self.belief, contexts, rewards)
        self.counts["refused"] += refused
        self.version += len(rewards)

    def seen(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards as the policy sees them."""
        return self.moments.scaled(rewards) if self.normalize else rewards

    def supposed(self) -> Belief:
        """The belief if every decision that waits had brought what was expected of it."""
        if self._supposed is not None:
            return self._supposed
        if not self.ledger.pending:
            return self.belief
        places = self.ledger.pending.values()
        expected = np.asarray([asked.mean[row, asked.chosen[row]] for asked, row in places], np.float32)
        return self.programs.absorb(self.belief, self.ledger.contexts(self.ledger.pending), self.seen(expected))[0]

    def suppose(self, belief: Belief) -> None:
        """Keep what `supposed` will give until something is observed, learned or expires."""
        self._supposed = belief

    def context_of(self, arrays: dict[str, np.ndarray]) -> Any:
        """The contexts among an event's arrays."""
        return jax.tree.unflatten(self.shape.structure, [arrays[f"c{leaf}"] for leaf in range(len(self.shape.leaves))])

    def context_arrays(self, contexts: Any) -> dict[str, np.ndarray]:
        """Contexts as arrays of an event."""
        return {f"c{leaf}": array for leaf, array in enumerate(jax.tree.leaves(contexts))}

    def _decide(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arms = fields["arms"]
        columns = (arrays[name] for name in ("chosen", "greedy", "mean", "width", "score", "exploration"))
        self.ledger.add(Asked._make((
            fields["first"], fields["version"], fields["time"], None if arms is None else tuple(arms), *columns,
            self.context_of(arrays),
        )))  # fmt: skip
        self.counts["decisions"] += len(arrays["chosen"])
        self.counts["explored"] += int((arrays["chosen"] != arrays["greedy"]).sum())
        self.smallest_variance = min(self.smallest_variance, float(arrays["width"].min()) ** 2)

    def _reward(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers, rewards = arrays["numbers"].tolist(), arrays["rewards"]
        contexts = self.ledger.contexts(numbers)
        self.ledger.resolve(numbers, rewards.tolist())
        self._observe(contexts, rewards)

    def _observe(self, contexts: Any, rewards: np.ndarray) -> None:
        if self.normalize:
            self.moments = self.moments.with_more(rewards)
        self.observations.add(contexts, rewards, keep_from=None if self.base is None else self.base.total)
        self.counts["observed"] += len(rewards)
        self._waiting.append((contexts, self.seen(rewards)))

    def _expire(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers = arrays["numbers"].tolist()
        self.ledger.resolve(numbers, None)
        self.counts["expired"] += len(numbers)

    def _start(self) -> None:
        self.settle()
        contexts, rewards = self.observations.kept()
        self.base = Base(self.belief, self.observations.total, contexts, self.seen(rewards))
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
            "version": self.version,
            "learned_at": self.learned_at,
            "loss": self.loss,
            "smallest_variance": self.smallest_variance,
        }
        arrays = {f"pending.{name}": array for name, array in pending_arrays.items()}
        arrays |= {f"belief.{index}": plain(leaf) for index, leaf in enumerate(jax.tree.leaves(self.belief))}
        if self._supposed is not None:
            arrays |= {f"supposed.{index}": plain(leaf) for index, leaf in enumerate(jax.tree.leaves(self._supposed))}
        arrays |= {f"history.{name}": array for name, array in self.context_arrays(contexts).items()}
        return fields, arrays | {"history.rewards": rewards, "features": features}

    def go_back_to(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Believe and remember what `export` gave then; decisions, arms and counts of decisions stay those of now."""
        ledger, arms, version = self.ledger, self.arms.export(), self.version
        counts = {name: self.counts[name] for name in ("decisions", "expired", "explored")}
        self.ledger = Ledger()
        self.restore(fields, arrays)
        self.ledger, self.version, self._supposed = ledger, version + 1, None
        self.arms.restore(*arms)
        self.counts |= counts

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """What `export` gave. Raises KeyError or ValueError where that does not fit this state's policy."""
        before = [plain(leaf) for leaf in jax.tree.leaves(self.fresh)]
        for index, leaf in enumerate(before):
            stored = arrays[f"belief.{index}"]
            if stored.shape != leaf.shape or stored.dtype != leaf.dtype:
                raise ValueError(
                    f"array {index} of the belief is {stored.dtype} {stored.shape}, the policy's is "
                    f"{leaf.dtype} {leaf.shape}"
                )
        if f"belief.{len(before)}" in arrays:
            raise ValueError("the belief has more arrays than the policy's")
        self.belief = with_leaves(self.fresh, {str(index): arrays[f"belief.{index}"] for index in range(len(before))})
        if "supposed.0" in arrays:
            supposed = {str(index): arrays[f"supposed.{index}"] for index in range(len(before))}
            self._supposed = with_leaves(self.fresh, supposed)
        history = {name.removeprefix("history."): array for name, array in arrays.items()}
        self.observations.restore(self.context_of(history), arrays["history.rewards"], fields["total"])
        self.arms.restore([(arm, place) for arm, place in fields["places"]], arrays["features"], fields["taken"])
        waiting = {name.removeprefix("pending."): array for name, array in arrays.items() if "pending." in name}
        self.ledger.restore(fields["pending"], waiting, self.shape.structure)
        self.moments = Moments(*fields["moments"])
        self.counts = dict(fields["counts"])
        self.version, self.learned_at, self.loss = fields["version"], fields["learned_at"], fields["loss"]
        self.smallest_variance = fields["smallest_variance"]


def changed_leaves(before: Belief, after: Belief) -> dict[str, np.ndarray]:
    """The arrays of a belief that differ, by number."""
    leaves = zip(map(plain, jax.tree.leaves(before)), map(plain, jax.tree.leaves(after)), strict=True)
    return {str(index): new for index, (old, new) in enumerate(leaves) if not np.array_equal(old, new)}


def with_leaves(belief: Belief, arrays: dict[str, np.ndarray]) -> Belief:
    """The belief with some of its arrays, by number, replaced."""
    leaves, structure = jax.tree.flatten(belief)
    with jax.enable_x64(True):
        for index, array in arrays.items():
            old = leaves[int(index)]
            is_key = jax.numpy.issubdtype(old.dtype, jax.dtypes.prng_key)
            new = jax.numpy.array(array)
            leaves[int(index)] = jax.random.wrap_key_data(new) if is_key else new
    return jax.tree.unflatten(structure, leaves)


def plain(leaf: Any) -> np.ndarray:
    """A leaf of a belief as numbers; a key as its bits."""
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)
