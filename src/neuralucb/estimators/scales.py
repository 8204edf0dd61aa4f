"""Units, learned from what was seen: of every input middle and spread, of rewards mean, deviation and bounds."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.history import spread_rows

__all__ = ["Inputs", "Rewards", "learn_inputs", "learn_rewards", "no_inputs", "no_rewards", "scale", "scale_reward"]

SAMPLE = 512
"""Rows by which the units of inputs are estimated, spread evenly over the history."""

ONE_DEVIATION = 0.683
"""The share of a normal distribution within one standard deviation."""

UNIT = 0.3
"""What one deviation of an input becomes. Networks that begin with small inputs overfit less to the first rewards."""

REACH, FARTHEST = 3.0, 10.0
"""Deviations up to which inputs are kept, and the most they can be; between them only their logarithm grows."""

TAIL, CLIP, AT_FIRST = 0.9, 3.0, 2.0
"""Rewards count up to CLIP times the deviation from the median that a share TAIL of them does not exceed; of the first
only AT_FIRST times, and more and more until there are ENOUGH: among few rewards one that is extreme moves much."""

ENOUGH = 200.0
"""Rewards from which CLIP holds."""


class Inputs(NamedTuple):
    """Of each input, where its middle is and how far from it a typical value."""

    middle: jax.Array
    spread: jax.Array
    """0 for an input that has not varied"""
    known: jax.Array
    """whether anything was seen; before that all inputs are 0"""


class Rewards(NamedTuple):
    """Mean and standard deviation of the rewards, those beyond the bounds counted as the bounds."""

    mean: jax.Array
    deviation: jax.Array
    low: jax.Array
    high: jax.Array


def no_inputs(dim: int) -> Inputs:
    """Before anything was seen."""
    return Inputs(jnp.zeros(dim, jnp.float32), jnp.zeros(dim, jnp.float32), jnp.zeros((), bool))


def no_rewards() -> Rewards:
    """Before anything was seen: rewards as they are."""
    largest = jnp.finfo(jnp.float32).max
    return Rewards(*(jnp.float32(number) for number in (0, 1, -largest, largest)))


def scale(inputs: Inputs, x: jax.Array) -> jax.Array:
    """x, one context or many, in deviations from the middle, times UNIT; far out logarithmic: no value is extreme.

    An input that has not varied so far is -UNIT, 0 or UNIT, by the side on which it now is: it has no unit yet.
    """
    middle, spread = (jnp.broadcast_to(unit, x.shape) for unit in (inputs.middle, inputs.spread))
    away = x.astype(jnp.float32) - middle
    varies = spread > 0
    size = jnp.abs(away) / jnp.where(varies, spread, 1)
    far = jnp.minimum(REACH + jnp.log1p(jnp.maximum(size - REACH, 0)), FARTHEST)
    size = jnp.where(varies, jnp.where(size > REACH, far, size), 1)
    return jnp.where(inputs.known, UNIT * jnp.sign(away) * size, 0)


def scale_reward(rewards: Rewards, reward: jax.Array) -> jax.Array:
    """A reward in deviations from the mean, its bounds applied first."""
    return (jnp.clip(reward.astype(jnp.float32), rewards.low, rewards.high) - rewards.mean) / rewards.deviation


def learn_inputs(x: jax.Array, seen: jax.Array) -> Inputs:
    """The units of the first `seen` rows [n, d].

    Of an input with two values, as a category has, one is the middle and the other one deviation away. Otherwise the
    middle is the median, and the spread is the deviation from it that a share ONE_DEVIATION of those who deviate do
    not exceed: the standard deviation of a normal distribution, and untouched by a third of wild values.
    """
    rows, count = spread_rows(seen, x.shape[0], most=SAMPLE)
    sample = x[rows].astype(jnp.float32)
    valid = (jnp.arange(len(rows), dtype=jnp.int32) < count)[:, None]
    ordered = jnp.sort(jnp.where(valid, sample, jnp.inf), axis=0)
    low, median, high = ordered[0], ordered[jnp.maximum(count - 1, 0) // 2], ordered[jnp.maximum(count - 1, 0)]
    deviations = jnp.where(valid, jnp.abs(sample - median[None]), 0)
    two_values = (~valid | (sample == low[None]) | (sample == high[None])).all(axis=0)
    middle = jnp.where(two_values, low, median)
    spread = jnp.where(two_values, high - low, _typical(deviations, ONE_DEVIATION))
    known = count > 0
    return Inputs(jnp.where(known, middle, 0), jnp.where(known & jnp.isfinite(spread), spread, 0), known)


def learn_rewards(rewards: jax.Array, seen: jax.Array) -> Rewards:
    """The units of the first `seen` rewards.

    The bounds follow those rewards that differ from the median, so that rare ones among many zeros keep their size,
    and one of a million among ordinary ones does not.
    """
    rewards = rewards.astype(jnp.float32)
    valid = jnp.arange(rewards.shape[0], dtype=jnp.int32) < seen
    ordered = jnp.sort(jnp.where(valid, rewards, jnp.inf))
    median = jnp.where(seen > 0, ordered[jnp.maximum(seen - 1, 0) // 2], 0)
    trust = AT_FIRST + (CLIP - AT_FIRST) * jnp.minimum(seen.astype(jnp.float32) / ENOUGH, 1)
    reach = trust * _typical(jnp.where(valid, jnp.abs(rewards - median), 0)[:, None], TAIL)[0]
    away = jnp.where(valid, jnp.clip(rewards - median, -reach, reach), 0)  # small numbers: sums of large ones round
    count = jnp.maximum(seen, 1).astype(jnp.float32)
    mean = away.sum() / count
    deviation = jnp.sqrt(jnp.where(valid, (away - mean) ** 2, 0).sum() / count)
    found = Rewards(median + mean, jnp.where(deviation > 0, deviation, 1), median - reach, median + reach)
    return jax.tree.map(lambda new, none: jnp.where(seen > 0, new, none), found, no_rewards())


def _typical(deviations: jax.Array, share: float) -> jax.Array:
    """[d] the quantile of those deviations [n, d] that are not 0; 0 if all are."""
    ordered, size = jnp.sort(deviations, axis=0), deviations.shape[0]
    varied = (deviations > 0).sum(axis=0, dtype=jnp.int32)
    place = (share * jnp.maximum(varied - 1, 0).astype(jnp.float32)).astype(jnp.int32)
    found = jnp.take_along_axis(ordered, jnp.minimum(size - varied + place, size - 1)[None], axis=0)[0]
    return jnp.where(varied > 0, found, 0)
