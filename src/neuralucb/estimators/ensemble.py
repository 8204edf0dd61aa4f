"""Several networks side by side, each trained on its view of the data, one of which decides: an ensemble."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Choice, Context, Info, Policy
from neuralucb.rules import best_arm, best_shares
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["Ensemble", "View", "decide", "ensemble", "gaussian_rewards", "pseudo_rewards", "whole"]

View: TypeAlias = Callable[[jax.Array, History], History]
"""a member's key, the history -> the history as the member sees it"""


class Ensemble(NamedTuple):
    """θ_t and θ_0 of every network, and the key from which each has its own, for its view of the data."""

    params: Any
    initial: Any
    samples: jax.Array


def ensemble(
    network: Network, train: Train, *, networks: int, view: View, start: Literal["initial", "warm"] = "initial"
) -> Policy:
    """Each round one network, chosen uniformly, decides greedily; each has its own θ_0 and learns from its view.

    A round costs K evaluations of every network; a training trains all networks side by side under `vmap`.
    Bare: `guard` adds the checks of its input.
    Propensity: exact; see `decide`.
    """

    def init(key: jax.Array) -> Ensemble:
        key_networks, key_samples = random.split(key)
        initial = jax.vmap(network.init)(random.split(key_networks, networks))
        return Ensemble(initial, initial, key_samples)

    def select(key: jax.Array, belief: Ensemble, contexts: Context, available: jax.Array) -> Choice:
        return decide(key, network, belief.params, contexts, available)

    def observe(belief: Ensemble, context: Context, reward: jax.Array) -> Ensemble:
        return belief  # what a network makes of it follows from its row and the network's key

    def learn(key: jax.Array, belief: Ensemble, history: History) -> tuple[Ensemble, Info]:
        begin = belief.initial if start == "initial" else belief.params

        def one(key_train: jax.Array, key_view: jax.Array, params: Any, initial: Any) -> tuple[Any, Info]:
            return train(key_train, network.apply_many, params, initial, view(key_view, history))

        keys = random.split(key, networks), random.split(belief.samples, networks)
        params, info = jax.vmap(one)(*keys, begin, belief.initial)
        return belief._replace(params=params), Info(info.loss.mean(), info.diverged.any())

    return Policy(init, select, observe, learn, review=lambda belief, history, unit=1.0: belief)


def decide(key: jax.Array, network: Network, params: Any, contexts: Context, available: jax.Array) -> Choice:
    """The greedy choice of one of several networks, chosen uniformly; `params` has a leading axis of networks.

    It costs K evaluations of every network. Propensity: exact, the share of networks that would choose the arm, ties
    counted. The choice is made by the very numbers that it is computed from: a network that has not learned yet gives
    every arm 0, but for rounding, which another program of the same network may do otherwise.
    """

    def predict(one: Any) -> jax.Array:
        return jax.vmap(network.apply, (None, 0))(one, contexts)

    key_network, key_tie = random.split(key)
    means = jax.vmap(predict)(params)
    decides = random.randint(key_network, (), 0, means.shape[0], dtype=jnp.int32)
    mean = means[decides]
    zero = jnp.zeros_like(mean)
    propensity = jax.vmap(best_shares, (0, None))(means, available).mean(axis=0)
    return Choice(best_arm(key_tie, mean, available), mean, zero, mean, zero[0], propensity)


def whole(key: jax.Array, history: History) -> History:
    """Every network sees all data: a deep ensemble, whose members differ by θ_0 and minibatches alone."""
    return history


def gaussian_rewards(deviation: Number) -> View:
    """Every reward with noise N(0, ν²), drawn anew for the whole history at every training (Jia et al. 2022)."""

    def view(key: jax.Array, history: History) -> History:
        drawn = random.normal(_fresh(key, history), history.rewards.shape, history.rewards.dtype)
        return history._replace(rewards=history.rewards + jnp.asarray(deviation, drawn.dtype) * drawn)

    return view


def pseudo_rewards(count: int) -> View:
    """Every reward with `count` pseudo-rewards, drawn anew for the whole history at every training.

    A pseudo-reward is one standard deviation of the observed rewards, up or down with equal probability: that of
    Kveton et al. 2020, 0 or 1 for rewards between 0 and 1, less its mean, which moves no choice, in any unit.
    """

    def view(key: jax.Array, history: History) -> History:
        rewards = history.rewards
        seen = jnp.arange(rewards.shape[0], dtype=jnp.int32) < history.seen
        size = jnp.maximum(history.seen, 1).astype(rewards.dtype)
        mean = jnp.where(seen, rewards, 0).sum() / size
        deviation = jnp.sqrt(jnp.where(seen, (rewards - mean) ** 2, 0).sum() / size)
        signs = random.rademacher(_fresh(key, history), (count, rewards.shape[0]), rewards.dtype)
        return history._replace(rewards=rewards + deviation * signs.sum(axis=0))

    return view


def _fresh(key: jax.Array, history: History) -> jax.Array:
    """Another key at every training."""
    return random.fold_in(key, history.rounds)
