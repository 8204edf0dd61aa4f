"""The compiled parts of an `OnlineBandit`: choosing, absorbing and learning, for few shapes that cover all sizes."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.exploring import deterministic, floor
from neuralucb.history import History
from neuralucb.online.decisions import BY_ARM, Columns
from neuralucb.policy import Belief, Info, Policy

__all__ = ["ROWS", "Programs", "each_leaf", "of_arms", "pad_arms", "room_for"]

ROWS = 64
"""Observations absorbed by one call. One program for one and for many: the same numbers, live and replayed."""

BATCH = 128
"""Decisions of `choose_many` in one call: their intermediate arrays stay in a core's cache."""

LEAST_HISTORY = 256


class _Keys(NamedTuple):
    """One key for each use."""

    init: jax.Array
    select: jax.Array
    learn: jax.Array


class Programs:
    """A policy's verbs, compiled; sizes are padded to powers of two, so that few are."""

    def __init__(self, policy: Policy, seed: int, share: float) -> None:
        with jax.enable_x64(True):
            self._keys = _Keys(*random.split(random.key(seed), 3))
        self._init = policy.init
        self._compiled = _compile(Policy(*policy[:4]), share)

    def init(self) -> Belief:
        """What is believed before anything was seen."""
        with jax.enable_x64(True):
            return jax.block_until_ready(self._init(self._keys.init))

    def choose(self, number: int, belief: Belief, contexts: Any, available: np.ndarray) -> Columns:
        """One choice among K arms, padded to a power of two, as one row."""
        arms = len(available)
        contexts, available = _padded((contexts, available), _power_of_two(arms))
        made = self._call("choose", self._keys.select, np.uint32(number % 2**32), belief, contexts, available)
        return of_arms(Columns._make(map(np.asarray, made)), arms)

    def choose_many(self, first: int, belief: Belief, contexts: Any, available: np.ndarray) -> Columns:
        """Choices for B sets of contexts [B, K, …], none of which knows of the others."""
        pieces = [
            _first(self._call("choose_many", self._keys.select, numbers, belief, *padded), count)
            for numbers, padded, count in _pieces(first, (contexts, available))
        ]
        return _joined(pieces)

    def choose_in_turn(
        self, first: int, belief: Belief, contexts: Any, available: np.ndarray
    ) -> tuple[Belief, Columns]:
        """The same, each after the ones before are supposed to have brought what was expected of them."""
        pieces = []
        for numbers, padded, count in _pieces(first, (contexts, available)):
            real = np.arange(len(numbers)) < count
            belief, made = self._call("choose_in_turn", self._keys.select, numbers, belief, *padded, real)
            pieces.append(_first(made, count))
        return belief, _joined(pieces)

    def absorb(self, belief: Belief, contexts: Any, rewards: np.ndarray) -> tuple[Belief, int]:
        """The belief after n observations, and how many of them were refused: they made it not finite."""
        refused = 0
        for first in range(0, len(rewards), ROWS):
            block = jax.tree.map(lambda leaf, first=first: leaf[first : first + ROWS], (contexts, rewards))
            count = len(block[1])
            after, finite = self._call("absorb", belief, *_padded(block, ROWS), np.int32(count))
            if finite:
                belief = after
            elif count == 1:
                refused += 1
            else:  # one by one, so that only those are refused which do harm
                for row in range(count):
                    one = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], block)
                    belief, more = self.absorb(belief, *one)
                    refused += more
        return belief, refused

    def learn(self, number: int, belief: Belief, history: History) -> tuple[Belief, Info, bool]:
        """The trained belief, how it went, and whether all of it is finite."""
        after, info, finite = self._call("learn", self._keys.learn, np.uint32(number), belief, history)
        return jax.block_until_ready(after), jax.device_get(info), bool(finite)

    def warm_up(self, belief: Belief, contexts: Any, *, in_turn: bool) -> None:
        """Compile what decisions over contexts [B, K, …] like these need, and absorbing."""
        mask = np.ones(jax.tree.leaves(contexts)[0].shape[:2], bool)
        self.choose(0, belief, jax.tree.map(lambda leaf: leaf[0], contexts), mask[0])
        if in_turn:
            self.choose_in_turn(0, belief, contexts, mask)
        elif len(mask) > 1:
            self.choose_many(0, belief, contexts, mask)
        self.absorb(belief, jax.tree.map(lambda leaf: leaf[:1, 0], contexts), np.zeros(1, np.float32))

    @property
    def compilations(self) -> int:
        """How many programs have been compiled so far."""
        return sum(program._cache_size() for program in self._compiled.values())

    def _call(self, name: str, *args: Any) -> Any:
        with jax.enable_x64(True):
            return self._compiled[name](*args)


