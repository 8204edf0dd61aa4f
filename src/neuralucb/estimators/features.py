"""Features of a context: the context itself, or the gradient of a network at its start."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from neuralucb.gradients import Block
from neuralucb.networks.network import Network
from neuralucb.policy import Context, Slot, check_slot, check_vector, slot_shape

__all__ = ["Features", "raw", "raw_by_arm", "tangent"]


class Features(NamedTuple):
    """φ(x): a pytree of arrays, `Outer` and `Block`, of `size` numbers in all."""

    init: Callable[[jax.Array], Any]
    """key -> parameters, drawn once"""
    apply: Callable[[Any, Context], Any]
    """parameters, context -> φ(x)"""
    size: int
    example: Any
    """the shape of a context"""
    check: Callable[[Context], None]


def raw(dim: int) -> Features:
    """φ(x) = x."""
    example = jax.ShapeDtypeStruct((dim,), "float32")
    return Features(lambda key: (), lambda params, context: context, dim, example, check_vector(dim))


def raw_by_arm(dim: int, arms: int) -> Features:
    """φ(x, a) = (0, …, x, …, 0) of dim · arms numbers, never built."""

    def apply(params: Any, slot: Slot) -> Block:
        return Block(slot.arm, slot.x, arms)

    return Features(lambda key: (), apply, dim * arms, slot_shape(dim), check_slot(dim, arms))


def tangent(network: Network) -> Features:
    """φ(x) = g(x; θ_0)/√m, fixed (Zhou et al. 2020, NeuralUCB_0)."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(shapes))

    def apply(params: Any, context: Context) -> Any:
        return network.tangent(params, context)[1]  # φ of Algorithm 3, line 2; its θ_0 is `init`'s

    return Features(network.init, apply, size, network.example, network.check)
