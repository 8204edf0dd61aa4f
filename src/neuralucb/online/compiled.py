"""A policy's compiled programs: choosing, absorbing and learning, padded so that a few shapes cover all sizes."""

from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.history import History
from neuralucb.online.ledger import PER_ARM, PER_CHOICE, column
from neuralucb.policy import Belief, Info, Noted, Policy, remember
from neuralucb.rules import deterministic, floor
from neuralucb.runtime.keys import quick
from neuralucb.runtime.memory import require_memory

__all__ = ["ROWS", "Choices", "Programs", "history_capacities", "history_capacity", "power_of_two"]

ROWS = 64
"""Observations absorbed per call. One program serves one row and many: the same numbers live and replayed."""

BATCH = 128
"""Decisions per call of a program, unless set otherwise: their intermediate arrays stay in a core's cache."""

SMALLEST_HISTORY = 256

BELIEFS = 3
"""That there are at once: the initial one, the one in use, and the one that an update or a lesson makes."""


class _Keys(NamedTuple):
    """One key per use."""

    init: jax.Array
    select: jax.Array
    learn: jax.Array


class Choices(NamedTuple):
    """B choices among K arms."""

    rows: np.ndarray
    """[B, 4K + 4], read by `ledger.column`"""
    contexts: Any
    """[B, …] of the arms chosen"""


class _Compiled(NamedTuple):
    """Compiled programs by name, and the name of each at every compilation."""

    programs: dict[str, Any]
    compilations: list[str]


