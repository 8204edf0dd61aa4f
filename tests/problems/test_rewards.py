"""Tables of rewards: rounds, units, noise, and tables that cannot be played."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, run
from neuralucb.problems import labelled, rewards
from neuralucb.simulation import draw_rounds
from tests.problems.rows import X, Y

R = np.stack([400 * X[:, 0], np.full(40, -50.0), 1000 * X[:, 1] ** 2], axis=1)
OWN = np.random.default_rng(1).normal(size=(40, 3, 2))


def test_rewards_of_one_for_the_right_class_are_labelled_data_to_the_last_bit():
    table = (Y[:, None] == np.unique(Y)).astype(float)
    for algorithm in ("lin-ucb", "neural-ts"):
        small = {"width": 4, "steps": 3} if algorithm == "neural-ts" else {}
        by_label = run(algorithm, labelled(X, Y), seeds=3, schedule="10", **small)
        by_reward = run(algorithm, rewards(X, table), seeds=3, schedule="10", **small)
        assert_array_equal(by_label.regret, by_reward.regret)


@pytest.mark.parametrize("contexts", [X, OWN], ids=["shared", "one per arm"])
def test_a_round_is_a_row_with_its_rewards(contexts):
    problem = rewards(contexts, R, input_scaling="none", reward_scaling="none")
    world = problem.init(jax.random.key(0), problem.data)
    assert_array_equal(np.sort(world), np.arange(40))
    for t in (0, 39):
        now = problem.draw(jax.random.key(1), problem.data, world, jnp.int32(t))
        row = int(world[t])
        seen = now.contexts.x if problem.shared else now.contexts
        assert_allclose(seen, np.broadcast_to(contexts[row], (3, problem.dim)), rtol=1e-6)
        assert_allclose(now.expected, R[row], rtol=1e-6)
        assert now.noise == 0


def test_regret_is_told_in_the_unit_of_the_rewards():
    """An algorithm cannot tell the unit: it does the same, and its regret is as many times as large."""
    small, large = (run("lin-ucb", rewards(X, R * unit), seeds=2).regret for unit in (1, 2.0**20))
    assert_array_equal(small * 2.0**20, large)
    best = R.max(axis=1, keepdims=True) - R
    assert_allclose(run("uniform", rewards(X, R), seeds=200).final_regret.mean(), best.mean(axis=1).sum(), rtol=0.05)
    assert not run("oracle", rewards(X, R), seeds=1).regret.any()


def test_rewards_may_stay_as_they_are():
    problem = rewards(X, R, reward_scaling="none")
    assert problem.unit == 1
    assert_allclose(problem.data[1], R, rtol=1e-6)
    assert np.abs(rewards(X, R).data[1]).max() == 1
    assert rewards(X, np.zeros((40, 2))).unit == 1


def test_noise_has_the_unit_of_the_rewards():
    problem = rewards(X, R, noise=30.0, repeat=True)
    noise = problem.unit * np.asarray(draw_rounds(jax.random.key(0), problem, rounds=4000).noise)
    assert abs(noise.std() / 30 - 1) < 5 / np.sqrt(2 * 4000)
    assert abs(noise.mean()) < 5 * 30 / np.sqrt(4000)


def test_contexts_of_arms_are_scaled_as_rows():
    flat = rewards(OWN, R).data[0].reshape(-1, 2)
    assert_allclose(flat.mean(axis=0), 0, atol=1e-6)
    assert_allclose(flat.std(axis=0), 1, rtol=1e-6)
    flat = rewards(OWN, R, input_scaling="standard").data[0].reshape(-1, 2)
    assert_allclose(np.linalg.norm(flat, axis=1), 1, rtol=1e-6)
    assert rewards(OWN, R, intercept=True).dim == 3


def test_all_rows_are_played_unless_rounds_are_set():
    for contexts in (X, OWN):
        assert run("uniform", rewards(contexts, R), seeds=1).rounds == 40
    with pytest.raises(InputError, match="rounds must be at most 40, the rows of mine, got 50"):
        run("uniform", rewards(OWN, R, name="mine"), rounds=50, seeds=1)
    assert run("uniform", rewards(OWN, R, repeat=True), rounds=50, seeds=1).rounds == 50


def test_two_tables_of_one_name_have_different_digests():
    digests = {rewards(X, R).digest, rewards(X, R + 1).digest, rewards(X + 1, R).digest, rewards(OWN, R).digest}
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("contexts", "table", "options", "message"),
    [
        (X, R[:5], {}, r"X must be \(5, d\) or \(5, 3, d\), as R has 5 rows and 3 arms, got shape \(40, 3\)"),
        (OWN[:, :2], R, {}, r"X must be \(40, d\) or \(40, 3, d\)"),
        (X, R[:, :1], {}, r"R must be \(n, K\), one column for each of at least 2 arms, got shape \(40, 1\)"),
        (X, R[:, 0], {}, r"R must be a table of rows and columns, got shape \(40,\)"),
        (X, R * np.nan, {}, "R must be finite, got nan in row 0, column 0"),
        (X, R * 1e300, {}, r"R must be at most 1e\+30 in size"),
        (X, R * 1e-320, {}, "R must reach 1e-30 in size, or be 0, got at most .*; take a smaller unit"),
        (X, 1e9 + R, {}, r"rewards are up to 1e\+09, and arms differ by .* on average; subtract a constant"),
        (X, np.where(R > 0, "much", "little"), {}, "column 0 of R must be numbers, got '"),
        (OWN * np.inf, R, {}, "X must be finite, got .*inf in row 0, arm 0, column 0"),
        (OWN.astype(str), R, {}, "X must be numbers where each arm has a context"),
        (np.ones((40, 2)), R, {}, "every column is constant, .* take input_scaling='none'"),
        (X, R, {"noise": -1.0}, "noise must be a standard deviation, at least 0 and finite, got -1"),
        (X, R, {"noise": "1"}, "noise must be a standard deviation"),
        (
            X,
            R,
            {"input_scaling": "most"},
            "input_scaling must be one of columns, standard, unit, smooth, none, got 'most'",
        ),
        (X, R, {"reward_scaling": "most"}, "reward_scaling must be one of unit, none, got 'most'"),
        (None, R, {}, r"X must be a table of rows and columns, got shape \(\)"),
        ([[1, 2], [3]], R, {}, "X must be an array: "),
    ],
)
def test_tables_that_cannot_be_played_are_refused(contexts, table, options, message):
    with pytest.raises(InputError, match=message):
        rewards(contexts, table, **options)
