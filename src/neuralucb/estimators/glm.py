"""A generalised linear model with a sigmoid link, learned by online Newton steps: GLM-UCB's estimator."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.gradients import dense
from neuralucb.history import History
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["Glm", "glm"]


class Glm(NamedTuple):
    """V_t, θ_t and t."""

    params: Any
    z: Any
    coefficients: jax.Array
    rounds: jax.Array


def glm(features: Features, design: Design, *, step_size: Number) -> Estimator:
    """Mean μ(xᵀθ), μ the sigmoid, and width sqrt(xᵀV⁻¹x). A round costs what the design costs.

    V_t = V_{t-1} + xxᵀ,   θ_t = θ_{t-1} - step V_t⁻¹ (μ(xᵀθ_{t-1}) - r) x      (Jun et al. 2017, Zhang et al. 2016)
    """

    def init(key: jax.Array) -> Glm:
        z = design.init()
        zero = design.solve(z, jnp.zeros(features.size, dtype=jnp.float32))
        return Glm(features.init(key), z, zero, jnp.int32(0))

    def predict(belief: Glm, context: Context) -> Prediction:
        phi = features.apply(belief.params, context)
        mean = jax.nn.sigmoid(_along(belief, phi))
        return Prediction(mean, design.width(belief.z, phi).astype(mean.dtype), belief.rounds, design.log_det(belief.z))

    def observe(belief: Glm, context: Context, reward: jax.Array) -> Glm:
        phi = features.apply(belief.params, context)
        z = design.add(belief.z, phi)
        dtype = belief.coefficients.dtype
        slope = (jax.nn.sigmoid(_along(belief, phi)) - reward.astype(dtype)) * dense(phi).astype(dtype)
        step = jnp.asarray(step_size, dtype) * design.solve(z, slope)
        return Glm(belief.params, z, belief.coefficients - step, belief.rounds + 1)

    def learn(key: jax.Array, belief: Glm, history: History) -> tuple[Glm, Info]:
        return belief, Info.nothing()

    return Estimator(init, predict, observe, learn, features.check)


def _along(belief: Glm, phi: Any) -> jax.Array:
    return dense(phi).astype(belief.coefficients.dtype) @ belief.coefficients
