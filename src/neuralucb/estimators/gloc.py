"""A generalised linear model by online-to-confidence-set conversion: GLOC's estimator (Jun et al. 2017)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.gradients import dense
from neuralucb.history import History
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["Gloc", "gloc"]


class Gloc(NamedTuple):
    """V_t, the learner's θ_t, Σ z_s x_s, the centre θ̂_t of the confidence set, and t."""

    params: Any
    z: Any
    learner: jax.Array
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array


def gloc(features: Features, design: Design, *, step_size: Number) -> Estimator:
    """Linear predictor xᵀθ̂ and width sqrt(xᵀV⁻¹x) of a confidence set that an online learner's predictions centre.

        z_s = x_sᵀθ_s, predicted before the reward came,   V_t = λI + Σ x_s x_sᵀ,   θ̂_t = V_t⁻¹ Σ z_s x_s
        θ_{s+1} = θ_s - step V_s⁻¹ (μ(z_s) - r_s) x_s,   μ the sigmoid: an online Newton step

    A round costs what the design costs.
    """

    def init(key: jax.Array) -> Gloc:
        z = design.init()
        zero = design.solve(z, jnp.zeros(features.size, dtype=jnp.float32))
        return Gloc(features.init(key), z, zero, zero, zero, jnp.int32(0))

    def predict(belief: Gloc, context: Context) -> Prediction:
        phi = features.apply(belief.params, context)
        mean = dense(phi).astype(belief.coefficients.dtype) @ belief.coefficients
        return Prediction(mean, design.width(belief.z, phi).astype(mean.dtype), belief.rounds, design.log_det(belief.z))

    def observe(belief: Gloc, context: Context, reward: jax.Array) -> Gloc:
        phi = features.apply(belief.params, context)
        x = dense(phi).astype(belief.learner.dtype)
        predicted = x @ belief.learner
        z = design.add(belief.z, phi)
        slope = (jax.nn.sigmoid(predicted) - reward.astype(x.dtype)) * x
        learner = belief.learner - jnp.asarray(step_size, x.dtype) * design.solve(z, slope)
        b = belief.b + predicted * x
        return Gloc(belief.params, z, learner, b, design.solve(z, b), belief.rounds + 1)

    def learn(key: jax.Array, belief: Gloc, history: History) -> tuple[Gloc, Info]:
        return belief, Info.nothing()

    return Estimator(init, predict, observe, learn, features.check)