class Programs:
    """A policy's verbs, compiled; sizes are padded to powers of two, so that there are few programs."""

    def __init__(self, policy: Policy, seed: int, floor_share: float, *, batch: int = BATCH) -> None:
        self.batch: int = batch
        """decisions per call of a program of `choose_many`"""
        with jax.enable_x64(True):
            self._keys = _Keys(*random.split(quick(random.key(seed)), 3))
        self.policy: Policy = policy
        self._seed = seed
        self._floor = floor_share
        self.reviews: bool = policy.review is not None
        """whether the policy can compute anew what observing accumulates"""
        self.note_size: int = 0 if policy.note is None else policy.note.size
        """numbers that the policy notes of a decision"""
        self._policy = Policy(*policy[:4], review=policy.review, note=policy.note)
        self._compiled = _compile(self._policy, floor_share)

    def of(self, policy: Policy) -> "Programs":
        """The programs of another policy, with the same seed, floor and batch."""
        return Programs(policy, self._seed, self._floor, batch=self.batch)

    def set_floor(self, floor_share: float) -> None:
        """Choose uniformly with this probability from now on; what `Programs` of that floor compiled is used again."""
        self._floor = floor_share
        self._compiled = _compile(self._policy, floor_share)

    @property
    def floor_share(self) -> float:
        """The probability with which it is chosen uniformly."""
        return self._floor

    def init(self) -> Belief:
        """The belief before the first observation. Raises InputError if memory does not hold it."""
        with jax.enable_x64(True):
            if self.policy.origin is not None:  # one that the caller wrote need not be traceable
                made = jax.eval_shape(self.policy.init, self._keys.init)
                require_memory(
                    BELIEFS * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(made)),
                    what=f"{self.policy.origin.algorithm}, with these settings,",
                    cure="take a smaller network, fewer inputs, or design='diagonal' if the algorithm has it",
                )
            return jax.block_until_ready(self.policy.init(self._keys.init))

    def choose(self, number: int, belief: Belief, contexts: Any, available: np.ndarray) -> Choices:
        """One choice, for contexts [K, …] padded to a power of two."""
        arms = len(available)
        padded, available = _padded((contexts, available), power_of_two(arms))
        row = self._call("choose", self._keys.select, np.uint32(number % 2**32), belief, padded, available)
        rows, notes = self._split(np.asarray(row)[None], arms)
        arm = int(column(rows, "chosen")[0])
        # copied, for the caller's may change
        return Choices(rows, _noted(_map_leaves(lambda leaf: leaf[arm : arm + 1].copy(), contexts), notes))

    def choose_many(
        self, first: int, belief: Belief, contexts: Any, available: np.ndarray, *, capacity: int
    ) -> Choices:
        """Choices for B sets of contexts [B, K, …], independent of each other.

        capacity  the number of arms to compile for: K, or more where arms are added and removed
        """
        return self.begin_many(first, belief, contexts, available, capacity=capacity)()

    def begin_many(
        self, first: int, belief: Belief, contexts: Any, available: np.ndarray, *, capacity: int
    ) -> Callable[[], Choices]:
        """`choose_many`, whose choices can be asked for later: JAX computes them in threads of its own meanwhile."""
        begun = [
            (self._call("choose_many", self._keys.select, numbers, belief, *padded), count)
            for numbers, padded, count in _batches(first, _pad_arms(contexts, available, capacity), self.batch)
        ]

        def end() -> Choices:
            rows = [np.asarray(made)[:count] for made, count in begun]
            return _choices(contexts, *self._split(np.concatenate(rows), available.shape[1]))

        return end

    def choose_sequentially(
        self, first: int, belief: Belief, contexts: Any, available: np.ndarray, *, capacity: int
    ) -> Choices:
        """The same, but each choice assumes that those before it brought their expected reward."""
        rows = []
        for numbers, padded, count in _batches(first, _pad_arms(contexts, available, capacity), self.batch):
            real = np.arange(len(numbers)) < count
            belief, made = self._call("choose_sequentially", self._keys.select, numbers, belief, *padded, real)
            rows.append(np.asarray(made)[:count])
        return _choices(contexts, *self._split(np.concatenate(rows), available.shape[1]))

    def absorb(self, belief: Belief, contexts: Any, rewards: np.ndarray) -> tuple[Belief, int]:
        """The belief after n observations, and how many were refused because they made it infinite or NaN."""
        refused = 0
        for first in range(0, len(rewards), ROWS):
            block = jax.tree.map(lambda leaf, first=first: leaf[first : first + ROWS], (contexts, rewards))
            count = len(block[1])
            after, finite = self._call("absorb", belief, *_padded(block, ROWS), np.int32(count))
            if finite:
                belief = after
            elif count == 1:
                refused += 1
            else:  # one by one, so that only the harmful ones are refused
                for row in range(count):
                    one = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], block)
                    belief, more = self.absorb(belief, *one)
                    refused += more
        return belief, refused

    def learn(self, number: int, belief: Belief, history: History) -> tuple[Belief, Info, bool]:
        """The trained belief, how training went, and whether the belief is finite."""
        after, info, finite = self._call("learn", self._keys.learn, np.uint32(number), belief, history)
        return jax.block_until_ready(after), jax.device_get(info), bool(finite)

    def review(self, belief: Belief, history: History) -> tuple[Belief, bool]:
        """The belief with what observing accumulates computed anew from a history, and whether it is finite."""
        after, finite = self._call("review", belief, history)
        return jax.block_until_ready(after), bool(finite)

    def compile_lesson(self, belief: Belief, history: History, *, reviewed: bool) -> None:
        """Compile what a lesson over histories of this capacity needs; `reviewed` where there is a window."""
        self.learn(0, belief, history)
        if reviewed and self.reviews:
            self.review(belief, history)

    def warm_up(self, belief: Belief, contexts: Any, *, sequential: bool) -> None:
        """Compile the programs for decisions over contexts [B, K, …], with and without arm ids, and for absorbing."""
        available = np.ones(jax.tree.leaves(contexts)[0].shape[:2], bool)
        count, arms = available.shape
        one = jax.tree.map(lambda leaf: leaf[:1], contexts)
        if sequential:
            self.choose_sequentially(0, belief, one, available[:1], capacity=power_of_two(arms))
        else:
            self.choose(0, belief, jax.tree.map(lambda leaf: leaf[0], one), available[0])
        for capacity in {arms, power_of_two(arms)} if count > 1 else ():
            choose = self.choose_sequentially if sequential else self.choose_many
            choose(0, belief, contexts, available, capacity=capacity)
        notes = np.zeros((1, self.note_size), np.float32)
        self.absorb(belief, _noted(jax.tree.map(lambda leaf: leaf[:, 0], one), notes), np.zeros(1, np.float32))

    @property
    def compilations(self) -> int:
        """How many programs have been compiled so far, also for other bandits with the same policy."""
        return len(self._compiled.compilations)

    def _split(self, rows: np.ndarray, arms: int) -> tuple[np.ndarray, np.ndarray]:
        """Choices as programs return them: without the arms that padding added, and the notes behind them."""
        size = self.note_size
        return _strip_padding(rows[:, size:], arms), rows[:, :size].astype(np.float32)

    def _call(self, name: str, *args: Any) -> Any:
        with jax.enable_x64(True):
            return self._compiled.programs[name](*args)


