"""Z of low rank by frequent directions, with a bound on its error that always holds (Liberty 2013; Ghashami et al.
2016; in bandits Kuzborskij, Cella & Cesa-Bianchi 2019)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design, when
from neuralucb.designs.factor import grow
from neuralucb.designs.factorizations import eigenvectors
from neuralucb.gradients import dense
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["FrequentDirections", "frequent_directions", "width_bounds"]

CURE = "set a smaller design_size, take design='diagonal', or a smaller network"


@brief
class FrequentDirections(NamedTuple):
    """The first `seen` rows are B, with BᵀB for Σ ggᵀ; the others are 0."""

    rows: jax.Array
    inverse_factor: jax.Array
    """M with (BBᵀ + λI)⁻¹ = MᵀM"""
    log_det: jax.Array
    seen: jax.Array
    lost: jax.Array
    """Δ: 0 ⪯ Σ ggᵀ - BᵀB ⪯ ΔI"""


def frequent_directions(like: Any, *, rank: int, ridge: Number, dtype: Any = "float64") -> Design:
    """Z = λI + BᵀB with at most 2ℓ rows in B, ℓ the rank: O(pℓ) per round and 2pℓ numbers.

    A gradient becomes a row of B. When 2ℓ rows are full, the squares of all singular values of B shrink by the largest
    but ℓ of them, δ, so that ℓ rows are left. Up to 2ℓ observations nothing is lost, and Z is the full one.

        0 ⪯ Σ ggᵀ - BᵀB ⪯ ΔI,   Δ = Σ δ ≤ min over k ≤ ℓ of (Σ ggᵀ less its k largest eigenvalues, trace)/(ℓ + 1 - k)

    so that for every direction gᵀZg is at most Δ‖g‖² below that of the full Z, and a width is never below that of the
    full Z: optimism stays. `width_bounds` gives both sides, and Δ is in the state.

    Args:
        like: A gradient, or its shapes.
        rank: ℓ.
        ridge: λ.
        dtype: Of all that is kept.

    Returns:
        The design; Z is `FrequentDirections`.

    Example:
        >>> import jax.numpy as jnp
        >>> design = frequent_directions(jnp.zeros(4), rank=2, ridge=1.0, dtype="float32")
        >>> z = design.add(design.init(), 3 * jnp.eye(4)[0])
        >>> round(float(design.width(z, jnp.eye(4)[0])) ** 2, 6)
        0.1
    """
    size, most = jax.eval_shape(dense, like).size, 2 * rank

    def init() -> FrequentDirections:
        require(dtype)
        needed = most * size * jnp.dtype(dtype).itemsize
        require_memory(needed, what=f"{most} directions of {size} parameters", cure=CURE)
        zero = jnp.zeros((), dtype)
        factor = jnp.zeros((most, most), dtype)
        return FrequentDirections(jnp.zeros((most, size), dtype), factor, zero, jnp.int32(0), zero)

    def whiten(z: FrequentDirections, gradient: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        """g, ‖g‖², and M B g; rows that are not filled give 0."""
        g = dense(gradient).astype(dtype)
        return g, g @ g, z.inverse_factor @ (z.rows @ g)

    def width(z: FrequentDirections, gradient: Any) -> jax.Array:
        _, squared, white = whiten(z, gradient)
        return jnp.sqrt((squared - white @ white) / jnp.asarray(ridge, dtype))

    def add(z: FrequentDirections, gradient: Any) -> FrequentDirections:
        g, squared, white = whiten(z, gradient)
        grown = grow(z.inverse_factor, z.seen, white, squared, ridge)
        z = FrequentDirections(
            z.rows.at[z.seen].set(g), grown.inverse_factor, z.log_det + grown.log_det, z.seen + 1, z.lost
        )
        return when(z.seen == most, shrink, z)

    def shrink(z: FrequentDirections) -> FrequentDirections:
        """Rows along singular vectors, their squared lengths less by the (ℓ+1)-th largest: ℓ are left."""
        values, vectors = eigenvectors(z.rows @ z.rows.T)
        values, vectors = values[::-1], vectors[:, ::-1]
        lost = jnp.maximum(values[rank], 0)
        kept = jnp.maximum(values[:rank] - lost, 0)
        shares = jnp.sqrt(kept / jnp.where(kept > 0, values[:rank], 1))
        rows = shares[:, None] * (vectors[:, :rank].T @ z.rows)
        lam = jnp.asarray(ridge, dtype)
        spoilt = jnp.where(jnp.isnan(z.inverse_factor).any(), jnp.nan, 1)  # what was refused stays refused
        scale = spoilt / jnp.sqrt(kept + lam)
        return FrequentDirections(
            jnp.zeros_like(z.rows).at[:rank].set(rows),
            jnp.zeros_like(z.inverse_factor).at[:rank, :rank].set(jnp.diag(scale)),
            jnp.log1p(kept / lam).sum(),
            jnp.int32(rank),
            z.lost + lost,
        )

    def solve(z: FrequentDirections, b: jax.Array) -> jax.Array:
        b = b.astype(dtype)
        white = z.inverse_factor @ (z.rows @ b)
        return (b - (white @ z.inverse_factor) @ z.rows) / jnp.asarray(ridge, dtype)

    return Design(init, width, add, lambda z: z.log_det, solve)


def width_bounds(z: FrequentDirections, gradient: Any, *, ridge: Number) -> tuple[jax.Array, jax.Array]:
    """Between which widths that of the full Z is, for sure: from λ and Δ alone, whatever was observed.

        gᵀ(λI + ΔI + BᵀB)⁻¹g ≤ gᵀZ⁻¹g ≤ gᵀ(λI + BᵀB)⁻¹g

    Args:
        z: The state of `frequent_directions`.
        gradient: g.
        ridge: λ, as of the design.

    Returns:
        The lower bound and the upper one, which is the design's width. O(pℓ + ℓ³).

    Example:
        >>> import jax.numpy as jnp
        >>> design = frequent_directions(jnp.zeros(4), rank=2, ridge=1.0, dtype="float32")
        >>> low, high = width_bounds(design.init(), jnp.ones(4), ridge=1.0)
        >>> float(low), float(high)
        (2.0, 2.0)
    """
    dtype = z.rows.dtype
    g = dense(gradient).astype(dtype)
    seen, gram = z.rows @ g, z.rows @ z.rows.T

    def width(lam: jax.Array) -> jax.Array:
        known = seen @ jnp.linalg.solve(gram + lam * jnp.eye(len(gram), dtype=dtype), seen)
        return jnp.sqrt((g @ g - known) / lam)

    lam = jnp.asarray(ridge, dtype)
    return width(lam + z.lost), width(lam)
