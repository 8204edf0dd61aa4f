"""What decisions were worth, and what other policies would have been, from recent outcomes: means with intervals.

Only complete decisions count: those made before the oldest one that still waits for its reward. Among later ones those
that were rewarded at once would be known and the others not, and every mean would be wrong.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neuralucb.evaluation.estimators import FEW, Rounds, Sums, add, estimates_of, logged_of, overlap_of
from neuralucb.evaluation.records import Estimate
from neuralucb.service.store import Outcome

__all__ = ["LEAST", "LEVEL", "ArmValue", "Value", "Values", "value_of", "value_of_policy", "value_served"]

LEVEL = 0.95
LEAST = 30
"""Complete decisions below which no mean is shown: its interval would say nothing."""

COVERED = 0.9
"""Share of decisions in which a policy's arms had a propensity above 0, below which nothing is estimated."""

BLOCKS = 20
"""Points of the chart of rewards."""

OPEN = ("inactive", "waiting")


class Value(NamedTuple):
    """Reward per decision, or in words why it is not known."""

    value: float | None
    low: float | None
    high: float | None
    effective: float
    """decisions that would tell as much, had the policy made them itself"""
    words: str
    """why there is no number, or what to beware of; empty if nothing is wrong"""


class ArmValue(NamedTuple):
    """One arm."""

    id: str
    share: float
    """of recent decisions"""
    decisions: int
    """complete ones"""
    reward: Value


class Values(NamedTuple):
    """All that recent outcomes tell."""

    decisions: int
    """recent ones, complete or not"""
    complete: int
    since: float | None
    """when the oldest of them was made"""
    explored: float | None
    """share of recent decisions in which exploration changed the choice"""
    served: Value
    """as decided"""
    baseline: Value
    """had the first arm always been used"""
    uniform: Value
    """had every allowed arm been as likely"""
    arms: tuple[ArmValue, ...]
    """by their shares"""
    blocks: tuple[tuple[float, float, float, float], ...]
    """time, mean, low and high of successive groups of complete decisions"""
    words: str
    """which decisions count; empty if nothing is special"""


def value_of(outcomes: Sequence[Outcome]) -> Values:
    """Value policies by recent outcomes, oldest first."""
    complete, words = _complete(outcomes)
    weight = float(sum(each.stands_for for each in outcomes))
    explored = sum(each.stands_for for each in outcomes if each.explored)
    first = [float(each.is_first) for each in complete]
    uniform = [1 / each.allowed for each in complete]
    return Values(
        round(weight),
        sum(each.stands_for for each in complete),
        outcomes[0].time if outcomes else None,
        explored / weight if weight else None,
        _mean(complete),
        _estimate(complete, first, [each.first_propensity for each in complete], "the first arm"),
        _estimate(complete, uniform, [each.least_propensity for each in complete], "other arms"),
        _arms(outcomes, complete, weight),
        _blocks(complete),
        words,
    )


def value_served(sums: Sums) -> Value:
    """Reward per decision, as decided."""
    return _too_few(sums.decisions) if sums.decisions < LEAST else _shown(logged_of(sums, level=LEVEL), "")


def value_of_policy(sums: Sums) -> Value:
    """The value of a policy that was not followed, by SNIPS."""
    if sums.decisions < LEAST:
        return _too_few(sums.decisions)
    (estimate,) = estimates_of(sums, ("snips",), level=LEVEL)
    if not np.isfinite(estimate.error):
        return _unknown("nothing can be estimated: hardly any decision agrees with it")
    return _shown(estimate, "; ".join(overlap_of(sums).words))


def _complete(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], str]:
    """Decisions with their final reward, and in words which were left out."""
    waiting = next((each for each in outcomes if each.status in OPEN), None)
    if waiting is not None and waiting.due is None:  # it may wait for ever
        counted = [each for each in outcomes if each.status in ("observed", "defaulted")]
        return counted, "wait_seconds is not set: only decisions that have a reward count, and the others may differ."
    before = outcomes if waiting is None else [each for each in outcomes if each.number < waiting.number]
    return [each for each in before if each.status in ("observed", "defaulted")], ""


def _sums(outcomes: Sequence[Outcome], target: Sequence[float]) -> Sums:
    """What the estimators need. π of the arm used is all that the weights take of the policy."""
    count = len(outcomes)
    rounds = Rounds(
        np.asarray([each.reward or 0.0 for each in outcomes], np.float64),
        np.asarray([each.propensity for each in outcomes], np.float64),
        np.zeros(count, np.int64),
        np.asarray(target, np.float64).reshape(count, 1),
        np.zeros((count, 1)),
        np.asarray([each.stands_for for each in outcomes], np.float64),
    )
    return add(Sums.nothing(), rounds, switch=np.inf)


def _mean(outcomes: Sequence[Outcome]) -> Value:
    """Reward per decision, as decided."""
    if len(outcomes) < LEAST:
        return _too_few(len(outcomes))
    return _shown(logged_of(_sums(outcomes, [each.propensity for each in outcomes]), level=LEVEL), "")


def _estimate(outcomes: Sequence[Outcome], target: Sequence[float], support: Sequence[float], what: str) -> Value:
    """The value of a policy that was not followed, by SNIPS.

    target   π of the arm used, in each decision
    support  the smallest propensity of an arm that the policy may use
    """
    if len(outcomes) < LEAST:
        return _too_few(len(outcomes))
    pairs = [(each, chance) for each, chance, least in zip(outcomes, target, support, strict=True) if least > 0]
    if len(pairs) < COVERED * len(outcomes):
        share = 1 - len(pairs) / len(outcomes)
        return _unknown(
            f"nothing can be estimated: in {share:.0%} of the decisions {what} could not be chosen; a floor above 0 "
            "gives every arm a chance"
        )
    sums = _sums([each for each, _ in pairs], [chance for _, chance in pairs])
    return value_of_policy(sums)


def _arms(outcomes: Sequence[Outcome], complete: Sequence[Outcome], weight: float) -> tuple[ArmValue, ...]:
    shares: dict[str, float] = {}
    for each in outcomes:
        shares[each.arm] = shares.get(each.arm, 0.0) + each.stands_for / weight
    by_arm: dict[str, list[Outcome]] = {arm: [] for arm in shares}
    for each in complete:
        by_arm[each.arm].append(each)
    ordered = sorted(shares, key=lambda arm: (-shares[arm], arm))
    return tuple(
        ArmValue(arm, shares[arm], sum(each.stands_for for each in by_arm[arm]), _mean(by_arm[arm])) for arm in ordered
    )


def _blocks(complete: Sequence[Outcome]) -> tuple[tuple[float, float, float, float], ...]:
    """Means of successive groups, each large enough for an interval."""
    count = min(BLOCKS, len(complete) // LEAST)
    edges = [round(index * len(complete) / count) for index in range(count + 1)] if count else []
    blocks = []
    for first, last in itertools.pairwise(edges):
        group = complete[first:last]
        found = _mean(group)
        if found.value is not None and found.low is not None and found.high is not None:
            blocks.append((group[-1].time, found.value, found.low, found.high))
    return tuple(blocks)


def _shown(estimate: Estimate, words: str) -> Value:
    if estimate.effective < FEW and not words:
        words = f"few decisions: it tells as much as {estimate.effective:.0f}"
    return Value(estimate.value, estimate.low, estimate.high, estimate.effective, words)


def _too_few(count: int) -> Value:
    return _unknown(f"too few complete decisions: {count} of {LEAST}")


def _unknown(words: str) -> Value:
    return Value(None, None, None, 0.0, words)
