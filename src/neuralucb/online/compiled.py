"""The compiled parts of an `OnlineBandit`: choosing, absorbing and learning, for few shapes that cover all sizes."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.history import History
from neuralucb.online.ledger import BY_ARM, SINGLE
from neuralucb.policy import Belief, Choice, Info, Policy
from neuralucb.rules import deterministic, floor

__all__ = ["ROWS", "Programs", "each_leaf", "power_of_two", "room_for"]

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

    def choose(self, number: int, belief: Belief, contexts: Any, available: np.ndarray) -> np.ndarray:
        """One choice among K arms, padded to a power of two, as one row [1, 4K + 4]."""
        arms = len(available)
        contexts, available = _padded((contexts, available), power_of_two(arms))
        made = self._call("choose", self._keys.select, np.uint32(number % 2**32), belief, contexts, available)
        return _of_arms(np.asarray(made)[None], arms)

    def choose_many(self, first: int, belief: Belief, contexts: Any, available: np.ndarray, *, room: int) -> np.ndarray:
        """Choices [B, 4K + 4] for B sets of contexts [B, K, …], none of which knows of the others.

        room  how many arms the program is for: K, or more where arms come and go
        """
        pieces = [
            np.asarray(self._call("choose_many", self._keys.select, numbers, belief, *padded))[:count]
            for numbers, padded, count in _pieces(first, _with_room(contexts, available, room))
        ]
        return _of_arms(np.concatenate(pieces), available.shape[1])

    def choose_in_turn(
        self, first: int, belief: Belief, contexts: Any, available: np.ndarray, *, room: int
    ) -> np.ndarray:
        """The same, each after the ones before are supposed to have brought what was expected of them."""
        pieces = []
        for numbers, padded, count in _pieces(first, _with_room(contexts, available, room)):
            real = np.arange(len(numbers)) < count
            belief, made = self._call("choose_in_turn", self._keys.select, numbers, belief, *padded, real)
            pieces.append(np.asarray(made)[:count])
        return _of_arms(np.concatenate(pieces), available.shape[1])

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
        """Compile what decisions over contexts [B, K, …] like these need, arms by id too, and absorbing."""
        available = np.ones(jax.tree.leaves(contexts)[0].shape[:2], bool)
        count, arms = available.shape
        one = jax.tree.map(lambda leaf: leaf[:1], contexts)
        if in_turn:
            self.choose_in_turn(0, belief, one, available[:1], room=power_of_two(arms))
        else:
            self.choose(0, belief, jax.tree.map(lambda leaf: leaf[0], one), available[0])
        for room in {arms, power_of_two(arms)} if count > 1 else ():
            choose = self.choose_in_turn if in_turn else self.choose_many
            choose(0, belief, contexts, available, room=room)
        self.absorb(belief, jax.tree.map(lambda leaf: leaf[:, 0], one), np.zeros(1, np.float32))

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

    def choose(key: Any, number: Any, belief: Belief, contexts: Any, available: Any) -> tuple[Choice, Any]:
        choice = policy.select(random.fold_in(key, number), belief, contexts, available)
        mean = jnp.where(available, choice.mean, -jnp.inf)
        best = jnp.argmax(mean).astype(choice.arm.dtype)
        greedy = jnp.where(mean[choice.arm] == mean[best], choice.arm, best)  # a tie is no exploration
        chance = choice.propensity[choice.arm]
        chance = jnp.where(deterministic(chance, available.sum()), jnp.nan, chance)
        # one array: to hand over one for each column would cost more than to compute them
        columns = dict(zip(BY_ARM, (choice.mean, choice.width, choice.score, choice.propensity), strict=True))
        columns |= dict(zip(SINGLE, (choice.arm, greedy, choice.exploration, chance), strict=True))
        kind = choice.mean.dtype if choice.mean.dtype == jnp.float64 else jnp.float32
        return choice, jnp.concatenate([column.reshape(-1).astype(kind) for column in columns.values()])

    def choose_one(*asked: Any) -> Any:
        return choose(*asked)[1]

    def choose_in_turn(
        key: Any, numbers: Any, belief: Belief, contexts: Any, available: Any, real: Any
    ) -> tuple[Belief, Any]:
        def one(belief: Belief, asked: Any) -> tuple[Belief, Any]:
            number, contexts, available, real = asked
            choice, row = choose(key, number, belief, contexts, available)
            context = jax.tree.map(lambda leaf: leaf[choice.arm], contexts)
            supposed = policy.observe(belief, context, choice.mean[choice.arm].astype(jnp.float32))
            return jax.tree.map(lambda new, old: jnp.where(real, new, old), supposed, belief), row

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
        "choose_many": jax.jit(jax.vmap(choose_one, (None, 0, None, 0, 0))),
        "choose_in_turn": jax.jit(choose_in_turn),
        "absorb": jax.jit(absorb),
        "learn": jax.jit(learn),
    }


def room_for(rows: int) -> int:
    """The capacity of a history that holds so many rows: a power of two."""
    return max(LEAST_HISTORY, power_of_two(rows))


def power_of_two(count: int) -> int:
    """The least that is not below the count."""
    return 1 << max(0, count - 1).bit_length()


def _pieces(first: int, tree: Any) -> Any:
    """(numbers, piece padded to a power of two, its true length) for pieces of at most BATCH."""
    count = len(jax.tree.leaves(tree)[0])
    for start in range(0, count, BATCH):
        piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + BATCH], tree)
        length = min(BATCH, count - start)
        size = power_of_two(length)
        numbers = np.arange(first + start, first + start + size, dtype=np.uint64).astype(np.uint32)  # may wrap
        contexts, available = _padded(piece, size)
        available[length:] = True
        yield numbers, (contexts, available), length


def _with_room(contexts: Any, available: np.ndarray, room: int) -> tuple[Any, np.ndarray]:
    """Sets of contexts [B, K, …] with K padded by arms that are not available."""
    more = room - available.shape[1]
    if not more:
        return contexts, available

    def pad(leaf: np.ndarray) -> np.ndarray:
        return np.pad(leaf, [(0, 0), (0, more), *[(0, 0)] * (leaf.ndim - 2)])

    return jax.tree.map(pad, contexts), pad(available)


def _of_arms(rows: np.ndarray, arms: int) -> np.ndarray:
    """Choices without the arms that padding added, as a copy: a small array of JAX's keeps kilobytes alive."""
    return rows.take(_without_padding(arms, rows.shape[1]), axis=1)


@lru_cache(maxsize=64)
def _without_padding(arms: int, length: int) -> np.ndarray:
    """Which numbers of a choice are of the first so many arms, or of none."""
    by_arm = np.arange(length - len(SINGLE)).reshape(len(BY_ARM), -1)[:, :arms]
    return np.concatenate([by_arm.ravel(), np.arange(length - len(SINGLE), length)])


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
