"""γ_t, the scale of the confidence interval: constant, theoretical (Algorithm 1) or self-normalised (Algorithm 3)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Assumptions", "Confidence", "constant", "self_normalised", "theoretical"]

Confidence: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""rounds t, log(det Z_t / det λI) -> γ_t"""


@brief
class Assumptions(NamedTuple):
    """What the analysis assumes about the rewards, and the constants it gives no value for.

    Example:
        >>> Assumptions(norm=3.0).failure
        0.1
    """

    noise_bound: Number = 1.0
    """ν: the noise is ν-sub-Gaussian."""
    failure: Number = 0.1
    """δ: the probability with which the interval may fail."""
    norm: Number = 1.0
    """S: bound on the reward function's norm, S ≥ sqrt(2 hᵀH⁻¹h)."""
    constants: tuple[Number, Number, Number] = (1.0, 1.0, 1.0)
    """C_1, C_2, C_3: absolute constants of which the paper gives no value."""


def constant(exploration: Number) -> Confidence:
    """γ_t = γ, as in the paper's experiments."""
    return lambda rounds, log_det: jnp.asarray(exploration, dtype=log_det.dtype)


def self_normalised(assumed: Assumptions, *, ridge: Number) -> Confidence:
    """γ_t = ν sqrt(log(det Z_t / det λI) - 2 log δ) + √λ S (Algorithm 3, line 9; Abbasi-Yadkori et al. 2011).

    Departure: none.

    Args:
        assumed: ν, δ and S.
        ridge: λ, as in Z_0 = λI.

    Returns:
        A function of t and log(det Z_t / det λI).

    Example:
        >>> import jax.numpy as jnp
        >>> gamma = self_normalised(Assumptions(noise_bound=1.0, failure=0.1, norm=1.0), ridge=1.0)
        >>> round(float(gamma(jnp.int32(0), jnp.float32(0.0))), 3)
        3.146
    """

    def gamma(rounds: jax.Array, log_det: jax.Array) -> jax.Array:
        nu, delta, s, lam = (jnp.asarray(value, dtype=log_det.dtype) for value in (*assumed[:3], ridge))
        return nu * jnp.sqrt(log_det - 2 * jnp.log(delta)) + jnp.sqrt(lam) * s

    return gamma


def theoretical(
    assumed: Assumptions, *, ridge: Number, width: int, depth: int, step_size: Number, steps: int | str
) -> Confidence:
    """γ_t of Algorithm 1, line 13, with its three unknown constants as parameters.

        γ_t = sqrt(1 + C_1 c L⁴ t^{7/6} λ^{-7/6})
              · (ν sqrt(log(det Z_t / det λI) + C_2 c L⁴ t^{5/3} λ^{-1/6} - 2 log δ) + √λ S)
              + (λ + C_3 t L) · [(1 - ηmλ)^{J/2} sqrt(t/λ) + c L^{7/2} t^{5/3} λ^{-5/3} (1 + sqrt(t/λ))]

    with c = m^{-1/6} sqrt(log m).
    At practical widths it is astronomically large: that is what the formula gives.
    Departure: none; the proof of Lemma 5.4 has other powers of m in its last term, and these are Algorithm 1's.

    Args:
        assumed: ν, δ, S and the constants C_1, C_2, C_3.
        ridge: λ, as in Z_0 = λI.
        width: m, hidden units per layer.
        depth: L, layers.
        step_size: η of TrainNN.
        steps: J of TrainNN, or "t" for as many as rounds.

    Returns:
        A function of t and log(det Z_t / det λI); it computes in float64.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> assumed = Assumptions(noise_bound=1.0, failure=0.1, norm=1.0)
        >>> gamma = theoretical(assumed, ridge=1.0, width=20, depth=2, step_size=0.01, steps=100)
        >>> with jax.enable_x64(True):
        ...     float(gamma(jnp.int32(100), jnp.float32(5.0))) > 1e6
        True
    """

    def gamma(rounds: jax.Array, log_det: jax.Array) -> jax.Array:
        require("float64")
        nu, delta, s, lam, eta, c1, c2, c3 = (
            jnp.asarray(value, dtype=jnp.float64) for value in (*assumed[:3], ridge, step_size, *assumed.constants)
        )
        t = rounds.astype(jnp.float64)
        j = t if steps == "t" else jnp.float64(steps)
        m, depth_ = jnp.float64(width), jnp.float64(depth)
        c = m ** (-1 / 6) * jnp.sqrt(jnp.log(m))
        inflation = jnp.sqrt(1 + c1 * c * depth_**4 * (t / lam) ** (7 / 6))
        evidence = (
            log_det.astype(jnp.float64) + c2 * c * depth_**4 * t ** (5 / 3) * lam ** (-1 / 6) - 2 * jnp.log(delta)
        )
        optimisation = (1 - eta * m * lam) ** (j / 2) * jnp.sqrt(t / lam)
        linearisation = c * depth_**3.5 * (t / lam) ** (5 / 3) * (1 + jnp.sqrt(t / lam))
        return inflation * (nu * jnp.sqrt(evidence) + jnp.sqrt(lam) * s) + (lam + c3 * t * depth_) * (
            optimisation + linearisation
        )

    return gamma
