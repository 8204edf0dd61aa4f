"""What was observed: a record of fixed capacity, which the caller keeps, and which is not part of a belief."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax, random

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = ["History", "append", "empty", "observe_again", "shuffle_rows", "spread_rows", "total", "zero_unless"]

Sum = TypeVar("Sum")

BLOCK = 256
"""Rows summed at a time by `total`: large enough for matrix products, small enough not to waste the last block."""

MIXES = 4
"""Multiplications of `shuffle_rows`; with one of them neighbours stay near each other."""

MOST_AGAIN = 4096
"""Rows that `observe_again` shows at most: what a lesson costs must not grow with all that was ever seen."""


@brief
class History(NamedTuple):
    """The first `seen` rows of contexts and rewards are what was observed; the rest is unused.

    Example:
        >>> import numpy as np
        >>> context = np.zeros(2, np.float32)
        >>> history = append(empty(context, capacity=10), context, 1.0)
        >>> int(history.seen), history.contexts.shape
        (1, (10, 2))
    """

    contexts: Any
    rewards: jax.Array
    seen: jax.Array
    """How many rows were observed."""
    rounds: jax.Array
    """t, at least `seen`; it bounds loops, so it must be the same in all lanes of a `vmap`, as `seen` need not."""


def empty(context: Any, *, capacity: int) -> History:
    """A history with room for `capacity` observations of contexts shaped like the one given."""
    contexts = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), context)
    return History(contexts, jnp.zeros(capacity, jnp.float32), jnp.int32(0), jnp.int32(0))


def append(history: History, context: Any, reward: float | jax.Array) -> History:
    """The history with one more observation. A full history raises InputError."""
    row, capacity = history.seen, history.rewards.shape[0]
    if not isinstance(row, jax.core.Tracer) and row >= capacity:
        raise InputError(f"history is full: its capacity is {capacity}; make a larger one with `empty`.")
    contexts = jax.tree.map(lambda rows, leaf: rows.at[row].set(leaf), history.contexts, context)
    rewards = history.rewards.at[row].set(jnp.asarray(reward, history.rewards.dtype))
    return History(contexts, rewards, row + 1, history.rounds + 1)


def total(history: History, of: Callable[[Any, jax.Array, jax.Array], Sum]) -> Sum:
    """Σ over the observed rows of `of(contexts, rewards, weights)`, block by block; weights are 0 for other rows.

    Its cost grows with the rows observed, not with the capacity.
    """
    capacity = history.rewards.shape[0]
    size = min(BLOCK, capacity)

    def block(index: jax.Array, so_far: Sum) -> Sum:
        first = jnp.minimum(index * size, capacity - size)
        rows = first + jnp.arange(size, dtype=jnp.int32)
        fresh = (rows >= index * size) & (rows < history.seen)
        contexts, rewards = jax.tree.map(
            lambda leaf: zero_unless(fresh, lax.dynamic_slice_in_dim(leaf, first, size)),
            (history.contexts, history.rewards),
        )
        return jax.tree.map(jnp.add, so_far, of(contexts, rewards, fresh.astype(rewards.dtype)))

    first_rows = jax.tree.map(lambda leaf: leaf[:size], history.contexts)
    shapes = jax.eval_shape(of, first_rows, history.rewards[:size], history.rewards[:size])
    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return lax.fori_loop(jnp.int32(0), (jnp.minimum(history.rounds, capacity) + size - 1) // size, block, zero)


def spread_rows(seen: jax.Array, capacity: int, *, most: int) -> tuple[jax.Array, jax.Array]:
    """Rows of a history, at most `most` and evenly spread over those observed, and how many of them count."""
    size = min(most, capacity)
    count = jnp.minimum(seen, size).astype(jnp.int32)
    stride = seen.astype(jnp.float32) / jnp.maximum(count, 1).astype(jnp.float32)
    rows = (jnp.arange(size, dtype=jnp.float32) * stride).astype(jnp.int32)
    return jnp.clip(rows, 0, capacity - 1), count


def shuffle_rows(key: jax.Array, size: int, count: jax.Array) -> jax.Array:
    """[size] the rows below count in a random order, at most the first `size` of them; after them 0.

    Without sorting: a bijection of the numbers of k bits, 2ᵏ ≥ count, made of additions, multiplications by odd numbers
    and shifts with random constants, and applied again wherever it leaves the rows.
    """
    bits = 32 - lax.clz(jnp.maximum(count, 1).astype(jnp.uint32) - jnp.uint32(1))
    mask = jnp.where(bits == 0, jnp.uint32(0), jnp.uint32(2**32 - 1) >> (32 - bits))
    half = (bits + 1) // 2
    factors, shifts = random.bits(key, (2, MIXES), dtype=jnp.uint32)

    def mix(numbers: jax.Array) -> jax.Array:
        for factor, shift in zip(factors, shifts, strict=True):
            numbers = ((numbers + shift) * (factor | 1)) & mask
            numbers = numbers ^ (numbers >> half)
        return numbers

    def again(numbers: jax.Array) -> jax.Array:
        return jnp.where(numbers >= count.astype(jnp.uint32), mix(numbers), numbers)

    places = jnp.arange(size, dtype=jnp.uint32)
    is_row = places < count.astype(jnp.uint32)
    start = jnp.where(is_row, mix(places), jnp.uint32(0))
    order = lax.while_loop(lambda numbers: (is_row & (numbers >= count.astype(jnp.uint32))).any(), again, start)
    return order.astype(jnp.int32)


def observe_again(
    history: History, observe: Callable[[Any, Any, jax.Array], Sum], belief: Sum, *, last: int | None = None
) -> Sum:
    """The belief after it has observed the history, or MOST_AGAIN rows of it, evenly spread, or its `last` rows."""
    capacity = history.rewards.shape[0]
    if last is None:
        rows, count = spread_rows(history.seen, capacity, most=MOST_AGAIN)
    else:
        size = min(last, MOST_AGAIN, capacity)
        count = jnp.minimum(history.seen, size).astype(jnp.int32)
        rows = jnp.minimum(history.seen - count + jnp.arange(size, dtype=jnp.int32), capacity - 1)

    def one(index: jax.Array, belief: Sum) -> Sum:
        row = rows[index]
        return observe(belief, jax.tree.map(lambda leaf: leaf[row], history.contexts), history.rewards[row])

    return lax.fori_loop(jnp.int32(0), count, one, belief)


def zero_unless(rows: jax.Array, leaf: jax.Array) -> jax.Array:
    """The leaf, 0 in all other rows: unused ones may hold anything, even NaN, which a weight of 0 would not remove."""
    return jnp.where(rows.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, jnp.zeros_like(leaf))
