"""BootstrappedNN: networks trained side by side on samples of the data, one of which decides (Riquelme et al. 2018)."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.estimators.ensemble import ensemble
from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Policy
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["bootstrap"]


def bootstrap(
    network: Network,
    train: Train,
    *,
    networks: int,
    inclusion: Number,
    start: Literal["initial", "warm"] = "initial",
) -> Policy:
    """Each round one network, chosen uniformly, decides greedily; each learns from a share `inclusion` of the data.

    An `ensemble` whose members see samples; its costs and propensities are the ensemble's.
    """
    return ensemble(
        network, train, networks=networks, view=lambda key, history: _sample(key, history, inclusion), start=start
    )


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
