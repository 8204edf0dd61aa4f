"""Encodings: how a network sees a context that all arms share, and an arm.

disjoint  the paper's (0, …, x, …, 0): one first layer per arm; the zeros are never built
concat    x and the arm as a one-hot vector, through one network
heads     one trunk, one output row per arm
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from neuralucb.gradients import Block
from neuralucb.networks.arm_blocks import block_product, row_products
from neuralucb.networks.late_pull import ByArm
from neuralucb.networks.network import Network
from neuralucb.policy import Slot, check_slot, slot_shape
from neuralucb.runtime.errors import InputError

__all__ = ["ENCODINGS", "concat", "disjoint", "heads"]

ENCODINGS = ("disjoint", "concat", "heads")
"""How a network sees a row and its arm, where arms share a context.

Example:
    >>> "heads" in ENCODINGS
    True
"""


def disjoint(network: Network, arms: int) -> Network:
    """Encode a shared context as (0, …, x, …, 0) of dim · arms numbers, with one block of the first layer per arm.

    Args:
        network: A network for x alone, with a separate first layer, as `mlp` has.
        arms: K.

    Returns:
        A network for `Slot(x, arm)`.

    Raises:
        InputError: If the network's first layer is not apart.

    Example:
        >>> import jax
        >>> from neuralucb.networks import disjoint, mlp
        >>> disjoint(mlp(4, width=8), 3).init(jax.random.key(0))[0].shape
        (3, 8, 4)
    """
    layer = network.first
    if layer is None:
        raise InputError(
            "network must have a separate first layer (Network.first) for disjoint contexts, as mlp does; "
            "take heads or concat."
        )

    def apply(weights: Any, slot: Slot) -> jax.Array:
        return layer.finish(weights, weights[0][slot.arm] @ layer.prepare(slot.x))

    def many(weights: Any, slots: Slot) -> jax.Array:
        first = row_products(weights[0], slots.arm, jax.vmap(layer.prepare)(slots.x))
        return jax.vmap(layer.finish, (None, 0))(weights, first)

    def alone(weights: Any, x: jax.Array) -> jax.Array:
        # kept apart, so that XLA does not compute δ once per weight where the block is updated in place
        first = lax.optimization_barrier(weights[0] @ layer.prepare(x))
        return layer.finish(weights, first)

    def tangent(weights: Any, slot: Slot) -> tuple[jax.Array, Any]:
        x = layer.prepare(slot.x)
        value, (first, *above) = layer.backward(weights, x, block_product(weights[0], slot.arm, x))
        return value, (Block(slot.arm, first, arms), *above)

    def last_layer(weights: Any, slot: Slot) -> jax.Array:
        assert layer.last is not None
        return layer.last(weights, weights[0][slot.arm] @ layer.prepare(slot.x))

    encoded = _by_arm(network, arms, 0, apply, ByArm(many, alone, 0), tangent)
    return encoded._replace(last_layer=None if layer.last is None else last_layer)


def heads(network: Network, arms: int) -> Network:
    """Give each arm an output row over one trunk that all arms share.

    Args:
        network: A network for x alone.
        arms: K.

    Returns:
        A network for `Slot(x, arm)`.

    Example:
        >>> import jax
        >>> from neuralucb.networks import heads, mlp
        >>> heads(mlp(4, width=8), 3).init(jax.random.key(0))[-1].shape
        (3, 8)
    """

    def view(weights: Any, arm: jax.Array) -> Any:
        return (*weights[:-1], weights[-1][arm])

    def apply(weights: Any, slot: Slot) -> jax.Array:
        return network.apply(view(weights, slot.arm), slot.x)

    def tangent(weights: Any, slot: Slot) -> tuple[jax.Array, Any]:
        value, (*below, last) = network.tangent(view(weights, slot.arm), slot.x)
        return value, (*below, Block(slot.arm, last, arms))

    def last_layer(weights: Any, slot: Slot) -> Block:
        assert network.last_layer is not None
        return Block(slot.arm, network.last_layer(view(weights, slot.arm), slot.x), arms)

    encoded = _by_arm(network, arms, -1, apply, jax.vmap(apply, (None, 0)), tangent)
    return encoded._replace(last_layer=None if network.last_layer is None else last_layer)


def concat(network: Network, arms: int) -> Network:
    """Append the arm to x as a one-hot vector.

    Args:
        network: A network for dim + arms numbers.
        arms: K.

    Returns:
        A network for `Slot(x, arm)`.

    Example:
        >>> from neuralucb.networks import concat, mlp
        >>> concat(mlp(4 + 3, width=8), 3).example.x.shape
        (4,)
    """

    def join(slot: Slot) -> jax.Array:
        return jnp.concatenate([slot.x, jax.nn.one_hot(slot.arm, arms, dtype=slot.x.dtype)])

    def last_layer(weights: Any, slot: Slot) -> Any:
        assert network.last_layer is not None
        return network.last_layer(weights, join(slot))

    dim = network.example.shape[0] - arms
    return network._replace(
        last_layer=None if network.last_layer is None else last_layer,
        apply=lambda weights, slot: network.apply(weights, join(slot)),
        apply_many=lambda weights, slots: network.apply_many(weights, jax.vmap(join)(slots)),
        tangent=lambda weights, slot: network.tangent(weights, join(slot)),
        example=slot_shape(dim),
        check=check_slot(dim, arms),
    )


def _by_arm(network: Network, arms: int, layer: int, apply: Any, apply_many: Any, tangent: Any) -> Network:
    """The network with one copy of a layer per arm."""

    def init(key: jax.Array) -> Any:
        key_shared, key_arms = jax.random.split(key)
        weights = list(network.init(key_shared))
        weights[layer] = jax.vmap(lambda key_arm: network.init(key_arm)[layer])(jax.random.split(key_arms, arms))
        return tuple(weights)

    dim = network.example.shape[0]
    return network._replace(
        init=init,
        first=None,
        apply=apply,
        apply_many=apply_many,
        tangent=tangent,
        example=slot_shape(dim),
        check=check_slot(dim, arms),
    )
