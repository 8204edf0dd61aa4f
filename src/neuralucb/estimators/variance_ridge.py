"""Ridge regression that weighs a reward by how much it can vary: for Neural-σ²-LinUCB (Bui et al. 2025)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.estimators.ridge import Ridge, ridge
from neuralucb.gradients import dense, scale
from neuralucb.history import History, observe_again
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["VarianceRidge", "variance_ridge"]


class VarianceRidge(NamedTuple):
    """A ridge regression, and the lowest and the highest reward so far."""

    params: Any
    z: Any
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array
    low: jax.Array
    high: jax.Array


def variance_ridge(features: Features, design: Design, *, least_variance: Number) -> Estimator:
    """Mean φᵀZ⁻¹b and width sqrt(φᵀZ⁻¹φ), with Z = λI + Σ φφᵀ/σ_t² and b = Σ rφ/σ_t² (Bui et al. 2025).

        σ_t² = (high - μ_t)(μ_t - low),   μ_t = φᵀZ⁻¹b before the reward was seen

    bounds the variance of a reward between low and high whose mean is μ_t. They are the extremes of the rewards
    observed, those of this round included; σ_t² is at least `least_variance` times their distance squared.
    """
    linear = ridge(features, design)

    def init(key: jax.Array) -> VarianceRidge:
        return begin(linear.init(key))

    def begin(start: Ridge) -> VarianceRidge:
        return VarianceRidge(
            *start, low=jnp.full((), jnp.inf, start.b.dtype), high=jnp.full((), -jnp.inf, start.b.dtype)
        )

    def predict(belief: VarianceRidge, context: Context) -> Prediction:
        return linear.predict(_plain(belief), context)

    def observe(belief: VarianceRidge, context: Context, reward: jax.Array) -> VarianceRidge:
        kind = belief.b.dtype
        r, phi = reward.astype(kind), features.apply(belief.params, context)
        low, high = jnp.minimum(belief.low, r), jnp.maximum(belief.high, r)
        mean = jnp.clip(dense(phi).astype(kind) @ belief.coefficients, low, high)
        least = jnp.asarray(least_variance, kind) * (high - low) ** 2
        variance = jnp.maximum((high - mean) * (mean - low), least)
        variance = jnp.where(high > low, variance, 1)  # one value so far: no scale by which to weigh it
        weighted = scale(phi, 1 / jnp.sqrt(variance))
        z, b = design.add(belief.z, weighted), belief.b + r / variance * dense(phi).astype(kind)
        return VarianceRidge(belief.params, z, b, design.solve(z, b), belief.rounds + 1, low, high)

    def learn(key: jax.Array, belief: VarianceRidge, history: History) -> tuple[VarianceRidge, Info]:
        return belief, Info.nothing()

    def review(belief: VarianceRidge, history: History, unit: Number = 1.0) -> VarianceRidge:
        nothing = jnp.zeros_like(belief.b)
        start = begin(Ridge(belief.params, design.init(), nothing, nothing, jnp.int32(0)))
        return observe_again(history, observe, start)._replace(rounds=history.rounds)

    return Estimator(init, predict, observe, learn, features.check, review)


def _plain(belief: VarianceRidge) -> Ridge:
    return Ridge(*belief[:5])
