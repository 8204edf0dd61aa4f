"""Ridge regression on features of a context: LinUCB's estimator, and NeuralUCB_0's on tangent features."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.gradients import Block, dense, map_layers
from neuralucb.history import History, observe_again
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["Ridge", "ridge"]

MEMORIES = 10
"""So many times its memory a regression that forgets reviews: older rows would weigh less than e⁻¹⁰."""


class Ridge(NamedTuple):
    """The features' parameters, Z_t, b_t = Σ rφ, the coefficients Z_t⁻¹ b_t, and t."""

    params: Any
    z: Any
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array


def ridge(features: Features, design: Design, *, memory: int = 0) -> Estimator:
    """Mean ⟨φ(x), Z⁻¹b⟩ and width sqrt(φᵀZ⁻¹φ). A round costs what the design costs.

    Args:
        features: φ.
        design: Z over them.
        memory: About how many observations count, the last ones, as in a design of `forgetting`; 0: all.
    """

    def init(key: jax.Array) -> Ridge:
        return begin(features.init(key))

    def begin(params: Any) -> Ridge:
        z = design.init()  # Algorithm 3, line 3
        zero = design.solve(z, jnp.zeros(features.size, dtype=jnp.float32))
        return Ridge(params, z, zero, zero, jnp.int32(0))

    def predict(belief: Ridge, context: Context) -> Prediction:
        phi = features.apply(belief.params, context)
        mean = dense(phi).astype(belief.coefficients.dtype) @ belief.coefficients
        width = design.width(belief.z, phi).astype(mean.dtype)
        return Prediction(mean, width, belief.rounds, design.log_det(belief.z))

    def observe(belief: Ridge, context: Context, reward: jax.Array) -> Ridge:
        return solve(add(belief, context, reward))

    def add(belief: Ridge, context: Context, reward: jax.Array) -> Ridge:
        phi = features.apply(belief.params, context)
        z = design.add(belief.z, phi)  # Algorithm 3, line 7
        b = fade(belief.b, phi) + reward.astype(belief.b.dtype) * dense(phi).astype(belief.b.dtype)
        return belief._replace(z=z, b=b, rounds=belief.rounds + 1)

    def fade(b: jax.Array, phi: Any) -> jax.Array:
        """b as its design forgets: where arms have models of their own, that of the arm played."""
        if not memory:
            return b
        ours = dense(map_layers(_ones, phi)).astype(b.dtype)
        return b - ours * b / memory

    def solve(belief: Ridge) -> Ridge:
        return belief._replace(coefficients=design.solve(belief.z, belief.b))  # Algorithm 3, line 8

    def learn(key: jax.Array, belief: Ridge, history: History) -> tuple[Ridge, Info]:
        return belief, Info.nothing()

    def review(belief: Ridge, history: History, unit: Number = 1.0) -> Ridge:
        last = MEMORIES * memory or None
        return solve(observe_again(history, add, begin(belief.params), last=last))._replace(rounds=history.rounds)

    return Estimator(init, predict, observe, learn, features.check, review)


def _ones(layer: Any) -> Any:
    return replace(layer, part=jnp.ones_like(layer.part)) if isinstance(layer, Block) else jnp.ones_like(layer)
