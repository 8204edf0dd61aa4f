"""What makes a log worth keeping: a floor of exploration under any policy, and a word for decisions without chance."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.policy import Belief, Choice, Context, Policy
from neuralucb.precision import Number, exact
from neuralucb.rules import draw_arm, uniform_shares

__all__ = ["deterministic", "floor"]


def floor(policy: Policy, probability: Number) -> Policy:
    """The policy, that with this probability takes any available arm instead, uniformly.

        p_a = (1 - f) · its own propensity + f/n,   n the number of available arms

    Exact where the policy's own propensity is. A log of UCB with a floor of 0.02 can be learned from and evaluated;
    one without cannot. Mean, width and score stay the policy's own.
    """
    if not isinstance(probability, jax.Array) and not 0 <= probability <= 1:
        raise ValueError(f"probability must be from 0 to 1, got {probability}; 0.02 explores one decision in fifty.")

    @exact
    @jax.jit
    def mix(key: jax.Array, choice: Choice, available: jax.Array) -> Choice:
        key_explore, key_arm = random.split(key)
        share, uniform = jnp.asarray(probability, jnp.float32), uniform_shares(available)
        explore = random.uniform(key_explore, dtype=jnp.float32) < share
        arm = jnp.where(explore, draw_arm(key_arm, uniform), choice.arm)
        return choice._replace(arm=arm, propensity=share * uniform + (1 - share) * choice.propensity)

    def select(key: jax.Array, belief: Belief, contexts: Context, available: jax.Array | None = None) -> Choice:
        key_choice, key_floor = random.split(key)
        choice = policy.select(key_choice, belief, contexts, available)
        everything = jnp.ones(choice.propensity.shape, dtype=bool)
        return mix(key_floor, choice, everything if available is None else jnp.asarray(available))

    return policy._replace(select=select, origin=None)


def deterministic(propensity: Any, arms: Any) -> Any:
    """Which decisions had no chance in them: a propensity of 1, or NaN for none, although there were several `arms`.

    propensity, arms  arrays of one shape, a decision each: of the chosen arm, and how many there were to choose from.
    Nothing can be estimated from such a decision about another arm, so logs keep "none" in place of its propensity.
    """
    return ~(propensity < 1) & (arms > 1)
