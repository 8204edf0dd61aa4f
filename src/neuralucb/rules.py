"""Rules: from a prediction to a choice, and the probability of each arm. Ties are broken at random, never by index."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import random
from jax.scipy.stats import norm

from neuralucb.confidence import Confidence
from neuralucb.policy import Belief, Choice, Context, Policy, Prediction, Rule
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import Number, exact

__all__ = [
    "best_arm",
    "best_shares",
    "deterministic",
    "draw_arm",
    "epsilon_greedy",
    "floor",
    "linked",
    "square_cb",
    "thompson",
    "ucb",
    "uniform_shares",
]

REACH, NODES = 8.0, 257
"""Thompson's propensities are integrals over ±8 standard deviations, by the trapezoidal rule with a step of 1/16."""

NARROWEST = 1e-12
"""A width of 0 counts as this share of the largest width or gap between means, so that no integrand divides by 0."""


def ucb(confidence: Confidence) -> Rule:
    """Optimism: a = argmax U_a, U_a = mean_a + γ · width_a (Zhou et al. 2020, Algorithm 1).

    Propensity: 1 for the best arm, 1/n for each of n that tie exactly, since ties are broken uniformly. Usually there
    are none, and the choice is deterministic; `floor` makes it possible to learn from such a log.
    """

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        gamma = confidence(prediction.rounds, prediction.log_det).astype(prediction.mean.dtype)
        # Algorithm 1, line 7; for NeuralUCB_0 the closed form of Algorithm 3, line 5
        score = prediction.mean + gamma * prediction.width
        arm = best_arm(key, score, available)  # Algorithm 1, line 8
        shares = best_shares(score, available)
        return Choice(arm, prediction.mean, prediction.width, score, gamma, shares)

    return choose


def epsilon_greedy(epsilon: Number) -> Rule:
    """With probability ε any available arm, uniformly; otherwise the one with the highest mean.

    Propensity: ε/n + (1 - ε)/ties for the best of n available arms, ε/n for the others.
    """

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        key_explore, key_arm, key_tie = random.split(key, 3)
        share = jnp.asarray(epsilon, jnp.float32)
        explore = random.uniform(key_explore, dtype=jnp.float32) < share
        any_arm = best_arm(key_arm, jnp.zeros_like(prediction.mean), available)
        arm = jnp.where(explore, any_arm, best_arm(key_tie, prediction.mean, available))
        propensity = share * uniform_shares(available) + (1 - share) * best_shares(prediction.mean, available)
        return Choice(arm, prediction.mean, prediction.width, prediction.mean, _zero_scale(prediction), propensity)

    return choose


def square_cb(learning_rate: Number) -> Rule:
    """Inverse gap weighting (Foster & Rakhlin 2020, Algorithm 1), the more exploitation the larger γ.

        p_a = 1/(K + γ (mean_b - mean_a)) for every arm but the best one b, which has the rest

    K counts the available arms. Where several tie for the best, one is taken at random as b, so that their
    probabilities are equal. Arms whose mean is not finite have probability 0, unless none is finite: then the choice is
    uniform.
    """

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        best = best_shares(prediction.mean, available)
        usable = available & jnp.isfinite(prediction.mean)
        mean = jnp.where(usable, prediction.mean, -jnp.inf).astype(jnp.float32)
        gap = jnp.where(usable, mean.max() - mean, jnp.inf)
        count = available.sum(dtype=jnp.int32).astype(jnp.float32)
        others = jnp.where(best > 0, 0.0, 1 / (count + jnp.asarray(learning_rate, jnp.float32) * gap))
        propensity = others + best * (1 - others.sum())
        arm = draw_arm(key, propensity)
        return Choice(arm, prediction.mean, prediction.width, prediction.mean, _zero_scale(prediction), propensity)

    return choose


def thompson(confidence: Confidence) -> Rule:
    """The best of one sample N(mean_a, (γ width_a)²) for each arm, independently (Zhang et al. 2021, NeuralTS).

    Propensity: P(a best) = ∫ φ(z) Π_{b≠a} Φ((mean_a + γ width_a z - mean_b)/(γ width_b)) dz, by the trapezoidal rule.
    Its error is below 1e-5 where no width is more than 16 times another. Where they differ more, the integrand
    may jump between two nodes, and the error is at most half a step times the density, 0.0125.
    """

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        gamma = confidence(prediction.rounds, prediction.log_det).astype(prediction.mean.dtype)
        key_sample, key_tie = random.split(key)
        spread = gamma * prediction.width
        deviation = spread * random.normal(key_sample, spread.shape, spread.dtype)
        # only gaps decide, and are not rounded as large means would be
        gap = _gaps(prediction.mean, available)
        arm, score = best_arm(key_tie, gap + deviation, available), prediction.mean + deviation
        propensity = _probability_of_best(gap, spread, available)
        return Choice(arm, prediction.mean, prediction.width, score, gamma, propensity)

    return choose


