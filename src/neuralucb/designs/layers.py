"""Parts of Z by layer: its diagonal blocks, or that of the last layer alone. Exact within a layer, blind beyond it."""

from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design, by_arm, by_layer
from neuralucb.designs.full import full
from neuralucb.gradients import Block, Outer, dense
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import Number

__all__ = ["block_diagonal", "last_layer"]


def block_diagonal(like: Any, *, ridge: Number, dtype: Any = "float64") -> Design:
    """The blocks of Z on its diagonal, one per layer: O(Σ p_l²) per round for layers of p_l parameters.

    Departure: products of gradients of two layers are left out, so that Z is larger or smaller than the full one
    depending on the direction. For a network of one layer nothing is left out.

    Args:
        like: A gradient, or its shapes. Each array of it is a layer; where it is a `Block`, each arm has its own.
        ridge: λ.
        dtype: Of Z⁻¹.

    Returns:
        The design; Z is a tuple with a `Full` per layer.

    Example:
        >>> import jax
        >>> from neuralucb.networks import mlp
        >>> network = mlp(4, width=8)
        >>> params = network.init(jax.random.key(0))
        >>> design = block_diagonal(jax.eval_shape(network.tangent, params, network.example)[1], ridge=1.0)
        >>> with jax.enable_x64(True):
        ...     [z.inverse.shape for z in design.init()]
        [(32, 32), (8, 8)]
    """
    return by_layer(like, lambda layer: full(jax.eval_shape(dense, layer).size, ridge=ridge, dtype=dtype))


def last_layer(like: Any, *, ridge: Number, dtype: Any = "float64") -> Design:
    """The block of Z that belongs to the output layer: exact for that, O(m²) per round for m units below it.

    The gradient of an output layer is what it sees, so that this is the exact Z on the features of the last hidden
    layer, as NeuralLinear has it (Riquelme et al. 2018), at the θ of each round.
    Departure: all other layers count as known. Widths are smaller than those of the full Z, also in the first round.

    Args:
        like: A gradient, or its shapes: a tuple of layers, of which the last is the output layer's.
        ridge: λ.
        dtype: Of Z⁻¹.

    Returns:
        The design; `solve` gives 0 for parameters of other layers.

    Raises:
        InputError: If parameters are no tuple, so that no layer is known to be the last.

    Example:
        >>> import jax
        >>> from neuralucb.networks import mlp
        >>> network = mlp(4, width=8)
        >>> params = network.init(jax.random.key(0))
        >>> design = last_layer(jax.eval_shape(network.tangent, params, network.example)[1], ridge=1.0)
        >>> with jax.enable_x64(True):
        ...     design.init().inverse.shape
        (8, 8)
    """
    own = _last(like)
    size, total = (jax.eval_shape(dense, part).size for part in (own, like))
    one = (
        by_arm(full(size // own.arms, ridge=ridge, dtype=dtype), own.arms)
        if isinstance(own, Block)
        else full(size, ridge=ridge, dtype=dtype)
    )

    def solve(z: Any, b: jax.Array) -> jax.Array:
        last = one.solve(z, b[total - size :])
        return jnp.concatenate([jnp.zeros(total - size, last.dtype), last])

    return Design(
        one.init,
        lambda z, gradient: one.width(z, _last(gradient)),
        lambda z, gradient: one.add(z, _last(gradient)),
        one.log_det,
        solve,
    )


def _last(gradient: Any) -> Any:
    """The output layer's part of a gradient."""
    if isinstance(gradient, Outer | Block) or hasattr(gradient, "shape"):
        return gradient
    if isinstance(gradient, tuple | list) and gradient:
        return gradient[-1]
    raise InputError(
        "design last-layer needs a network whose parameters are a tuple of layers, the output layer last, as mlp has "
        f"them; these are a {type(gradient).__name__}. Give them as a tuple, or take design='block-diagonal'."
    )
