"""NeuralBandit's committee: networks with other steps, one of which decides, chosen by how well it predicted."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Belief, Choice, Context, Info, Policy, Prediction
from neuralucb.rules import epsilon_greedy
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["Committee", "committee", "shares"]


class Committee(NamedTuple):
    """θ_t and θ_0 of every network, the squared errors that each made before it saw the reward, and t."""

    params: Any
    initial: Any
    errors: jax.Array
    rounds: jax.Array


def committee(
    network: Network,
    train_at: Callable[[Number], Train],
    step_sizes: Sequence[Number],
    *,
    epsilon: Number,
    learning_rate: Number,
    start: Literal["initial", "warm"] = "initial",
) -> Policy:
    """Each round a member, drawn by `shares`, chooses ε-greedily; all learn from every reward, each with its own steps.

    A round costs K evaluations of every network; a training trains them side by side under `vmap`.
    Bare: `guard` adds the checks of its input.
    Propensity: exact, Σ_j share_j · that of member j's ε-greedy choice.
    """
    members = len(step_sizes)
    rule = epsilon_greedy(epsilon)

    def init(key: jax.Array) -> Committee:
        initial = jax.vmap(network.init)(random.split(key, members))
        return Committee(initial, initial, jnp.zeros(members, jnp.float32), jnp.int32(0))

    def select(key: jax.Array, belief: Committee, contexts: Context, available: jax.Array) -> Choice:
        key_member, key_choice = random.split(key)
        weights = shares(belief, learning_rate)

        def of(params: Any) -> Choice:
            mean = jax.vmap(network.apply, (None, 0))(params, contexts)
            zero = jnp.zeros_like(mean)
            return rule(key_choice, Prediction(mean, zero, belief.rounds, zero[0]), available)

        each = jax.vmap(of)(belief.params)
        decides = random.categorical(key_member, jnp.log(weights))
        propensity = (weights[:, None] * each.propensity).sum(axis=0)
        return jax.tree.map(lambda leaf: leaf[decides], each)._replace(propensity=propensity)

    def observe(belief: Committee, context: Context, reward: jax.Array) -> Committee:
        predicted = jax.vmap(network.apply, (0, None))(belief.params, context).astype(jnp.float32)
        missed = predicted - reward.astype(jnp.float32)
        return belief._replace(errors=belief.errors + missed**2, rounds=belief.rounds + 1)

    def learn(key: jax.Array, belief: Committee, history: History) -> tuple[Committee, Info]:
        begin = belief.initial if start == "initial" else belief.params

        def one(key_train: jax.Array, step_size: jax.Array, params: Any, initial: Any) -> tuple[Any, Info]:
            return train_at(step_size)(key_train, network.apply_many, params, initial, history)

        sizes = jnp.stack([jnp.asarray(size, jnp.float32) for size in step_sizes])
        params, info = jax.vmap(one)(random.split(key, members), sizes, begin, belief.initial)
        # a member that failed kept its θ, and its errors will tell
        return belief._replace(params=params), Info(info.loss.min(), info.diverged.all())

    def review(belief: Belief, history: History, unit: Number = 1.0) -> Committee:
        """Errors stay, in the new unit: predictions for rewards already seen would prove nothing."""
        return belief._replace(errors=jnp.asarray(unit, jnp.float32) ** 2 * belief.errors)

    return Policy(init, select, observe, learn, review=review)


def shares(belief: Committee, learning_rate: Number) -> jax.Array:
    """[members] how likely each is to decide: exponential weights of its errors, p_j ∝ exp(-η E_j)."""
    excess = belief.errors - belief.errors.min()
    return jax.nn.softmax(-jnp.asarray(learning_rate, jnp.float32) * excess)
