"""The tangent kernel of a given network, of any width (Zhou et al. 2020, Lemma B.1)."""

from typing import Any

import jax
import numpy as np

from neuralucb.designs import inner
from neuralucb.networks import Network
from neuralucb.precision import exact
from neuralucb.theory.contexts import tiles

__all__ = ["empirical_kernel"]

TILE = 256
"""Contexts a tile: their gradients are kept as factors, a few vectors of length m each."""


def empirical_kernel(network: Network, params: Any, contexts: Any, others: Any = None) -> np.ndarray:
    """⟨g(x^i; θ), g(x^j; θ)⟩/m between every two contexts, or between contexts and others, in float64.

    Lemma B.1: at a random θ_0 it approaches H as the width m grows, with an error of order 1/√m.
    contexts is a pytree with a leading axis, as many as you like: the work is done in tiles, and no gradient of
    length p is ever built. Computed in the network's own precision.
    Departure: for a θ_0 of two halves the limit is H̃^(L); see `tangent_kernel`.
    """
    count = _count(network, contexts, "contexts")
    columns = count if others is None else _count(network, others, "others")
    matrix = np.empty((count, columns))
    for rows, across in tiles(count, size=TILE) if others is None else tiles(count, columns, size=TILE):
        right = contexts if others is None else others
        matrix[rows, across] = _products(network, params, _take(contexts, rows), _take(right, across))
        if others is None:
            matrix[across, rows] = matrix[rows, across].T
    return matrix


def _products(network: Network, params: Any, a: Any, b: Any) -> np.ndarray:
    def gradients(rows: Any) -> Any:
        return jax.vmap(lambda context: network.tangent(params, context)[1])(rows)

    def every_two(a: Any, b: Any) -> jax.Array:
        return jax.vmap(jax.vmap(inner, (None, 0)), (0, None))(gradients(a), gradients(b))

    return np.asarray(exact(every_two)(a, b), dtype=np.float64)


def _count(network: Network, contexts: Any, name: str) -> int:
    """How many contexts there are, checked: rows of the shape that the network takes, of finite numbers."""
    leaves = jax.tree.leaves(contexts)
    counts = {np.shape(leaf)[:1] for leaf in leaves}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise ValueError(
            f"{name} must be an array with a row for each context, or a pytree of such arrays, got "
            f"{type(contexts).__name__} of shapes {sorted(map(np.shape, leaves))[:3]}."
        )
    rows = jax.tree.map(np.asarray, contexts)
    for row in range(len(leaves[0])):
        network.check(_take(rows, row))
    for leaf in leaves:
        bad = np.flatnonzero(~np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1))
        if bad.size:
            raise ValueError(f"{name} must be finite, got NaN or infinity in row {bad[0]}.")
    return len(leaves[0])


def _take(contexts: Any, rows: slice | int) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], contexts)
