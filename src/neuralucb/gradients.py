"""Gradients g(x; θ) as pytrees of arrays, `Outer` and `Block`: layers that are never written out as matrices."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Block", "Outer", "cast", "dense", "inner", "layers", "map_layers", "scale"]


@partial(jax.tree_util.register_dataclass, data_fields=("arm", "part"), meta_fields=("arms",))
@dataclass(frozen=True)
class Block:
    """A gradient that is zero except in one arm's block of a layer: (0, …, part, …, 0), never built."""

    arm: jax.Array
    part: Any
    arms: int


class Outer(NamedTuple):
    """The gradient of one dense layer, left rightᵀ: two vectors instead of one matrix per arm."""

    left: jax.Array
    right: jax.Array


def dense(gradient: Any) -> jax.Array:
    """The gradient as one vector of length p."""
    return jnp.concatenate([_matrix(layer).ravel() for layer in layers(gradient)])


def inner(a: Any, b: Any) -> jax.Array:
    """⟨a, b⟩ of two gradients; for a dense layer ⟨left, left⟩⟨right, right⟩, without its matrix."""
    return jnp.stack([_inner_of_layers(x, y) for x, y in zip(layers(a), layers(b), strict=True)]).sum()


def map_layers(function: Callable[..., Any], gradient: Any, *others: Any) -> Any:
    """`jax.tree.map` over the layers of a gradient, in which an `Outer` or a `Block` counts as one leaf."""
    return jax.tree.map(function, gradient, *others, is_leaf=_is_factored)


def layers(gradient: Any) -> list[Any]:
    """The layers of a gradient, in the order of the parameters; each is an array, an `Outer` or a `Block`."""
    return jax.tree.leaves(gradient, is_leaf=_is_factored)


def cast(layer: Any, dtype: Any) -> Any:
    """One layer's gradient in this precision; the arm of a `Block` stays an integer."""
    if isinstance(layer, Block):
        return replace(layer, part=cast(layer.part, dtype))
    return jax.tree.map(lambda part: part.astype(dtype), layer)


def scale(gradient: Any, factor: jax.Array) -> Any:
    """The gradient times a number."""

    def one(layer: Any) -> Any:
        if isinstance(layer, Block):
            return replace(layer, part=one(layer.part))
        if isinstance(layer, Outer):
            return layer._replace(left=layer.left * factor.astype(layer.left.dtype))
        return layer * factor.astype(layer.dtype)

    return map_layers(one, gradient)


def _is_factored(leaf: Any) -> bool:
    return isinstance(leaf, Outer | Block)


def _inner_of_layers(x: Any, y: Any) -> jax.Array:
    if isinstance(x, Block):
        product = _inner_of_layers(x.part, y.part)
        return jnp.where(x.arm == y.arm, product, jnp.zeros_like(product))
    return (x.left @ y.left) * (x.right @ y.right) if isinstance(x, Outer) else x.ravel() @ y.ravel()


def _matrix(layer: Any) -> jax.Array:
    if isinstance(layer, Block):
        part = _matrix(layer.part)
        return jnp.zeros((layer.arms, *part.shape), part.dtype).at[layer.arm].set(part)
    return jnp.outer(layer.left, layer.right) if isinstance(layer, Outer) else layer