def history_capacity(rows: int) -> int:
    """The capacity of a history that holds so many rows: a power of two."""
    return max(SMALLEST_HISTORY, power_of_two(rows))


def history_capacities(rows: int, most: int) -> list[int]:
    """The capacities that a history has while it grows from so many rows to so many."""
    capacities = [history_capacity(rows)]
    while capacities[-1] < most:
        capacities.append(2 * capacities[-1])
    return capacities


def power_of_two(count: int) -> int:
    """The smallest one that is not below the count."""
    return 1 << max(0, count - 1).bit_length()


@lru_cache(maxsize=16)
def _compile(bare: Policy, floor_share: float) -> _Compiled:
    """The programs of a policy; a second bandit with the same policy compiles nothing."""
    policy = floor(bare, floor_share) if floor_share else bare

    def choose(key: Any, number: Any, belief: Belief, contexts: Any, available: Any) -> tuple[Any, Any, Any]:
        choice = policy.select(random.fold_in(key, number), belief, contexts, available)
        mean = jnp.where(available, choice.mean, -jnp.inf)
        best = jnp.argmax(mean).astype(choice.arm.dtype)
        greedy = jnp.where(mean[choice.arm] == mean[best], choice.arm, best)  # a tie does not count as exploration
        propensity = choice.propensity[choice.arm]
        propensity = jnp.where(deterministic(propensity, available.sum()), jnp.nan, propensity)
        # one array: returning one per column would cost more than computing them
        columns = dict(zip(PER_ARM, (choice.mean, choice.width, choice.score, choice.propensity), strict=True))
        columns |= dict(zip(PER_CHOICE, (choice.arm, greedy, choice.exploration, propensity), strict=True))
        kind = choice.mean.dtype if choice.mean.dtype == jnp.float64 else jnp.float32
        kept = remember(policy, belief, contexts, available, choice)
        notes = [kept.note] if isinstance(kept, Noted) else []
        parts = [*notes, *columns.values()]
        return choice, kept, jnp.concatenate([part.reshape(-1).astype(kind) for part in parts])

    def choose_one(*args: Any) -> Any:
        return choose(*args)[2]

    def choose_sequentially(
        key: Any, numbers: Any, belief: Belief, contexts: Any, available: Any, real: Any
    ) -> tuple[Belief, Any]:
        def one(belief: Belief, request: Any) -> tuple[Belief, Any]:
            number, contexts, available, real = request
            choice, kept, row = choose(key, number, belief, contexts, available)
            after = policy.observe(belief, kept, choice.mean[choice.arm].astype(jnp.float32))
            use = real & _is_finite(after)  # one harmful request must not spoil those after it
            return jax.tree.map(lambda new, old: jnp.where(use, new, old), after, belief), row

        return lax.scan(one, belief, (numbers, contexts, available, real))

    def absorb(belief: Belief, contexts: Any, rewards: Any, count: Any) -> tuple[Belief, Any]:
        def one(row: Any, belief: Belief) -> Belief:
            return policy.observe(belief, jax.tree.map(lambda leaf: leaf[row], contexts), rewards[row])

        after = lax.fori_loop(jnp.int32(0), count, one, belief)
        return after, _is_finite(after)

    def learn(key: Any, number: Any, belief: Belief, history: History) -> tuple[Belief, Info, Any]:
        after, info = policy.learn(random.fold_in(key, number), belief, history)
        return after, info, _is_finite(after)

    def review(belief: Belief, history: History) -> tuple[Belief, Any]:
        assert policy.review is not None
        after = policy.review(belief, history)
        return after, _is_finite(after)

    functions = {
        "choose": choose_one,
        "choose_many": jax.vmap(choose_one, (None, 0, None, 0, 0)),
        "choose_sequentially": choose_sequentially,
        "absorb": absorb,
        "learn": learn,
        "review": review,
    }
    compilations: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def traced(*args: Any) -> Any:  # JAX runs this once per compilation
            compilations.append(name)
            return function(*args)

        return traced

    return _Compiled({name: jax.jit(counted(name, each)) for name, each in functions.items()}, compilations)


