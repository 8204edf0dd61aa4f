"""Encodings: how a network sees a context that all arms share, and an arm.

disjoint  the paper's (0, …, x, …, 0): a first layer of its own for each arm; never materialised
concat    x and the arm as a one-hot vector, through one network
heads     one trunk, an output row for each arm
"""

from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.designs import Block
from neuralucb.networks import Network
from neuralucb.policy import Slot, check_slot, slot_shape

__all__ = ["ENCODINGS", "concat", "disjoint", "heads"]

ENCODINGS = ("disjoint", "concat", "heads")


def disjoint(network: Network, arms: int) -> Network:
    """The network on (0, …, x, …, 0) of dim · arms numbers, with the first layer kept as a block for each arm.

    A row of a batch needs one block; all are computed and one is kept: one large product instead of many small ones.
    """

    def many(weights: Any, slots: Slot) -> jax.Array:
        every = jnp.einsum("kmd,bd->bkm", weights[0], jax.vmap(network.prepare)(slots.x))
        own = jnp.take_along_axis(every, slots.arm[:, None, None], axis=1)[:, 0]
        return jax.vmap(network.finish, (None, 0))(weights, own)

    return _by_arm(network, arms, layer=0)._replace(apply_many=many)


def heads(network: Network, arms: int) -> Network:
    """One trunk, and an output row for each arm."""
    return _by_arm(network, arms, layer=-1)


def concat(network: Network, arms: int) -> Network:
    """The network on x and the arm as a one-hot vector; it must take dim + arms numbers."""

    def join(slot: Slot) -> jax.Array:
        return jnp.concatenate([slot.x, jax.nn.one_hot(slot.arm, arms, dtype=slot.x.dtype)])

    dim = network.example.shape[0] - arms
    return network._replace(
        apply=lambda weights, slot: network.apply(weights, join(slot)),
        apply_many=lambda weights, slots: network.apply_many(weights, jax.vmap(join)(slots)),
        tangent=lambda weights, slot: network.tangent(weights, join(slot)),
        example=slot_shape(dim),
        check=check_slot(dim, arms),
    )


def _by_arm(network: Network, arms: int, *, layer: int) -> Network:
    """The network with one layer of its own for each arm."""

    def init(key: jax.Array) -> Any:
        key_shared, key_own = jax.random.split(key)
        weights = list(network.init(key_shared))
        weights[layer] = jax.vmap(lambda key_arm: network.init(key_arm)[layer])(jax.random.split(key_own, arms))
        return tuple(weights)

    def view(weights: Any, arm: jax.Array) -> Any:
        seen = list(weights)
        seen[layer] = weights[layer][arm]
        return tuple(seen)

    def apply(weights: Any, slot: Slot) -> jax.Array:
        return network.apply(view(weights, slot.arm), slot.x)

    def tangent(weights: Any, slot: Slot) -> Any:
        gradient = list(network.tangent(view(weights, slot.arm), slot.x))
        gradient[layer] = Block(slot.arm, gradient[layer], arms)
        return tuple(gradient)

    dim = network.example.shape[0]
    return network._replace(
        init=init,
        apply=apply,
        apply_many=jax.vmap(apply, (None, 0)),
        tangent=tangent,
        example=slot_shape(dim),
        check=check_slot(dim, arms),
    )
