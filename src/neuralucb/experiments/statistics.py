"""Statistics over seeds and problems: one kind of interval for means, and aggregates that one bad problem cannot rule.

Interquartile mean, probability of improvement and their stratified bootstrap follow Agarwal et al. 2021, *Deep
Reinforcement Learning at the Edge of the Statistical Precipice*.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from neuralucb.runtime.words import counted

__all__ = [
    "CONFIDENCE",
    "FEW_SEEDS",
    "Estimate",
    "band",
    "estimate_mean",
    "few_seeds",
    "finite_or_none",
    "interquartile_mean",
    "interval",
    "probability_of_improvement",
    "stratified_bootstrap",
]

CONFIDENCE = 0.95

FEW_SEEDS = 5
"""With fewer, Student's interval rests on a deviation that two to four numbers cannot tell."""

RESAMPLES = 2000


class Estimate(NamedTuple):
    """A mean with its 95 % interval; NaN where there are too few numbers for one.

    Example:
        >>> Estimate(mean=2.0, low=1.5, high=2.5).mean
        2.0
    """

    mean: float
    low: float
    high: float


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Student's 95 % interval for the mean over the first axis; NaN where there is one value only.

    Every interval of a mean over seeds is this one: in summaries, tables, figures and reports of sweeps. With two to
    four seeds, tables show it together with the remark of `few_seeds`, and figures draw the seeds instead of a band.
    With one seed there is none.
    """
    from scipy.special import stdtrit  # scipy.stats would cost a second to import

    count = values.shape[0]
    mean = values.mean(axis=0)
    if count < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = stdtrit(count - 1, (1 + CONFIDENCE) / 2) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean - half, mean + half


def band(curves: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The interval of the mean at every point of [seeds, points]; None with few seeds, which are drawn one by one."""
    return interval(curves) if len(curves) >= FEW_SEEDS else None


def estimate_mean(values: np.ndarray) -> Estimate:
    """The mean of numbers, one per seed, with Student's interval."""
    low, high = interval(values)
    return Estimate(float(values.mean()), float(low), float(high))


def few_seeds(count: int) -> str:
    """A remark where there are too few seeds to trust an interval; empty where there are enough."""
    if count >= FEW_SEEDS:
        return ""
    what = "no interval" if count == 1 else "too few for an interval that can be trusted"
    return f"{counted(count, 'seed')}: {what}; take {FEW_SEEDS} or more, ten for a publication."


def finite_or_none(value: float | None) -> float | None:
    """The number as JSON can hold it: None where it is NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)


def interquartile_mean(values: np.ndarray) -> float:
    """The mean of the middle half: a quarter of the numbers, rounded down, is left out at each end."""
    cut = values.size // 4
    return float(np.sort(values, axis=None)[cut : values.size - cut].mean())


def probability_of_improvement(ours: np.ndarray, theirs: np.ndarray) -> float:
    """How likely a run of ours has less regret than a run of theirs, over all pairs of runs; a tie counts half."""
    ordered = np.sort(theirs)
    first, last = (np.searchsorted(ordered, ours, side=side) for side in ("left", "right"))
    return float(1 - (first + last).mean() / (2 * len(theirs)))


def stratified_bootstrap(
    groups: Sequence[np.ndarray],
    statistic: Callable[[Sequence[np.ndarray]], float],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % percentile interval of a statistic of several groups, each resampled for itself.

    Args:
        groups: Numbers per problem, or per problem and algorithm.
        statistic: Of groups of the same sizes.
        resamples: How many times the groups are drawn anew.
        seed: Of the draws; the same one gives the same interval.
    """
    generator = np.random.default_rng(seed)
    found = np.empty(resamples)
    for index in range(resamples):
        found[index] = statistic([group[generator.integers(len(group), size=len(group))] for group in groups])
    low, high = np.quantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
