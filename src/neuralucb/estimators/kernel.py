"""Ridge regression in its dual form: KernelUCB's estimator, and NeuralUCB_0's if rounds are fewer than parameters."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from neuralucb.estimators.features import Features
from neuralucb.gradients import inner
from neuralucb.history import History
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require

__all__ = ["Kernel", "kernel", "rbf"]

Similarity: TypeAlias = Callable[[Any, Any], jax.Array]
"""features of two contexts -> k(x, y)"""


class Kernel(NamedTuple):
    """The first n points, and the factor of (K + λI)⁻¹ = MᵀM, M = L⁻¹ for Cholesky's L; rows beyond n are zero."""

    params: Any
    points: Any
    inverse_factor: jax.Array
    whitened: jax.Array
    """M r, so that a mean is ⟨M k, M r⟩"""
    log_det: jax.Array
    rounds: jax.Array


def kernel(
    features: Features,
    similarity: Similarity,
    *,
    ridge: Number,
    capacity: int,
    stops: bool = False,
    dtype: Any = "float64",
) -> Estimator:
    """Mean kᵀ(K+λI)⁻¹r and width sqrt((k(x,x) - kᵀ(K+λI)⁻¹k)/λ) over the first `capacity` observations.

    Cholesky's factor L grows by one row per round. It is kept inverted, M = L⁻¹, whose next row is (-wᵀM, 1)/ℓ with
    w = M k and ℓ² = k(x,x) + λ - wᵀw: products instead of triangular solves, O(capacity²) per round.
    It costs its capacity from the first round. Observations beyond it are not added: where it `stops` that is the
    algorithm; otherwise the widths turn to NaN, so that a run longer than planned is marked and not silently wrong.
    So do they after an observation of whose variance rounding would leave no digit: k(x,x)/λ beyond 10¹⁵ in float64.
    """

    def init(key: jax.Array) -> Kernel:
        require(dtype)
        require_memory(
            capacity**2 * jnp.dtype(dtype).itemsize,
            what=f"the kernel matrix of {capacity} rounds",
            cure="play fewer rounds, set a smaller budget, or take design='diagonal' where there is one",
        )
        params = features.init(key)
        shapes = jax.eval_shape(features.apply, params, features.example)
        points = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), dtype), shapes)
        zero = jnp.zeros(capacity, dtype)
        return Kernel(params, points, jnp.zeros((capacity, capacity), dtype), zero, jnp.zeros((), dtype), jnp.int32(0))

    def whiten(belief: Kernel, context: Context) -> tuple[Any, jax.Array, jax.Array]:
        """φ(x), k(x, x), and M k for the kernel vector k of x and all points; rows not filled give 0."""
        phi = jax.tree.map(lambda leaf: leaf.astype(dtype), features.apply(belief.params, context))
        to_points = jax.vmap(similarity, (None, 0))(phi, belief.points)
        return phi, similarity(phi, phi), belief.inverse_factor @ to_points

    def predict(belief: Kernel, context: Context) -> Prediction:
        _, prior, white = whiten(belief, context)
        width = jnp.sqrt((prior - white @ white) / jnp.asarray(ridge, dtype))
        if not stops:
            width = jnp.where(belief.rounds > capacity, jnp.nan, width)
        return Prediction(white @ belief.whitened, width, belief.rounds, belief.log_det)

    def observe(belief: Kernel, context: Context, reward: jax.Array) -> Kernel:
        phi, prior, white = whiten(belief, context)
        lam = jnp.asarray(ridge, dtype)
        length = jnp.sqrt(prior + lam - white @ white)
        at = belief.rounds  # beyond the capacity the scatters below drop what they are given
        row = (-(white @ belief.inverse_factor) / length).at[at].set(1 / length, mode="drop")
        target = (reward.astype(dtype) - white @ belief.whitened) / length
        growth = jnp.where(at < capacity, 2 * jnp.log(length) - jnp.log(lam), jnp.zeros((), dtype))
        return Kernel(
            belief.params,
            jax.tree.map(lambda rows, leaf: rows.at[at].set(leaf, mode="drop"), belief.points, phi),
            belief.inverse_factor.at[at].set(jnp.where(is_lost(prior, white), jnp.nan, row), mode="drop"),
            belief.whitened.at[at].set(target, mode="drop"),
            belief.log_det + growth,
            belief.rounds + 1,
        )

    def is_lost(prior: jax.Array, white: jax.Array) -> jax.Array:
        """Whether rounding, eps·k(x,x), exceeds what this observation leaves of the variance v: vλ/(v + λ)."""
        lam, variance = jnp.asarray(ridge, dtype), prior - white @ white
        return jnp.finfo(dtype).eps * prior * (variance + lam) > variance * lam

    def learn(key: jax.Array, belief: Kernel, history: History) -> tuple[Kernel, Info]:
        return belief, Info.nothing()

    return Estimator(init, predict, observe, learn, features.check)


def rbf(bandwidth: Number) -> Similarity:
    """k(x, y) = exp(-‖x - y‖²/(2σ²))."""

    def similarity(x: Any, y: Any) -> jax.Array:
        squared = inner(x, x) + inner(y, y) - 2 * inner(x, y)
        return jnp.exp(-0.5 * squared / jnp.asarray(bandwidth, squared.dtype) ** 2)

    return similarity
