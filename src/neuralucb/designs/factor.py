"""M = L⁻¹ for Cholesky's LLᵀ = K + λI, K the products of gradients: it grows by a row per gradient.

Of K + λI it loses half the digits that the inverse itself would lose, so that ‖g‖²/λ may be 10¹⁵ in float64.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.runtime.precision import Number

__all__ = ["Growth", "grow"]


class Growth(NamedTuple):
    """M with one more row, and by how much log det(K + λI) - log det λI has grown."""

    inverse_factor: jax.Array
    log_det: jax.Array


def grow(inverse_factor: jax.Array, at: jax.Array, white: jax.Array, squared: jax.Array, ridge: Number) -> Growth:
    """The factor with the row of one more gradient g: (-wᵀM, 1)/ℓ, ℓ² = gᵀg + λ - wᵀw.

    NaN where rounding, eps·gᵀg, exceeds what the observation leaves of the variance, as in `full`.

    Args:
        inverse_factor: M; rows from `at` on are 0.
        at: The place of the new row.
        white: w = M k, k the products of g with those before.
        squared: gᵀg.
        ridge: λ.
    """
    lam, left = jnp.asarray(ridge, white.dtype), squared - white @ white
    length = jnp.sqrt(left + lam)
    row = (-(white @ inverse_factor) / length).at[at].set(1 / length)
    is_lost = jnp.finfo(white.dtype).eps * squared * (left + lam) > left * lam
    return Growth(
        inverse_factor.at[at].set(jnp.where(is_lost, jnp.nan, row)),
        2 * jnp.log(length) - jnp.log(lam),
    )
