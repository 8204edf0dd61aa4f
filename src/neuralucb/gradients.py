"""Z, the design matrix λI + Σ ggᵀ, behind one interface: full (exact) or diagonal (the paper's, for real data)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Block", "Outer", "dense", "inner"]


@partial(jax.tree_util.register_dataclass, data_fields=("arm", "part"), meta_fields=("arms",))
@dataclass(frozen=True)
class Block:
    """A gradient that is zero but for one arm's block of a layer: (0, …, part, …, 0), never built."""

    arm: jax.Array
    part: Any
    arms: int


class Outer(NamedTuple):
    """The gradient of one dense layer, left rightᵀ: two vectors instead of a matrix for every arm."""

    left: jax.Array
    right: jax.Array


def dense(gradient: Any) -> jax.Array:
    """The gradient as one vector of length p."""
    return jnp.concatenate([_matrix(leaf).ravel() for leaf in jax.tree.leaves(gradient, is_leaf=_is_factored)])


def inner(a: Any, b: Any) -> jax.Array:
    """⟨a, b⟩ of two gradients; for a dense layer ⟨left, left⟩⟨right, right⟩, without its matrix."""
    leaves = zip(jax.tree.leaves(a, is_leaf=_is_factored), jax.tree.leaves(b, is_leaf=_is_factored), strict=True)
    return jnp.stack([_inner_leaf(x, y) for x, y in leaves]).sum()


def _inner_leaf(x: Any, y: Any) -> jax.Array:
    if isinstance(x, Block):
        product = _inner_leaf(x.part, y.part)
        return jnp.where(x.arm == y.arm, product, jnp.zeros_like(product))
    return (x.left @ y.left) * (x.right @ y.right) if isinstance(x, Outer) else x.ravel() @ y.ravel()


def _is_factored(leaf: Any) -> bool:
    return isinstance(leaf, Outer | Block)


def _matrix(leaf: Any) -> jax.Array:
    if isinstance(leaf, Block):
        part = _matrix(leaf.part)
        return jnp.zeros((leaf.arms, *part.shape), part.dtype).at[leaf.arm].set(part)
    return jnp.outer(leaf.left, leaf.right) if isinstance(leaf, Outer) else leaf
