"""The pull to θ_0, applied late: a step on one row of a network with a block per arm reads and writes that block alone.

The gradient of such a row is zero in the blocks of all other arms, which only shrink towards θ_0, in n steps of η by

    θ_a ← θ_0a + (1 - ηλ/t)ⁿ (θ_a - θ_0a).

So each block remembers the step up to which it was pulled, is given what it has missed when its arm has a row again,
and all of them are at the end. That equals the step that writes every block, but for rounding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from neuralucb.networks.network import FirstLayer

__all__ = ["ByArm", "Late", "begin", "read", "settle", "write"]

Weights: TypeAlias = Any


class ByArm(NamedTuple):
    """f of many rows, each of which reads one arm's block of a layer; called like any other `Network.apply_many`.

    Example:
        >>> from neuralucb.networks import disjoint, mlp
        >>> disjoint(mlp(4, width=8), 3).apply_many.layer
        0
    """

    many: Callable[[Weights, Any], jax.Array]
    """θ, slots of many rows -> f of each"""
    first: FirstLayer
    """the layer with the blocks, and those above it"""
    layer: int
    """where in θ that layer is; its first axis is the arms'"""

    def __call__(self, params: Weights, rows: Any) -> jax.Array:
        """f of each row."""
        return self.many(params, rows)

    def alone(self, params: Weights, x: jax.Array) -> jax.Array:
        """f(x; θ) of the arm whose block stands in place of the layer's."""
        # kept apart, so that XLA does not compute δ once per weight where the block is updated in place
        first = lax.optimization_barrier(params[self.layer] @ self.first.prepare(x))
        return self.first.finish(params, first)


class Late(NamedTuple):
    """θ, some blocks of which have pulls to come."""

    params: Weights
    until: jax.Array
    """[K] the step up to which each block was pulled"""


def begin(network: ByArm, params: Weights) -> Late:
    """θ before the first step."""
    return Late(params, jnp.zeros(params[network.layer].shape[0], jnp.int32))


def read(
    network: ByArm, late: Late, initial: Weights, arm: jax.Array, step: jax.Array, shrink: jax.Array
) -> tuple[Weights, Weights]:
    """θ and θ_0 with this arm's block in place of the layer, pulled by all steps before this one.

    Args:
        network: Whose parameters they are.
        late: θ.
        initial: θ_0.
        arm: Whose block is read.
        step: The number of this step, from 0.
        shrink: ηλ/t, of every step.
    """
    here, origin = (_with(network, params, _block(params[network.layer], arm)) for params in (late.params, initial))
    lost = _lost(shrink, step - _block(late.until, arm))
    return _with(network, here, _pulled(here[network.layer], origin[network.layer], lost)), origin


def write(network: ByArm, late: Late, moved: Weights, arm: jax.Array, until: jax.Array) -> Late:
    """θ after as many steps as `until`, of which `moved` is what `read` gave, and what the last step made of it."""
    layer = lax.dynamic_update_index_in_dim(late.params[network.layer], moved[network.layer], arm, axis=0)
    done = lax.dynamic_update_index_in_dim(late.until, until, arm, axis=0)
    return Late(_with(network, moved, layer), done)


def settle(network: ByArm, late: Late, initial: Weights, steps: jax.Array, shrink: jax.Array) -> Weights:
    """θ after as many steps, nothing owed."""
    layer, origin = late.params[network.layer], initial[network.layer]
    lost = _lost(shrink, steps - late.until).reshape(-1, *[1] * (layer.ndim - 1))
    return _with(network, late.params, _pulled(layer, origin, lost))


def _pulled(block: jax.Array, origin: jax.Array, lost: jax.Array) -> jax.Array:
    return block - lost.astype(block.dtype) * (block - origin)


def _lost(shrink: jax.Array, steps: jax.Array) -> jax.Array:
    """1 - (1 - shrink)ⁿ; through logarithms where float32 would lose a small shrink in 1 - shrink."""
    count = steps.astype(shrink.dtype)
    small = -jnp.expm1(count * jnp.log1p(-jnp.minimum(shrink, 0.5)))
    return jnp.where(shrink < 0.5, small, 1 - (1 - shrink) ** count)


def _block(layer: jax.Array, arm: jax.Array) -> jax.Array:
    return lax.dynamic_index_in_dim(layer, arm, axis=0, keepdims=False)


def _with(network: ByArm, params: Weights, layer: jax.Array) -> Weights:
    """The parameters with another array in place of the layer."""
    changed = list(params)
    changed[network.layer] = layer
    return tuple(changed)
