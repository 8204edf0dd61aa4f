"""Ridge regression on features of a context: LinUCB's estimator, and NeuralUCB_0's on tangent features."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design, dense
from neuralucb.history import History
from neuralucb.policy import Belief, Context, Estimator, Info, Prediction

__all__ = ["Ridge", "ridge"]


class Ridge(NamedTuple):
    """Z_t, b_t = Σ rφ, the coefficients Z_t⁻¹ b_t, and t."""

    z: Any
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array


def ridge(
    size: int, design: Design, *, features: Callable[[Context], Any], check: Callable[[Context], None]
) -> Estimator:
    """Mean ⟨φ(x), Z⁻¹b⟩ and width sqrt(φᵀZ⁻¹φ), φ = features(x) of `size` numbers; what the design costs, a round."""

    def init(key: jax.Array) -> Ridge:
        z = design.init()
        zero = design.solve(z, jnp.zeros(size, dtype=jnp.float32))
        return Ridge(z, zero, zero, jnp.int32(0))

    def predict(belief: Ridge, context: Context) -> Prediction:
        phi = features(context)
        mean = dense(phi).astype(belief.coefficients.dtype) @ belief.coefficients
        return Prediction(mean, design.width(belief.z, phi).astype(mean.dtype), belief.rounds, design.log_det(belief.z))

    def observe(belief: Ridge, context: Context, reward: jax.Array) -> Ridge:
        phi = features(context)
        z = design.add(belief.z, phi)
        b = belief.b + reward.astype(belief.b.dtype) * dense(phi).astype(belief.b.dtype)
        return Ridge(z, b, design.solve(z, b), belief.rounds + 1)

    def learn(key: jax.Array, belief: Belief, history: History) -> tuple[Belief, Info]:
        return belief, Info(jnp.full((), jnp.nan, dtype=jnp.float32), jnp.zeros((), dtype=bool))

    return Estimator(init, predict, observe, learn, check)
