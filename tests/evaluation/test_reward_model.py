"""The reward model: cross-fitted, indifferent to a number added to all rewards, and as uncertain as it says."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.evaluation import evaluate
from neuralucb.logs import Log, recorded
from tests.evaluation.worlds import (
    ARMS,
    DIM,
    LEVEL,
    POLICY,
    REPETITIONS,
    SHARED_POLICY,
    coverage,
    in_memory,
    is_covered,
    opposed_world,
    true_value,
    world,
)


@pytest.mark.parametrize("missing", [0, 1, 7])
def test_no_decision_is_judged_by_a_model_that_has_seen_it(missing):
    """Rewards are noise, and features so many that a model explains the noise it has seen, but no other."""
    random = np.random.default_rng(0)
    contexts, arm, reward = (
        random.normal(size=(200, ARMS, 100)),
        random.integers(ARMS, size=200),
        random.normal(size=200),
    )
    reward[:missing] = np.nan
    bandit = build("uniform", dim=100)
    log = in_memory(recorded(contexts.astype(np.float32), arm, reward, np.full((200, ARMS), 1 / ARMS)))
    made = evaluate(bandit, bandit.init(jax.random.key(0)), log, methods=("doubly-robust",))
    assert made.estimates[0].error > made.logged.error


@pytest.mark.parametrize("own", [True, False])
def test_a_number_added_to_all_rewards_is_added_to_every_estimate(own):
    random = np.random.default_rng(0)
    contexts, arm = random.normal(size=(500, 10, DIM) if own else (500, DIM)), random.integers(9, size=500)
    noise, bandit = random.normal(size=500), build("uniform", dim=DIM, shared_by=None if own else 10)

    def values(added):
        chunk = recorded(contexts.astype(np.float32), arm, noise + added, np.full((500, 10), 0.1))
        log = Log("memory", chunk.names, 10, 500, lambda: iter([chunk]))
        methods = ("direct", "snips", "doubly-robust", "switch")
        made = evaluate(bandit, bandit.init(jax.random.key(0)), log, methods=methods)
        return np.asarray([[one.value, one.error] for one in made.estimates])

    here, there = values(0.0), values(1000.0)
    assert_allclose(there[:, 0], here[:, 0] + 1000, rtol=1e-7)  # probabilities are float32
    assert_allclose(there[:, 1], here[:, 1], rtol=1e-6)


def test_switch_is_as_uncertain_as_the_model_it_leaves_the_weights_to():
    log = in_memory(world(500, 0))
    direct, all_left, none_left, robust = (
        evaluate(POLICY, (), log, methods=(method,), switch=at).estimates[0]
        for method, at in (("direct", 1), ("switch", 0), ("switch", 1e9), ("doubly-robust", 1))
    )
    assert_allclose(all_left[1:4], direct[1:4], rtol=1e-9)
    assert_allclose(none_left[1:4], robust[1:4], rtol=1e-9)

    made = [evaluate(POLICY, (), in_memory(world(500, seed)), level=LEVEL, methods=("switch",), switch=1.0).estimates
            for seed in range(REPETITIONS)]  # fmt: skip
    assert is_covered(coverage(made, true_value())[0], REPETITIONS).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("own", [True, False], ids=["own features", "shared context"])
def test_errors_are_those_of_leaving_out_one_decision_at_a_time(own, weighted):
    """The jackknife refits the model without each decision: it knows how the mean and the model err together."""
    count, policy = 400, POLICY if own else SHARED_POLICY
    chunk = opposed_world(count, 0, own=own)
    if weighted:
        chunk = chunk._replace(weight=np.random.default_rng(0).uniform(0.5, 3, size=count))

    def estimates(chunk):
        return evaluate(policy, (), in_memory(chunk), switch=4.0).estimates

    without = []
    for one in range(count):
        reward = chunk.reward.copy()
        reward[one] = np.nan  # left out, and the others keep their folds
        without.append([each.value for each in estimates(chunk._replace(reward=reward))])
    jackknife = np.sqrt((count - 1) * np.var(without, axis=0))
    assert_allclose([each.error for each in estimates(chunk)], jackknife, rtol=0.04)
