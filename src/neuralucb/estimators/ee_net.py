"""EE-Net: a network for the reward, and one that predicts from its gradient what it misses (Ban et al. 2022)."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.gradients import dense
from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Belief, Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["EENet", "ee_net", "pool"]


class EENet(NamedTuple):
    """Both networks at t and at 0, and what the second learns from: pooled gradients, and what the first missed."""

    params: Any
    initial: Any
    explorer: Any
    explorer_initial: Any
    gradients: jax.Array
    """[memory, features] of the contexts played, at the θ by which they were chosen"""
    missed: jax.Array
    """[memory] r - f_1(x; θ) at that θ"""
    stored: jax.Array
    """how many were ever stored; the oldest are overwritten"""
    rounds: jax.Array


def ee_net(
    network: Network,
    explorer: Network,
    train: Train,
    *,
    size: int,
    memory: int,
    start: Literal["initial", "warm"] = "initial",
) -> Estimator:
    """Mean f_1(x; θ_1), and as its width f_2(φ(x); θ_2), which may be negative, φ the pooled gradient of f_1.

        φ(x) = pool(∇f_1(x; θ_1)),   f_2 learns r - f_1(x; θ_1), as it was when x was played

    With the rule `ucb` and γ = 1 the score is f_1 + f_2, the text's linear decision maker.

    Args:
        network: f_1.
        explorer: f_2, for `size` numbers.
        train: TrainNN, for both.
        size: Numbers to which a gradient is pooled.
        memory: The last rounds that f_2 learns from.
        start: Where both trainings begin.

    Returns:
        The estimator. A round costs K gradients and evaluations of f_2; a training trains two networks.
    """

    def init(key: jax.Array) -> EENet:
        key_network, key_explorer = random.split(key)
        initial, curious = network.init(key_network), explorer.init(key_explorer)
        kind = jax.tree.leaves(curious)[0].dtype
        room = jnp.zeros((memory, size), kind), jnp.zeros(memory, kind)
        return EENet(initial, initial, curious, curious, *room, jnp.int32(0), jnp.int32(0))

    def predict(belief: EENet, context: Context) -> Prediction:
        mean, gradient = network.tangent(belief.params, context)
        extra = explorer.apply(belief.explorer, pool(gradient, size))
        return Prediction(mean, extra.astype(mean.dtype), belief.rounds, jnp.zeros((), mean.dtype))

    def observe(belief: EENet, context: Context, reward: jax.Array) -> EENet:
        mean, gradient = network.tangent(belief.params, context)
        kind, row = belief.missed.dtype, belief.stored % memory
        return belief._replace(
            gradients=belief.gradients.at[row].set(pool(gradient, size).astype(kind)),
            missed=belief.missed.at[row].set(reward.astype(kind) - mean.astype(kind)),
            stored=belief.stored + 1,
            rounds=belief.rounds + 1,
        )

    def learn(key: jax.Array, belief: EENet, history: History) -> tuple[EENet, Info]:
        key_network, key_explorer = random.split(key)
        kept = History(belief.gradients, belief.missed, jnp.minimum(belief.stored, memory), history.rounds)
        begin, curious = (
            (belief.initial, belief.explorer_initial) if start == "initial" else (belief.params, belief.explorer)
        )
        params, info = train(key_network, network.apply_many, begin, belief.initial, history)
        curious, of_explorer = train(key_explorer, explorer.apply_many, curious, belief.explorer_initial, kept)
        return belief._replace(params=params, explorer=curious), info._replace(
            diverged=info.diverged | of_explorer.diverged
        )

    def review(belief: Belief, history: History, unit: Number = 1.0) -> EENet:
        """What was missed stays, in the new unit; where the old one was far off, it is forgotten, and f_2 with it.

        A lesson that changes units has trained f_2 in the old ones: before the first they are those of the caller.
        """
        size_of_unit = jnp.asarray(unit, belief.missed.dtype)
        explorer = jax.tree.map(
            lambda now, start: jnp.where(size_of_unit > 0, now, start), belief.explorer, belief.explorer_initial
        )
        return belief._replace(
            explorer=explorer,
            missed=size_of_unit * belief.missed,
            stored=jnp.where(size_of_unit > 0, belief.stored, 0),
        )

    return Estimator(init, predict, observe, learn, network.check, review)


def pool(gradient: Any, size: int) -> jax.Array:
    """[size] means over stretches of equal length of the gradient as one vector, divided by their norm."""
    flat = dense(gradient)
    length = -(-flat.shape[0] // size)
    means = jnp.pad(flat, (0, length * size - flat.shape[0])).reshape(size, length).mean(axis=1)
    norm = jnp.sqrt((means**2).sum())
    return means / jnp.where(norm > 0, norm, 1)
