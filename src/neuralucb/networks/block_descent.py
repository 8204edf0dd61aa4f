"""A plain step on a minibatch of a network with a block per arm, on an NVIDIA GPU: no gradient of blocks is written.

Automatic differentiation alone gathers the rows, writes the gradient of every block, and reads it again to move them.
Here one kernel reads rows where they are, and another moves each block by its gradient while that is at hand: rows
are read twice, blocks are read twice and written once.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from neuralucb.networks.arm_blocks import has_kernels, is_short
from neuralucb.networks.late_pull import ByArm
from neuralucb.policy import Slot
from neuralucb.runtime.precision import Number

__all__ = ["Loss", "descend", "is_worthwhile", "loss_and_move", "prepare"]

Loss: TypeAlias = Callable[[Any, Callable[[Any], jax.Array]], jax.Array]
"""θ, f of the batch as a function of θ -> the loss"""


def descend(params: Any, gradient: Any, initial: Any, step_size: Number, pull: Number) -> Any:
    """The plain step of any parameters: θ - η (gradient + pull (θ - θ_0))."""

    def one(w: jax.Array, g: jax.Array, w0: jax.Array) -> jax.Array:
        eta, strength = jnp.asarray(step_size, dtype=w.dtype), jnp.asarray(pull, dtype=w.dtype)
        return w - eta * (g + strength * (w - w0))

    return jax.tree.map(one, params, gradient, initial)


def is_worthwhile(network: ByArm, params: Any) -> bool:
    """Whether steps of this network may take this way where they run on an NVIDIA GPU."""
    layer = params[network.layer]
    return jax.default_backend() == "gpu" and not is_short(layer) and has_kernels(layer)


def prepare(network: ByArm, contexts: Slot) -> Slot:
    """The table of contexts, as the first layer sees them."""
    return contexts._replace(x=jax.vmap(network.first.prepare)(contexts.x))


def loss_and_move(
    network: ByArm,
    loss: Loss,
    params: Any,
    initial: Any,
    table: Any,
    rows: jax.Array,
    step_size: jax.Array,
    pull: jax.Array,
    *,
    interpret: bool = False,
) -> tuple[jax.Array, Any]:
    """The loss of a batch, and θ - η (∇loss + pull (θ - θ_0)).

    Args:
        network: f.
        loss: Of the batch.
        params: θ.
        initial: θ_0.
        table: All contexts, prepared.
        rows: [B] of the table.
        step_size: η.
        pull: λ/t.
        interpret: Whether to run the kernels in plain JAX, on any device: for tests.
    """
    from neuralucb.networks.arm_kernels import descend as descend_blocks, multiply, sort_by_arm

    layer, origin = params[network.layer], initial[network.layer]
    batch = sort_by_arm(table.arm[rows], rows, layer.shape[0])
    products = multiply(layer, batch, table.x, interpret=interpret)

    def of(params: Any, products: jax.Array) -> jax.Array:
        return loss(params, lambda params: jax.vmap(network.first.finish, (None, 0))(params, products))

    value, (gradient, change) = jax.value_and_grad(of, (0, 1))(params, products)
    moved = list(descend(params, gradient, initial, step_size, pull))
    moved[network.layer] = descend_blocks(layer, batch, change, table.x, origin, step_size, pull, interpret=interpret)
    return value, tuple(moved)
