"""The exact Z, kept as its inverse; and how far rounding has carried that away."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design
from neuralucb.gradients import dense
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Full", "drift", "full", "has_drifted"]

CURE = (
    "take design='diagonal' or another that is smaller, a smaller network, or, for an algorithm with a dual form, say "
    "how many rounds"
)

LARGEST_DRIFT = 1.0
"""Beyond it Z⁻¹ has lost all digits in some direction, and widths of common gradients are off by about a hundredth."""


@brief
class Full(NamedTuple):
    """Z⁻¹ and log(det Z / det λI), both kept up to date; and Zv for one direction v, by which `drift` checks Z⁻¹."""

    inverse: jax.Array
    log_det: jax.Array
    image: jax.Array


def full(size: int, *, ridge: Number, dtype: Any = "float64") -> Design:
    """The exact Z of `size` parameters: O(p²) per round, by Sherman–Morrison and the matrix determinant lemma.

    Departure: none. float64 by default, because on nearly low-rank gradients float32 ends in negative variances.

    A matrix kept as its inverse cannot hold more than 1/eps between its largest and smallest eigenvalue. An update of
    which no digit would be left, such as one with ‖g‖²/λ beyond 10¹⁵ in float64, turns Z⁻¹ into NaN: a simulation then
    marks the run, and an `OnlineBandit` refuses the observation, instead of going on with wrong widths.
    """

    def init() -> Full:
        require(dtype)
        require_memory(size**2 * jnp.dtype(dtype).itemsize, what=f"the full Z of {size} parameters", cure=CURE)
        lam = jnp.asarray(ridge, dtype=dtype)
        inverse = jnp.eye(size, dtype=dtype) / lam  # Algorithm 1, line 3
        return Full(inverse, jnp.zeros((), dtype=dtype), lam * _direction(size, dtype))

    def width(z: Full, gradient: Any) -> jax.Array:
        g = dense(gradient).astype(dtype)
        # from the left: for many arms this is G Z⁻¹, which XLA computes more than twice as fast as Z⁻¹ Gᵀ
        return jnp.sqrt((g @ z.inverse) @ g)

    def add(z: Full, gradient: Any) -> Full:
        g = dense(gradient).astype(dtype)
        w = z.inverse @ g  # named, so that the update costs O(p²)
        growth = g @ w
        image = z.image + g * (g @ _direction(size, dtype))
        divisor = jnp.where(is_lost(g @ g, growth), jnp.nan, 1 + growth)
        inverse = z.inverse - jnp.outer(w, w / divisor)  # Algorithm 1, line 11, for the inverse
        return Full(inverse, z.log_det + jnp.log1p(growth), image)

    def is_lost(squared: jax.Array, growth: jax.Array) -> jax.Array:
        """Whether rounding, eps·gᵀg/λ since Z⁻¹ began as I/λ, exceeds what is left of gᵀZ⁻¹g: growth/(1 + growth)."""
        return jnp.finfo(dtype).eps * squared * (1 + growth) > jnp.asarray(ridge, dtype=dtype) * growth

    def solve(z: Full, b: jax.Array) -> jax.Array:
        return z.inverse @ b.astype(dtype)

    return Design(init, width, add, lambda z: z.log_det, solve)


def drift(z: Full) -> jax.Array:
    """‖Z⁻¹(Zv) - v‖_∞ for one direction v: how far rounding has carried the kept inverse away. 0 if it has not."""
    v = jnp.broadcast_to(_direction(z.image.shape[-1], z.image.dtype), z.image.shape)  # z may be one per arm
    return jnp.abs(jnp.einsum("...ij,...j->...i", z.inverse, z.image) - v).max()


def has_drifted(belief: Any) -> jax.Array:
    """Whether the `drift` of a full design anywhere in the belief is beyond LARGEST_DRIFT, or not a number."""
    designs = [leaf for leaf in jax.tree.leaves(belief, is_leaf=_is_full) if _is_full(leaf)]
    return jnp.asarray([~(drift(z) <= LARGEST_DRIFT) for z in designs], dtype=bool).any()


def _is_full(leaf: Any) -> bool:
    return isinstance(leaf, Full)


def _direction(size: int, dtype: Any) -> jax.Array:
    """A vector that no gradient is likely to be parallel or orthogonal to, with entries between -1 and 1."""
    return jnp.cos(jnp.arange(1, size + 1, dtype=dtype) ** 2)
