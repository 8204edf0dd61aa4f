"""Intervals hold the true value as often as they say, for every estimator, over many simulated logs."""

import jax
import numpy as np
import pytest

from neuralucb.evaluation import FROZEN, evaluate, replay
from tests.evaluation.worlds import (
    POLICY,
    SHARED_POLICY,
    in_memory,
    opposed_world,
    true_value,
    true_value_shared,
    world,
)

LOGS, DECISIONS, LEVEL = 1000, 3000, 0.95
ERROR = np.sqrt(LEVEL * (1 - LEVEL) / LOGS)
"""Binomial standard error of a share of logs."""


def shares(made, truth, *, scale=1.0):
    """For each estimator the share of logs whose interval, `scale` times as wide, holds the truth."""
    return np.asarray([[abs(one.value - truth) <= scale * (one.high - one.value) for one in row] for row in made]).mean(
        axis=0
    )


def check_coverage(made, truth):
    names = [one.method for one in made[0]]
    found = dict(zip(names, shares(made, truth), strict=True))
    assert all(abs(share - LEVEL) <= 4 * ERROR for share in found.values()), f"{found} ± {ERROR:.4f}"
    halved = shares(made, truth, scale=0.5)
    assert (halved < LEVEL - 4 * ERROR).all(), halved  # the control


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["own features", "shared context"])
def test_intervals_hold_the_true_value_as_often_as_they_say_and_half_as_wide_do_not(own):
    policy, truth = (POLICY, true_value()) if own else (SHARED_POLICY, true_value_shared())
    made = [
        evaluate(policy, (), in_memory(opposed_world(DECISIONS, seed, own=own)), level=LEVEL, switch=4.0).estimates
        for seed in range(LOGS)
    ]
    assert tuple(one.method for one in made[0]) == FROZEN
    check_coverage(made, truth)


@pytest.mark.slow
def test_intervals_of_replay_hold_the_true_value_as_often_as_they_say_and_half_as_wide_do_not():
    made = []
    for seed in range(LOGS):
        log = in_memory(world(DECISIONS, seed, logging=0.2))
        end = replay(jax.random.key(seed), POLICY, log, schedule="100000", level=LEVEL)
        made.append([end.estimate])
    check_coverage(made, true_value())
