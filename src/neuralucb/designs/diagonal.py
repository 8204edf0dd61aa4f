"""Only the diagonal of Z: the paper's approximation for its real data sets (Zhou et al. 2020, Section 7.2)."""

from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design
from neuralucb.gradients import Block, Outer, cast, dense, map_layers
from neuralucb.networks.arm_blocks import block_product
from neuralucb.runtime.precision import Number, require

__all__ = ["diagonal"]


def diagonal(like: Any, *, ridge: Number, dtype: Any = "float32") -> Design:
    """Only diag(Z), in the shape of the parameters (`like` gives their shapes): O(p) memory and time.

    Kept as 1/diag(Z), since it is read far more often than it is written, and a division costs ten products.
    Departure: the paper's own approximation for its real data sets (Section 7.2).
    """

    def init() -> Any:
        require(dtype)
        start = 1 / jnp.asarray(ridge, dtype=dtype)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(start, leaf.shape), like)

    def width(z: Any, gradient: Any) -> jax.Array:
        return jnp.sqrt(_sum(map_layers(lambda g, old: _weighted_square(cast(g, dtype), old), gradient, z)))

    def add(z: Any, gradient: Any) -> Any:
        return map_layers(lambda g, old: _add_square(cast(g, dtype), old), gradient, z)

    def log_det(z: Any) -> jax.Array:
        return -_sum(jax.tree.map(lambda leaf: jnp.log(leaf * jnp.asarray(ridge, dtype=dtype)).sum(), z))

    def solve(z: Any, b: jax.Array) -> jax.Array:
        return b.astype(dtype) * dense(z)

    return Design(init, width, add, log_det, solve)


def _add_square(layer: Any, inverse: jax.Array) -> jax.Array:
    """1/(z + g²), from 1/z."""
    if isinstance(layer, Block):
        return inverse.at[layer.arm].set(_add_square(layer.part, inverse[layer.arm]))
    square = jnp.outer(layer.left**2, layer.right**2) if isinstance(layer, Outer) else layer**2
    return inverse / (1 + square * inverse)


def _weighted_square(layer: Any, inverse: jax.Array) -> jax.Array:
    """Σ g²/z; for a dense layer (left²)ᵀ (1/z) (right²), so that many arms read z once, in a matrix product."""
    if isinstance(layer, Block) and isinstance(layer.part, Outer):
        return layer.part.left**2 @ block_product(inverse, layer.arm, layer.part.right**2)
    if isinstance(layer, Block):
        return _weighted_square(layer.part, inverse[layer.arm])
    if isinstance(layer, Outer):
        return layer.left**2 @ (inverse @ layer.right**2)
    return (layer**2 * inverse).sum()


def _sum(tree: Any) -> jax.Array:
    return jnp.stack(jax.tree.leaves(tree)).sum()
