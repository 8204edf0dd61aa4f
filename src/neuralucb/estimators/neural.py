"""A trained network with the design matrix of its gradients: NeuralUCB's estimator (Zhou et al. 2020, Algorithm 1)."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.history import History, observe_again
from neuralucb.networks.network import Network
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["STARTS", "Neural", "neural"]

STARTS = ("initial", "warm")


class Neural(NamedTuple):
    """θ_t, θ_0, Z_t and t."""

    params: Any
    initial: Any
    z: Any
    rounds: jax.Array


def neural(
    network: Network, design: Design, train: Train, *, start: Literal["initial", "warm"] = "initial"
) -> Estimator:
    """Mean f(x; θ), width sqrt(gᵀZ⁻¹g/m), both at the θ of the last training; past gradients are never recomputed.

    Args:
        network: f(x; θ) and its gradient.
        design: Z over its parameters.
        train: TrainNN.
        start: Where TrainNN begins: `initial` at θ_0 as in the paper, `warm` at the last θ.
    """

    def init(key: jax.Array) -> Neural:
        initial = network.init(key)  # Algorithm 1, line 2
        return Neural(initial, initial, design.init(), jnp.int32(0))  # Algorithm 1, line 3

    def predict(belief: Neural, context: Context) -> Prediction:
        mean, gradient = network.tangent(belief.params, context)
        width = design.width(belief.z, gradient)  # both for U of Algorithm 1, line 7, which `rules.ucb` adds up
        return Prediction(mean, width.astype(mean.dtype), belief.rounds, design.log_det(belief.z))

    def observe(belief: Neural, context: Context, reward: jax.Array) -> Neural:
        _, gradient = network.tangent(belief.params, context)  # at θ_{t-1}: TrainNN comes after
        z = design.add(belief.z, gradient)  # Algorithm 1, line 11
        return belief._replace(z=z, rounds=belief.rounds + 1)

    def learn(key: jax.Array, belief: Neural, history: History) -> tuple[Neural, Info]:
        begin = belief.initial if start == "initial" else belief.params
        params, info = train(key, network.apply_many, begin, belief.initial, history)  # Algorithm 1, line 12
        return belief._replace(params=params), info

    def review(belief: Neural, history: History, unit: Number = 1.0) -> Neural:
        start = belief._replace(z=design.init(), rounds=jnp.int32(0))
        return observe_again(history, observe, start)._replace(rounds=history.rounds)

    return Estimator(init, predict, observe, learn, network.check, review)
