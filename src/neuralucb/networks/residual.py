"""Dense layers with skip connections (He et al. 2016)."""

from typing import Any

import jax

from neuralucb.networks.network import Network
from neuralucb.networks.stack import stack

__all__ = ["residual"]


def residual(dim: int, **shape: Any) -> Network:
    """A network of dense layers, each of which adds to what it sees: h_1 = σ(W_1 x), h_l = h_{l-1} + σ(W_l h_{l-1}).

    With depth 2 it is `mlp`. Deeper ones train more easily, since slopes pass each layer unchanged.

    Args:
        dim: d, the numbers in a context.
        shape: The other arguments of `mlp`.

    Returns:
        The network.

    Example:
        >>> import jax
        >>> [leaf.shape for leaf in residual(4, width=8, depth=4).init(jax.random.key(0))]
        [(8, 4), (8, 8), (8, 8), (8,)]
    """
    return stack(dim, _add, **shape)


def _add(computed: jax.Array, below: jax.Array | None) -> jax.Array:
    return jax.nn.relu(computed) if below is None else below + jax.nn.relu(computed)