@lru_cache(maxsize=16)
def _compile(bare: Policy, share: float) -> dict[str, Any]:
    """The programs of a policy; a second bandit with the same one compiles nothing."""
    policy = floor(bare, share) if share else bare

    def choose(key: Any, number: Any, belief: Belief, contexts: Any, available: Any) -> Columns:
        choice = policy.select(random.fold_in(key, number), belief, contexts, available)
        mean = jnp.where(available, choice.mean, -jnp.inf)
        best = jnp.argmax(mean).astype(choice.arm.dtype)
        greedy = jnp.where(mean[choice.arm] == mean[best], choice.arm, best)  # a tie is no exploration
        chance = choice.propensity[choice.arm].astype(jnp.float64)
        chance = jnp.where(deterministic(chance, available.sum()), jnp.nan, chance)
        return Columns._make((
            choice.arm, greedy, choice.mean, choice.width, choice.score, choice.exploration, chance, choice.propensity
        ))  # fmt: skip

    def choose_one(*asked: Any) -> Columns:
        return jax.tree.map(lambda leaf: leaf[None], choose(*asked))

    def choose_in_turn(
        key: Any, numbers: Any, belief: Belief, contexts: Any, available: Any, real: Any
    ) -> tuple[Belief, Columns]:
        def one(belief: Belief, asked: Any) -> tuple[Belief, Columns]:
            number, contexts, available, real = asked
            made = choose(key, number, belief, contexts, available)
            context = jax.tree.map(lambda leaf: leaf[made.chosen], contexts)
            supposed = policy.observe(belief, context, made.mean[made.chosen].astype(jnp.float32))
            return jax.tree.map(lambda new, old: jnp.where(real, new, old), supposed, belief), made

        return lax.scan(one, belief, (numbers, contexts, available, real))

    def absorb(belief: Belief, contexts: Any, rewards: Any, count: Any) -> tuple[Belief, Any]:
        def one(row: Any, belief: Belief) -> Belief:
            return policy.observe(belief, jax.tree.map(lambda leaf: leaf[row], contexts), rewards[row])

        after = lax.fori_loop(jnp.int32(0), count, one, belief)
        return after, _is_finite(after)

    def learn(key: Any, number: Any, belief: Belief, history: History) -> tuple[Belief, Info, Any]:
        after, info = policy.learn(random.fold_in(key, number), belief, history)
        return after, info, _is_finite(after)

    return {
        "choose": jax.jit(choose_one),
        "choose_many": jax.jit(jax.vmap(choose, (None, 0, None, 0, 0))),
        "choose_in_turn": jax.jit(choose_in_turn),
        "absorb": jax.jit(absorb),
        "learn": jax.jit(learn),
    }


def room_for(rows: int) -> int:
    """The capacity of a history that holds so many rows: a power of two."""
    return max(LEAST_HISTORY, _power_of_two(rows))


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()


def _pieces(first: int, tree: Any) -> Any:
    """(numbers, piece padded to a power of two, its true length) for pieces of at most BATCH."""
    count = len(jax.tree.leaves(tree)[0])
    for start in range(0, count, BATCH):
        piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + BATCH], tree)
        length = min(BATCH, count - start)
        size = _power_of_two(length)
        numbers = np.arange(first + start, first + start + size, dtype=np.uint64).astype(np.uint32)  # may wrap
        contexts, available = _padded(piece, size)
        available[length:] = True
        yield numbers, (contexts, available), length


def pad_arms(contexts: Any, available: np.ndarray) -> tuple[Any, np.ndarray]:
    """Sets of contexts [B, K, …] with K padded to a power of two, by arms that are not available."""
    arms = available.shape[1]
    room = _power_of_two(arms) - arms
    if not room:
        return contexts, available

    def pad(leaf: np.ndarray) -> np.ndarray:
        return np.pad(leaf, [(0, 0), (0, room), *[(0, 0)] * (leaf.ndim - 2)])

    return jax.tree.map(pad, contexts), pad(available)


def of_arms(columns: Columns, arms: int) -> Columns:
    """Without the arms that padding added."""
    return columns._replace(**{name: getattr(columns, name)[:, :arms] for name in BY_ARM})


def _first(columns: Columns, count: int) -> Columns:
    """On the host, without the decisions that padding added."""
    return Columns._make(np.asarray(column)[:count] for column in columns)


def _joined(pieces: list[Columns]) -> Columns:
    if len(pieces) == 1:
        return pieces[0]
    return Columns._make(np.concatenate(columns) for columns in zip(*pieces, strict=True))


def _padded(tree: Any, size: int) -> Any:
    def pad(leaf: np.ndarray) -> np.ndarray:
        if len(leaf) == size:
            return leaf.copy() if leaf.dtype == bool else leaf
        wide = np.zeros((size, *leaf.shape[1:]), leaf.dtype)
        wide[: len(leaf)] = leaf
        return wide

    return tuple(each_leaf(pad, part) for part in tree)


def each_leaf(function: Callable[[np.ndarray], np.ndarray], tree: Any) -> Any:
    """The function of every leaf; quickly where the tree is one array, as it mostly is."""
    return function(tree) if isinstance(tree, np.ndarray) else jax.tree.map(function, tree)


def _is_finite(belief: Belief) -> Any:
    floats = [leaf for leaf in jax.tree.leaves(belief) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in floats])) if floats else jnp.bool_(True)
