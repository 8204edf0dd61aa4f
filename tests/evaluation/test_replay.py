"""Replay: unbiased for any logged propensities, and learning as online."""

import jax
import numpy as np
import pytest

from neuralucb import build
from neuralucb.evaluation import evaluate, replay
from neuralucb.logs import recorded
from neuralucb.logs.warm_start import learn_from
from tests.evaluation.worlds import (
    ARMS,
    DIM,
    GRID,
    LEVEL,
    POLICY,
    REPETITIONS,
    TRUTH,
    coverage,
    in_memory,
    is_covered,
    true_value,
    world,
)


@pytest.mark.slow
def test_replay_covers_the_truth_for_a_policy_that_does_not_learn():
    truth, p = true_value(), np.asarray([0.2, 0.3, 0.5])

    def repeat(lie):
        made = []
        for seed in range(REPETITIONS):
            random = np.random.default_rng(seed)
            contexts = GRID[random.integers(len(GRID), size=(1000, ARMS))]
            arm = random.choice(ARMS, p=p, size=1000)
            reward = (contexts @ TRUTH)[np.arange(1000), arm] + random.normal(size=1000) * 0.5 + 0.5 * arm
            log = in_memory(recorded(contexts, arm, reward, np.tile(lie(p), (1000, 1))))
            end = replay(jax.random.key(seed), POLICY, log, schedule="100000", level=LEVEL)
            made.append([end.estimate])
        return coverage(made, truth + 0.5)[0]

    assert is_covered(repeat(lambda p: p), REPETITIONS).all()
    assert not is_covered(repeat(lambda p: np.full_like(p, 1 / 3)), REPETITIONS).any()  # the control


def test_replay_counts_a_decision_as_often_as_it_stands_for():
    """Of rewards of 0, nine in ten were dropped from the log: those left stand for ten each."""
    random = np.random.default_rng(0)
    reward = (random.random(4000) < 0.5).astype(float)
    chunk = recorded(np.ones((4000, ARMS, DIM)), random.integers(ARMS, size=4000), reward, np.full((4000, ARMS), 1 / 3))
    thinned = chunk._replace(weight=np.where(reward == 0, 10.0, 1.0))
    even, heavy = (
        replay(jax.random.key(0), POLICY, in_memory(one), schedule="100000").estimate for one in (chunk, thinned)
    )
    ips = evaluate(POLICY, (), in_memory(thinned), methods=("ips",)).estimates[0]
    assert abs(heavy.value - 1 / 11) < 4 * heavy.error
    assert abs(heavy.value - ips.value) < 4 * np.hypot(heavy.error, ips.error)
    assert abs(even.value - 1 / 11) > 4 * even.error  # the control


def test_replay_does_not_stop_in_silence_where_propensities_are_too_small():
    chunk = world(4000, 0, logging=0.0)._replace(propensity=np.full(4000, 0.05), probabilities=None)
    with pytest.raises(ValueError, match="accepted more than its propensities allow, 200 of 4000 decisions: they are"):
        replay(jax.random.key(0), POLICY, in_memory(chunk), schedule="100000")


def test_replay_learns_along_the_log_as_the_policy_would_online():
    chunk = world(6000, 0, logging=0.0, lie=lambda p: np.full_like(p, 1 / ARMS))
    bandit = build("lin-ucb", dim=DIM)
    end = replay(jax.random.key(0), bandit, in_memory(chunk), schedule="50")
    best = (GRID[np.stack(np.meshgrid(*[np.arange(9)] * 3), -1).reshape(-1, 3)] @ TRUTH).max(axis=1).mean()
    assert abs(end.accepted / end.decisions - 1 / ARMS) < 5 * np.sqrt(2 / 9 / 6000)
    assert end.estimate.value > 0.9 * best
    assert true_value() < 0.9 * best  # the control: a policy that does not learn stays below
    assert int(end.belief.rounds) == end.accepted


def test_replay_hands_back_what_a_policy_noted_of_the_decisions_it_accepted():
    """Banditron learns nothing from decisions without a note, which a warm start's are."""
    log, bandit = in_memory(world(600, 0)), build("banditron", dim=DIM)
    end = replay(jax.random.key(0), bandit, log, schedule="100")
    assert end.accepted > 50
    assert np.abs(end.belief.weights).max() > 0.5
    assert not np.asarray(learn_from(jax.random.key(0), bandit, log).belief.weights).any()