def _choices(contexts: Any, rows: np.ndarray, notes: np.ndarray) -> Choices:
    """Choices, with the contexts of the arms chosen from [B, K, …], and notes."""
    arms = column(rows, "chosen").astype(np.intp)
    return Choices(rows, _noted(jax.tree.map(lambda leaf: leaf[np.arange(len(arms)), arms], contexts), notes))


def _noted(contexts: Any, notes: np.ndarray) -> Any:
    """Contexts [B, …] with notes [B, n]; as they are for a policy that takes none."""
    return Noted._make((contexts, notes)) if notes.shape[1] else contexts


def _batches(first: int, tree: Any, most: int) -> Iterator[tuple[np.ndarray, Any, int]]:
    """Batches of at most so many: the decisions' numbers, the batch padded to a power of two, its true length."""
    count = len(jax.tree.leaves(tree)[0])
    for start in range(0, count, most):
        batch = jax.tree.map(lambda leaf, start=start: leaf[start : start + most], tree)
        length = min(most, count - start)
        size = power_of_two(length)
        numbers = np.arange(first + start, first + start + size, dtype=np.uint64).astype(np.uint32)  # may wrap
        contexts, available = _padded(batch, size)
        available[length:] = True
        yield numbers, (contexts, available), length


def _pad_arms(contexts: Any, available: np.ndarray, capacity: int) -> tuple[Any, np.ndarray]:
    """Sets of contexts [B, K, …], with K padded to the capacity by arms that are not available."""
    more = capacity - available.shape[1]
    if not more:
        return contexts, available

    def pad(leaf: np.ndarray) -> np.ndarray:
        return np.pad(leaf, [(0, 0), (0, more), *[(0, 0)] * (leaf.ndim - 2)])

    return jax.tree.map(pad, contexts), pad(available)


def _strip_padding(rows: np.ndarray, arms: int) -> np.ndarray:
    """Choices without the arms that padding added, as a copy: a small array of JAX keeps kilobytes alive."""
    return rows.take(_unpadded_columns(arms, rows.shape[1]), axis=1)


@lru_cache(maxsize=64)
def _unpadded_columns(arms: int, length: int) -> np.ndarray:
    """Which numbers of a choice belong to the first so many arms, or to the choice as a whole."""
    per_arm = np.arange(length - len(PER_CHOICE)).reshape(len(PER_ARM), -1)[:, :arms]
    return np.concatenate([per_arm.ravel(), np.arange(length - len(PER_CHOICE), length)])


def _padded(tree: Any, size: int) -> Any:
    def pad(leaf: np.ndarray) -> np.ndarray:
        if len(leaf) == size:
            return leaf.copy() if leaf.dtype == bool else leaf
        padded = np.zeros((size, *leaf.shape[1:]), leaf.dtype)
        padded[: len(leaf)] = leaf
        return padded

    return tuple(_map_leaves(pad, part) for part in tree)


def _map_leaves(function: Callable[[np.ndarray], np.ndarray], tree: Any) -> Any:
    """The function applied to every leaf; faster than JAX's where the tree is one array, the usual case."""
    return function(tree) if isinstance(tree, np.ndarray) else jax.tree.map(function, tree)


def _is_finite(belief: Belief) -> Any:
    """Whether all of it is. A maximum takes half the time of asking every number; of NaN and others it is NaN."""
    floats = [leaf for leaf in jax.tree.leaves(belief) if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.size]
    return jnp.all(jnp.stack([jnp.abs(leaf).max() < jnp.inf for leaf in floats])) if floats else jnp.bool_(True)
