"""The estimators against formulas worked out by hand, and the diagnosis of overlap."""

import numpy as np
from numpy.testing import assert_allclose

from neuralucb.evaluation import FROZEN, Rounds, Sums, add, estimates_of, evaluate, overlap_of
from tests.evaluation.worlds import (
    ARMS,
    POLICY,
    in_memory,
    world,
)

SMALL = Rounds(
    reward=np.asarray([1.0, 0.0, 1.0, 0.0]),
    propensity=np.asarray([0.5, 0.25, 0.2, 0.8]),
    arm=np.asarray([0, 1, 2, 0]),
    target=np.asarray([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.4, 0.3, 0.3]]),
    predicted=np.asarray([[0.5, 0.1, 0.2], [0.3, 0.4, 0.1], [0.1, 0.2, 0.7], [0.6, 0.5, 0.4]]),
    stands_for=np.ones(4),
)


def test_estimators_are_the_formulas_of_open_bandit_pipeline():
    """Worked out by hand: w = 1.2, 3.2, 3, 0.5; direct = 0.36, 0.36, 0.48, 0.51; w(r - r̂) = 0.6, -1.28, 0.9, -0.3."""
    sums = add(Sums.nothing(), SMALL, switch=3.1)
    made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
    by_round = {
        "direct": [0.36, 0.36, 0.48, 0.51],
        "ips": [1.2, 0, 3, 0],
        "doubly-robust": [0.96, -0.92, 1.38, 0.21],
        "switch": [0.96, 0.36, 1.38, 0.21],
    }
    for method, values in by_round.items():
        assert_allclose(made[method].value, np.mean(values), rtol=1e-12)
        assert_allclose(made[method].error, np.std(values) / 2, rtol=1e-12)
    assert_allclose(made["snips"].value, 4.2 / 7.9, rtol=1e-12)
    residuals = np.asarray([1.2, 3.2, 3, 0.5]) * (SMALL.reward - 4.2 / 7.9)
    assert_allclose(made["snips"].error, np.sqrt((residuals**2).sum()) / 7.9, rtol=1e-12)
    assert_allclose(made["ips"].effective, 7.9**2 / (1.44 + 10.24 + 9 + 0.25), rtol=1e-12)
    assert_allclose(made["ips"].high - made["ips"].value, 1.959964 * made["ips"].error, rtol=1e-6)


def test_estimators_with_weights_are_weighted_means():
    """Worked out by hand from the values above, with s = 1, 2, 4, 1: Σs = 8, Σs² = 22."""
    sums = add(Sums.nothing(), SMALL._replace(stands_for=np.asarray([1.0, 2, 4, 1])), switch=3.1)
    made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
    by_round = {
        "direct": ([0.36, 0.36, 0.48, 0.51], 3.51 / 8),
        "ips": ([1.2, 0, 3, 0], 13.2 / 8),
        "doubly-robust": ([0.96, -0.92, 1.38, 0.21], 4.85 / 8),
        "switch": ([0.96, 0.36, 1.38, 0.21], 7.41 / 8),
    }
    for method, (values, mean) in by_round.items():
        assert_allclose(made[method].value, mean, rtol=1e-12)
        squares = sum(s**2 * (value - mean) ** 2 for s, value in zip((1, 2, 4, 1), values, strict=True))
        assert_allclose(made[method].error, np.sqrt(squares) / 8, rtol=1e-12)
    ratio = 13.2 / 20.1  # Σsw = 1.2 + 6.4 + 12 + 0.5
    assert_allclose(made["snips"].value, ratio, rtol=1e-12)
    squares = (1.2 * (1 - ratio)) ** 2 + (6.4 * ratio) ** 2 + (12 * (1 - ratio)) ** 2 + (0.5 * ratio) ** 2
    assert_allclose(made["snips"].error, np.sqrt(squares) / 20.1, rtol=1e-12)
    assert_allclose(made["ips"].effective, 20.1**2 / (1.44 + 40.96 + 144 + 0.25), rtol=1e-12)
    assert_allclose(made["direct"].effective, 64 / 22, rtol=1e-12)


def test_sums_are_the_same_in_any_pieces_and_a_weight_of_two_is_two_decisions():
    whole = add(Sums.nothing(), SMALL, switch=10)
    halves = Sums.nothing()
    for part in (slice(0, 1), slice(1, 4)):
        halves = add(halves, Rounds(*(column[part] for column in SMALL)), switch=10)
    double = Rounds(*(np.concatenate([column, column]) for column in SMALL))
    heavy = SMALL._replace(stands_for=np.full(4, 2.0))
    for method in ("ips", "snips", "direct", "doubly-robust"):
        one, two = (estimates_of(sums, (method,), level=0.9)[0] for sums in (whole, halves))
        assert_allclose(one[1:], two[1:], rtol=1e-12)
        repeated, weighted = (
            estimates_of(add(Sums.nothing(), rounds, switch=10), (method,), level=0.9)[0] for rounds in (double, heavy)
        )
        assert_allclose([repeated.value, weighted.value], one.value, rtol=1e-12)
        assert_allclose(weighted.error, one.error, rtol=1e-12)  # four decisions, whatever they stand for


def test_wrong_propensities_and_little_overlap_are_told_in_words():
    honest = evaluate(POLICY, (), in_memory(world(4000, 1))).overlap
    assert honest.words == ()
    assert abs(honest.mean_weight - 1) < 4 * honest.mean_weight_error
    lying = evaluate(POLICY, (), in_memory(world(4000, 1, lie=lambda p: np.full_like(p, 1 / ARMS)))).overlap
    assert any("must average 1" in word for word in lying.words)
    narrow = overlap_of(add(Sums.nothing(), SMALL._replace(propensity=np.asarray([0.001, 0.9, 0.9, 0.9])), switch=10))
    assert any("below 0.01" in word for word in narrow.words)
    even = Rounds(
        np.ones(60), np.full(60, 0.005), np.arange(60), np.full((60, 200), 0.005), np.zeros((60, 200)), np.ones(60)
    )
    assert overlap_of(add(Sums.nothing(), even, switch=10)).words == ()


def test_where_hardly_a_decision_agrees_no_interval_is_claimed_and_nobody_accused():
    target = np.tile([0.0, 1.0], (40, 1))
    arms = np.zeros(40, int)
    rounds = Rounds(np.ones(40), np.full(40, 0.5), arms, target, np.zeros((40, 2)), np.ones(40))
    for agree in (0, 1):
        arms[:agree] = 1
        sums = add(Sums.nothing(), rounds, switch=10)
        made = {one.method: one for one in estimates_of(sums, FROZEN, level=0.95)}
        assert all(np.isnan([made[name].low, made[name].error]).all() for name in FROZEN if name != "direct")
        assert made["ips"].value == 2 * agree / 40
        assert made["direct"].low == made["direct"].high == 0
        (word,) = overlap_of(sums).words
        assert word.startswith("little overlap")
        assert word.endswith("the log hardly ever took the policy's arms")
    (word,) = overlap_of(
        add(Sums.nothing(), rounds._replace(arm=np.ones(40, int), propensity=np.ones(40)), switch=10)
    ).words
    assert word.startswith("few decisions: the 40 logged decisions tell as much as 40")
