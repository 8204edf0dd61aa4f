"""Gymnasium both ways: a problem as an environment, and a bandit that acts in one."""

import warnings

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, OnlineBandit, build, labelled, read_schedule, simulate, synthetic
from neuralucb.online.environments import as_environment, play_environment
from neuralucb.problems import rewards
from tests.problems.rows import X, Y

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

SEPARATE = synthetic("h1", dim=4, arms=3)
SHARED = rewards(X, np.stack([700 * X[:, 0], np.full(40, -100.0)], axis=1), noise=5.0, name="my data/ä")


def policy_for(problem):
    return build("lin-ucb", dim=problem.dim, shared_by=problem.shared_by)


@pytest.mark.parametrize("problem", [SEPARATE, SHARED, labelled(X, Y)], ids=lambda each: each.name)
def test_gymnasium_finds_nothing_to_complain_about(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(as_environment(problem, rounds=20))


@pytest.mark.parametrize("problem", [SEPARATE, SHARED], ids=lambda each: each.name)
def test_an_episode_is_the_run_of_the_same_seed(problem):
    trace = simulate(jax.random.key(7), policy_for(problem), problem, rounds=20, schedule=read_schedule("5")).trace
    environment = as_environment(problem, rounds=20)
    seen, _ = environment.reset(seed=7)
    assert seen.shape == ((problem.dim,) if problem.shared else (problem.arms, problem.dim))
    steps = [environment.step(int(arm)) for arm in trace.arm]
    # two programs: as users compile them, sums round differently, and another round would differ in the first digit
    assert_allclose([info["regret"] for *_, info in steps], trace.regret, rtol=1e-5, atol=1e-5)
    assert [truncated for *_, truncated, _ in steps] == [False] * 19 + [True]
    assert not any(ended for _, _, ended, _, _ in steps)
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(0)


def test_rewards_have_the_unit_of_the_data():
    environment = as_environment(SHARED, rounds=40)
    environment.reset(seed=0)
    paid = np.asarray([environment.step(1)[1] for _ in range(40)])
    assert abs(paid.mean() + 100) < 5 * 5 / np.sqrt(40)


def test_a_bandit_learns_in_an_environment():
    """Episodes follow one another; the regret of the last is far below that of chance."""
    problem = labelled(np.tile(X, (5, 1)), np.tile(Y, 5))
    bandit = OnlineBandit(policy_for(problem), schedule="50")
    played = play_environment(bandit, as_environment(problem, rounds=200), rounds=400, seed=1)
    assert played.regret[-100:].mean() < 0.2
    assert_array_equal(played.rewards, 1 - played.regret)
    assert set(played.arms) == {0, 1}


def test_a_bandit_acts_in_an_environment_of_others():
    """CartPole: four numbers, two actions, and no regret is told."""
    bandit = OnlineBandit(build("lin-ucb", dim=4, shared_by=2))
    played = play_environment(bandit, gymnasium.make("CartPole-v1"), rounds=60)
    assert played.regret is None
    assert_array_equal(played.rewards, 1)
    assert len(played.arms) == 60


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_environment("h1", rounds=3), "problem must be a Problem, got 'h1'"),
        (lambda: as_environment(SEPARATE, rounds=0), "rounds must be a whole number of at least 1, got 0"),
        (lambda: as_environment(labelled(X, Y), rounds=41), "rounds must be at most 40, the rows of labelled, got 41"),
        (lambda: as_environment(SEPARATE._replace(arms=9), rounds=4), "must give contexts of 9 arms"),
    ],
)
def test_problems_that_make_no_environment_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_an_action_that_is_no_arm_is_refused():
    environment = as_environment(SEPARATE, rounds=3)
    environment.reset(seed=0)
    for action in (3, -1, 0.5):
        with pytest.raises(InputError, match="action must be a whole number from 0 to 2, got "):
            environment.step(action)


def test_a_bandit_that_does_not_fit_is_told_what_would():
    bandit = OnlineBandit(build("lin-ucb", dim=9))
    with pytest.raises(InputError, match=r"made by build\(…, dim=4\).* for 3 actions .* its contexts are an array"):
        play_environment(bandit, as_environment(SEPARATE, rounds=3), rounds=3)
    with pytest.raises(InputError, match=r"made by build\(…, dim=3, shared_by=2\)"):
        play_environment(bandit, as_environment(labelled(X, Y), rounds=3), rounds=3)
    with pytest.raises(InputError, match="environment must have discrete actions, got Box"):
        play_environment(bandit, gymnasium.make("Pendulum-v1"), rounds=3)
    with pytest.raises(InputError, match="observations .d,. or .K, d., got Discrete.*FlattenObservation"):
        play_environment(bandit, gymnasium.make("Taxi-v4"), rounds=3)
