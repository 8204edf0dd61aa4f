"""The exact Z of the last gradients, by their products alone: its cost does not grow with p²."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design, when
from neuralucb.designs.factor import grow
from neuralucb.designs.factorizations import inverse_cholesky
from neuralucb.gradients import cast, dense, inner, map_layers
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Dual", "dual"]

CURE = "set a smaller design_size, or take design='diagonal'"

FORGOTTEN = 4
"""One in so many is forgotten at a time, the oldest, when the window is full."""


@brief
class Dual(NamedTuple):
    """The last `seen` gradients, in their layers, oldest first; the places after them are 0."""

    points: Any
    inverse_factor: jax.Array
    """M with (K + λI)⁻¹ = MᵀM for their products K"""
    log_det: jax.Array
    seen: jax.Array


def dual(like: Any, *, window: int, ridge: Number, dtype: Any = "float64") -> Design:
    """Z = λI + Σ ggᵀ over the last w observations, as Woodbury has it: O(w² + w·Σ(m + d)) per round, no p² and no p.

        gᵀZ⁻¹g = (gᵀg - kᵀ(K + λI)⁻¹k)/λ,   K_ij = ⟨g_i, g_j⟩,   k_i = ⟨g_i, g⟩

    Gradients are those of the θ at which they were observed. Of a dense layer two vectors are kept, not their matrix.
    Departure: when w of them are full, the oldest quarter is forgotten at once, since Cholesky's factor grows by a row
    at O(w²), but loses one at O(w³): Z is that of the last ¾w to w observations. Up to w of them it is the full one.

    Args:
        like: A gradient, or its shapes.
        window: w.
        ridge: λ.
        dtype: Of the factor and of products; gradients are kept as they come.

    Returns:
        The design; Z is `Dual`. `solve` builds the w gradients as vectors of length p.

    Example:
        >>> import jax.numpy as jnp
        >>> design = dual(jnp.zeros(4), window=2, ridge=1.0, dtype="float32")
        >>> z = design.add(design.init(), jnp.eye(4)[0])
        >>> round(float(design.width(z, jnp.eye(4)[0])) ** 2, 6)
        0.5
    """
    oldest = max(1, window // FORGOTTEN)

    def init() -> Dual:
        require(dtype)
        needed = window**2 * jnp.dtype(dtype).itemsize
        require_memory(needed, what=f"the products of {window} gradients", cure=CURE)
        points = jax.tree.map(lambda leaf: jnp.zeros((window, *leaf.shape), leaf.dtype), like)
        return Dual(points, jnp.zeros((window, window), dtype), jnp.zeros((), dtype), jnp.int32(0))

    def whiten(z: Dual, gradient: Any) -> tuple[jax.Array, jax.Array]:
        """gᵀg, and M k; places that are not filled give 0."""
        g = precise(gradient)
        to_points = jax.vmap(lambda point: inner(g, precise(point)))(z.points)
        return inner(g, g), z.inverse_factor @ to_points

    def precise(gradient: Any) -> Any:
        return map_layers(lambda layer: cast(layer, dtype), gradient)

    def width(z: Dual, gradient: Any) -> jax.Array:
        squared, white = whiten(z, gradient)
        return jnp.sqrt((squared - white @ white) / jnp.asarray(ridge, dtype))

    def add(z: Dual, gradient: Any) -> Dual:
        z = when(z.seen == window, forget, z)
        squared, white = whiten(z, gradient)
        grown = grow(z.inverse_factor, z.seen, white, squared, ridge)
        points = jax.tree.map(lambda rows, leaf: rows.at[z.seen].set(leaf), z.points, gradient)
        return Dual(points, grown.inverse_factor, z.log_det + grown.log_det, z.seen + 1)

    def forget(z: Dual) -> Dual:
        """Without the oldest, the factor computed anew."""
        points = jax.tree.map(lambda rows: jnp.roll(rows, -oldest, axis=0).at[-oldest:].set(0), z.points)
        exact, lam = precise(points), jnp.asarray(ridge, dtype)
        gram = jax.vmap(lambda one: jax.vmap(lambda other: inner(one, other))(exact))(exact)
        root, log_det = inverse_cholesky(gram + lam * jnp.eye(window, dtype=dtype))
        root, log_det = root.at[-oldest:].set(0), log_det - window * jnp.log(lam)
        spoilt = jnp.where(jnp.isnan(z.inverse_factor).any(), jnp.nan, jnp.zeros((), dtype))  # refused stays refused
        return Dual(points, root + spoilt, log_det + spoilt, z.seen - oldest)

    def solve(z: Dual, b: jax.Array) -> jax.Array:
        rows, b = jax.vmap(dense)(precise(z.points)), b.astype(dtype)
        white = z.inverse_factor @ (rows @ b)
        return (b - (white @ z.inverse_factor) @ rows) / jnp.asarray(ridge, dtype)

    return Design(init, width, add, lambda z: z.log_det, solve)