def linked(rule: Rule, link: Callable[[jax.Array], jax.Array]) -> Rule:
    """The rule over linear predictors xᵀθ; the mean that its choice shows is the link's, an expected reward."""

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        choice = rule(key, prediction, available)
        return choice._replace(mean=link(choice.mean))

    return choose


def best_arm(key: jax.Array, score: jax.Array, available: jax.Array) -> jax.Array:
    """An available arm with the highest score, uniformly among ties.

    A score that is NaN or infinite ranks below every finite one. If no available arm has a finite score the choice is
    uniform: a diverged network then plays at random, and the run is marked, instead of playing arm 0 forever.
    """
    lottery = random.uniform(key, score.shape, dtype=jnp.float32)
    return jnp.where(_tied(score, available), lottery, -1.0).argmax().astype(jnp.int32)


def best_shares(score: jax.Array, available: jax.Array) -> jax.Array:
    """[K] how likely `best_arm` is to choose each arm: 1/n for each of n that tie for the best."""
    return uniform_shares(_tied(score, available))


def uniform_shares(among: jax.Array) -> jax.Array:
    """[K] 1/n for each of the n arms marked."""
    return among.astype(jnp.float32) / among.sum(dtype=jnp.int32).astype(jnp.float32)


def draw_arm(key: jax.Array, propensity: jax.Array) -> jax.Array:
    """An arm with these probabilities; one of probability 0 is never drawn."""
    return random.categorical(key, jnp.log(propensity)).astype(jnp.int32)


def floor(policy: Policy, probability: Number) -> Policy:
    """The policy, except that with this probability it takes any available arm, uniformly.

        p_a = (1 - f) · the policy's propensity + f/n,   n the number of available arms

    Exact where the policy's propensity is. A log of UCB with a floor of 0.02 can be learned from and evaluated;
    one without cannot. Mean, width and score stay the policy's.
    """
    if not isinstance(probability, jax.Array) and not 0 <= probability <= 1:
        raise InputError(f"probability must be from 0 to 1, got {probability}; 0.02 explores one decision in fifty.")

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
    """Which decisions were deterministic: a propensity of 1, or NaN for none, although there were several `arms`.

    Args:
        propensity: The probability of the chosen arm, one per decision.
        arms: How many arms were available, one per decision.

    Returns:
        One boolean per decision.

    Nothing can be estimated from such a decision about another arm, so logs keep "none" in place of its propensity.
    """
    return ~(propensity < 1) & (arms > 1)


def _tied(score: jax.Array, available: jax.Array) -> jax.Array:
    usable = jnp.where(available & jnp.isfinite(score), score, -jnp.inf)
    return available & (usable == usable.max())


def _zero_scale(prediction: Prediction) -> jax.Array:
    return jnp.zeros((), dtype=prediction.mean.dtype)


def _gaps(mean: jax.Array, available: jax.Array) -> jax.Array:
    """[K] each mean less the highest: 0 for the best arm. Not finite where the mean is not."""
    return mean - jnp.where(available & jnp.isfinite(mean), mean, -jnp.inf).max()


def _probability_of_best(gap: jax.Array, spread: jax.Array, available: jax.Array) -> jax.Array:
    """[K] the probability that each arm's sample is the largest."""
    usable = available & jnp.isfinite(gap) & jnp.isfinite(spread)
    gap, spread = (jnp.where(usable, values, 0).astype(jnp.float32) for values in (gap, jnp.abs(spread)))
    largest = jnp.maximum(spread.max(), jnp.abs(gap).max())
    spread = jnp.where(largest > 0, jnp.maximum(spread, NARROWEST * largest), 1.0)
    z = jnp.linspace(-REACH, REACH, NODES, dtype=jnp.float32)

    arms = jnp.arange(len(gap), dtype=jnp.int32)

    def others_below(total: jax.Array, other: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        index, centre, scale, counts = other
        # differences first: a narrow arm's samples far from 0 would all be one number
        below = norm.logcdf(((gap - centre) / scale)[:, None] + (spread / scale)[:, None] * z[None, :])
        itself = arms == index
        return total + jnp.where(counts & ~itself[:, None], below, 0.0), None

    nothing = jnp.zeros((len(gap), NODES), jnp.float32)
    log_below, _ = jax.lax.scan(others_below, nothing, (arms, gap, spread, usable))
    mass = jnp.where(usable, (norm.pdf(z)[None, :] * jnp.exp(log_below)).sum(axis=1), 0.0)
    return jnp.where(
        usable.any(), mass / jnp.maximum(mass.sum(), jnp.finfo(jnp.float32).tiny), uniform_shares(available)
    )
