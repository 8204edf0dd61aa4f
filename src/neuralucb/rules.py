"""Rules: from a prediction to a choice. Ties are broken at random, never by index."""

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.confidence import Confidence
from neuralucb.policy import Choice, Prediction, Rule
from neuralucb.precision import Number

__all__ = ["best_arm", "epsilon_greedy", "ucb"]


def ucb(confidence: Confidence) -> Rule:
    """Optimism: a = argmax U_a, U_a = mean_a + γ · width_a (Zhou et al. 2020, Algorithm 1, lines 7 and 8)."""

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        gamma = confidence(prediction.rounds, prediction.log_det).astype(prediction.mean.dtype)
        score = prediction.mean + gamma * prediction.width
        return Choice(best_arm(key, score, available), prediction.mean, prediction.width, score, gamma)

    return choose


def epsilon_greedy(epsilon: Number) -> Rule:
    """With probability ε any available arm, uniformly; otherwise the one with the highest mean."""

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        key_explore, key_arm, key_tie = random.split(key, 3)
        explore = random.uniform(key_explore, dtype=jnp.float32) < jnp.asarray(epsilon, jnp.float32)
        anything = best_arm(key_arm, jnp.zeros_like(prediction.mean), available)
        arm = jnp.where(explore, anything, best_arm(key_tie, prediction.mean, available))
        return Choice(
            arm, prediction.mean, prediction.width, prediction.mean, jnp.zeros((), dtype=prediction.mean.dtype)
        )

    return choose


def best_arm(key: jax.Array, score: jax.Array, available: jax.Array) -> jax.Array:
    """An available arm with the highest score, uniformly among ties.

    A score that is NaN or infinite ranks below every finite one. If no available arm has a finite score the choice is
    uniform: a diverged network then looks like chance, and the run is marked, instead of playing arm 0 for ever.
    """
    sane = jnp.where(available & jnp.isfinite(score), score, -jnp.inf)
    tied = available & (sane == sane.max())
    lottery = random.uniform(key, score.shape, dtype=jnp.float32)
    return jnp.where(tied, lottery, -1.0).argmax().astype(jnp.int32)
