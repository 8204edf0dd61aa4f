"""Dense layers with layer normalization (Ba, Kiros & Hinton 2016)."""

from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.networks.network import Network
from neuralucb.networks.stack import stack

__all__ = ["layer_norm"]

SMALLEST_VARIANCE = 1e-5
"""Added to the variance within a layer, so that a layer of equal numbers is not divided by 0."""


def layer_norm(dim: int, **shape: Any) -> Network:
    """A network of dense layers, each normalized to mean 0 and variance 1 before ReLU: h_l = σ(norm(W_l h_{l-1})).

    Without gain and shift, which the next layer's weights can stand in for. The output hardly depends on the length of
    a context, only on its direction: take it where contexts differ in scale, not where their length is what counts.

    Args:
        dim: d, the numbers in a context.
        shape: The other arguments of `mlp`.

    Returns:
        The network.

    Example:
        >>> import jax, numpy as np
        >>> network = layer_norm(4, width=8)
        >>> params, x = network.init(jax.random.key(0)), np.ones(4, np.float32)
        >>> bool(np.isclose(network.apply(params, 100 * x), network.apply(params, 1000 * x), rtol=1e-3))
        True
    """
    return stack(dim, _normalize, **shape)


def _normalize(computed: jax.Array, below: jax.Array | None) -> jax.Array:
    away = computed - computed.mean()
    return jax.nn.relu(away / jnp.sqrt((away**2).mean() + jnp.asarray(SMALLEST_VARIANCE, away.dtype)))
