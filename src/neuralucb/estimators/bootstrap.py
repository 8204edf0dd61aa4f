"""BootstrappedNN: networks trained side by side on samples of the data, one of which decides (Riquelme et al. 2018)."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Choice, Context, Info, Policy
from neuralucb.rules import best_arm, best_shares
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["Bootstrap", "bootstrap"]


class Bootstrap(NamedTuple):
    """θ_t and θ_0 of every network, and the key that says which observation belongs to which network."""

    params: Any
    initial: Any
    samples: jax.Array


def bootstrap(
    network: Network,
    train: Train,
    *,
    networks: int,
    inclusion: Number,
    start: Literal["initial", "warm"] = "initial",
) -> Policy:
    """Each round one network, chosen uniformly, decides greedily; each learns from a share `inclusion` of the data.

    A round costs K evaluations of one network; a training trains all networks side by side under `vmap`.
    Bare: `guard` adds the checks of its input.
    Propensity: exact, the share of networks that would choose the arm, ties counted. It costs K evaluations of every
    network, unless a compiled caller, such as a simulation, does not use it.
    """

    def init(key: jax.Array) -> Bootstrap:
        key_networks, key_samples = random.split(key)
        initial = jax.vmap(network.init)(random.split(key_networks, networks))
        return Bootstrap(initial, initial, key_samples)

    def select(key: jax.Array, belief: Bootstrap, contexts: Context, available: jax.Array) -> Choice:
        key_network, key_tie = random.split(key)
        decides = random.randint(key_network, (), 0, networks, dtype=jnp.int32)
        params = jax.tree.map(lambda leaf: leaf[decides], belief.params)
        mean = jax.vmap(network.apply, (None, 0))(params, contexts)
        zero = jnp.zeros_like(mean)
        propensity = jax.vmap(greedy, (0, None, None))(belief.params, contexts, available).mean(axis=0)
        return Choice(best_arm(key_tie, mean, available), mean, zero, mean, zero[0], propensity)

    def greedy(params: Any, contexts: Context, available: jax.Array) -> jax.Array:
        return best_shares(jax.vmap(network.apply, (None, 0))(params, contexts), available)

    def observe(belief: Bootstrap, context: Context, reward: jax.Array) -> Bootstrap:
        return belief  # which networks learn from it follows from its row and the key of the samples

    def learn(key: jax.Array, belief: Bootstrap, history: History) -> tuple[Bootstrap, Info]:
        begin = belief.initial if start == "initial" else belief.params

        def one(key_train: jax.Array, key_sample: jax.Array, params: Any, initial: Any) -> tuple[Any, Info]:
            return train(key_train, network.apply_many, params, initial, _sample(key_sample, history, inclusion))

        keys = random.split(key, networks), random.split(belief.samples, networks)
        params, info = jax.vmap(one)(*keys, begin, belief.initial)
        return belief._replace(params=params), Info(info.loss.mean(), info.diverged.any())

    return Policy(init, select, observe, learn, review=lambda belief, history, unit=1.0: belief)


def _sample(key: jax.Array, history: History, inclusion: Number) -> History:
    """The rows of this network, moved to the front. Whether a row is one depends on the key and its number alone."""
    capacity = history.rewards.shape[0]
    rows = jnp.arange(capacity, dtype=jnp.int32)
    included = random.uniform(key, (capacity,), dtype=jnp.float32) < jnp.asarray(inclusion, jnp.float32)
    included &= rows < history.seen
    place = jnp.where(included, jnp.cumsum(included.astype(jnp.int32)) - 1, capacity)
    order = jnp.zeros(capacity, jnp.int32).at[place].set(rows, mode="drop")
    contexts, rewards = jax.tree.map(lambda leaf: leaf[order], (history.contexts, history.rewards))
    return History(contexts, rewards, included.sum(dtype=jnp.int32), history.rounds)
