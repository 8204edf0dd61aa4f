"""Embeddings of categories before dense layers: columns that hold codes become vectors that are trained."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.gradients import Block
from neuralucb.networks.network import Network
from neuralucb.networks.stack import Front, stack
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import require

__all__ = ["embedding"]


def embedding(dim: int, *, categories: Mapping[int, int], size: int = 4, **shape: Any) -> Network:
    """A network in which some columns of a context are categories: 0, 1, …, n-1 become vectors that are trained.

    Each category has a vector of `size` numbers; dense layers with ReLU see the other columns, then these vectors. A
    code that is none of the n, such as -1 for a missing value, has the vector 0. The gradient of a table is a `Block`:
    zero but in one row, so that designs of Z by layer keep one block per category.

    Args:
        dim: d, the numbers in a context.
        categories: Column -> n, how many categories it has.
        size: Numbers per category.
        shape: The other arguments of `mlp`.

    Returns:
        The network; its parameters are the tables [n, size], in the order of the columns, then the dense layers'.

    Raises:
        InputError: If there are no categories, or a column is not one of the context's.

    Example:
        >>> import jax
        >>> network = embedding(4, categories={1: 10}, size=2, width=8)
        >>> [leaf.shape for leaf in network.init(jax.random.key(0))]
        [(10, 2), (8, 5), (8,)]
    """
    _check(dim, categories, size)
    columns, counts = zip(*sorted(categories.items()), strict=True)
    others = np.setdiff1d(np.arange(dim), columns)
    dtype = shape.get("dtype", "float32")

    def init(key: jax.Array) -> tuple[jax.Array, ...]:
        require(dtype)
        keys = jax.random.split(key, len(counts))
        deviation = jnp.asarray(1 / np.sqrt(size), "float32")
        drawn = (jax.random.normal(each, (n, size), "float32") for each, n in zip(keys, counts, strict=True))
        return tuple((deviation * table).astype(dtype) for table in drawn)

    def codes(context: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        """Of each table the row, and whether there is such a category."""
        found = [jnp.round(context[column]).astype(jnp.int32) for column in columns]
        return [(jnp.clip(code, 0, n - 1), (code >= 0) & (code < n)) for code, n in zip(found, counts, strict=True)]

    def apply(tables: tuple[jax.Array, ...], context: jax.Array) -> jax.Array:
        rows = [_known(is_known, table[code]) for table, (code, is_known) in zip(tables, codes(context), strict=True)]
        return jnp.concatenate([context[others].astype(dtype), *rows])

    def backward(tables: tuple[jax.Array, ...], context: jax.Array, slope: jax.Array) -> tuple[Any, ...]:
        slopes = slope[len(others) :].reshape(len(counts), size)
        each = zip(slopes, codes(context), counts, strict=True)
        return tuple(Block(code, _known(is_known, part), n) for part, (code, is_known), n in each)

    front = Front(init, apply, backward, len(others) + len(counts) * size, len(counts))
    return stack(dim, lambda computed, below: jax.nn.relu(computed), front=front, **shape)


def _known(is_known: jax.Array, vector: jax.Array) -> jax.Array:
    return jnp.where(is_known, vector, jnp.zeros_like(vector))


def _check(dim: int, categories: Mapping[int, int], size: int) -> None:
    if not categories:
        raise InputError(
            "categories must name at least one column and how many categories it has, such as 0:5,3:12, got none; for "
            "contexts without categories take network=mlp."
        )
    for column, count in categories.items():
        if not 0 <= column < dim or count < 1:
            raise InputError(
                f"categories must name columns from 0 to {dim - 1}, and at least one category of each, got "
                f"{column}:{count}."
            )
    if size < 1:
        raise InputError(f"size must be at least 1, got {size}.")
