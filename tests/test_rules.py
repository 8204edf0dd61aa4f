"""Rules: ties, masks, probabilities, and scores that are not finite."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb.confidence import Assumptions, constant, self_normalised, theoretical
from neuralucb.policy import Prediction
from neuralucb.rules import best_arm, deterministic, epsilon_greedy, floor, square_cb, thompson, ucb
from tests.reference import neural_ucb

ALL = jnp.ones(4, dtype=bool)
DRAWS = 4000


def frequencies(choose, available=ALL, draws=DRAWS):
    arms = jax.jit(jax.vmap(lambda key: choose(key, available)))(jax.random.split(jax.random.key(3), draws))
    return np.bincount(np.asarray(arms), minlength=4) / draws


def is_uniform(shares, over):
    """Within five standard errors of uniform over these arms, and nothing elsewhere."""
    expected = 1 / len(over)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    others = [arm for arm in range(4) if arm not in over]
    return bool(np.abs(shares[over] - expected).max() <= 5 * error) and not shares[others].any()


def prediction(mean):
    return Prediction(jnp.asarray(mean, jnp.float32), jnp.ones(4, jnp.float32), jnp.int32(1), jnp.float32(0))


def test_ties_are_broken_at_random():
    assert is_uniform(frequencies(lambda key, able: best_arm(key, jnp.float32([1, 0, 1, 1]), able)), [0, 2, 3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_never_win_and_never_become_arm_0_for_ever(bad):
    assert is_uniform(frequencies(lambda key, able: best_arm(key, jnp.float32([bad] * 4), able)), [0, 1, 2, 3])
    assert is_uniform(frequencies(lambda key, able: best_arm(key, jnp.float32([bad, -5, bad, bad]), able)), [1])


def test_an_arm_that_is_not_available_is_never_chosen():
    able = jnp.asarray([False, True, True, False])
    assert is_uniform(frequencies(lambda key, able: best_arm(key, jnp.float32([9, 1, 1, 9]), able), able), [1, 2])
    rule = epsilon_greedy(1.0)
    assert is_uniform(frequencies(lambda key, able: rule(key, prediction([9, 1, 0, 9]), able).arm, able), [1, 2])


def test_epsilon_greedy_with_epsilon_1_is_uniform_and_with_less_is_not():
    def shares(epsilon):
        rule = epsilon_greedy(epsilon)
        return frequencies(lambda key, able: rule(key, prediction([0, 1, 2, 3]), able).arm)

    assert is_uniform(shares(1.0), [0, 1, 2, 3])
    assert not is_uniform(shares(0.8), [0, 1, 2, 3])  # the control: the same test must tell 0.8 from 1
    assert shares(0.0)[3] == 1


def test_ucb_adds_the_scaled_width():
    choice = ucb(constant(2.0))(
        jax.random.key(0), prediction([0, 1, 2, 3])._replace(width=jnp.float32([5, 0, 0, 0])), ALL
    )
    assert choice.arm == 0
    assert choice.score[0] == 10
    assert choice.exploration == 2


@pytest.mark.parametrize("t", [0, 1, 100])
def test_the_theoretical_scale_is_the_formula(t):
    values = {"m": 20, "L": 3, "lam": 0.7, "nu": 0.4, "delta": 0.05, "S": 2.0, "eta": 1e-3, "C": (0.5, 2.0, 3.0)}
    expected = neural_ucb.gamma(t, 4.2, J=t, **values)
    ours = theoretical(
        Assumptions(0.4, 0.05, 2.0, (0.5, 2.0, 3.0)), ridge=0.7, width=20, depth=3, step_size=1e-3, steps="t"
    )
    with jax.enable_x64(True):
        np.testing.assert_allclose(ours(jnp.int32(t), jnp.float64(4.2)), expected, rtol=1e-12)


def test_the_self_normalised_scale_is_the_formula():
    with jax.enable_x64(True):
        ours = self_normalised(Assumptions(0.4, 0.05, 2.0), ridge=0.7)(jnp.int32(3), jnp.float64(4.0))
    np.testing.assert_allclose(ours, 0.4 * np.sqrt(4 - 2 * np.log(0.05)) + np.sqrt(0.7) * 2, rtol=1e-12)


RULES = {
    "ucb": ucb(constant(0.5)),
    "epsilon-greedy": epsilon_greedy(0.3),
    "square-cb": square_cb(4.0),
    "thompson": thompson(constant(0.8)),
}
MEANS = {
    "distinct": [0.1, 0.9, 0.4, 0.2],
    "tied": [0.9, 0.9, 0.4, 0.9],
    "all tied": [0.5, 0.5, 0.5, 0.5],
    "one NaN": [np.nan, 0.9, 0.4, 0.2],
    "best infinite": [np.inf, 0.9, 0.4, 0.2],
    "none finite": [np.nan, np.inf, -np.inf, np.nan],
}


def matches(shares, propensity):
    error = np.sqrt(propensity * (1 - propensity) / DRAWS)
    return bool((np.abs(shares - propensity) <= 5 * error + 1e-5).all())


@pytest.mark.parametrize("rule", RULES)
def test_a_rules_propensity_is_how_often_it_chooses(rule):
    @jax.jit
    def ask(mean, able):
        keys = jax.random.split(jax.random.key(3), DRAWS)
        made = jax.vmap(lambda key: RULES[rule](key, prediction(mean), able))(keys)
        return made.arm, made.propensity[0]

    for mean, able in product(MEANS.values(), ([True] * 4, [True, False, True, True], [False, True, False, False])):
        able = np.asarray(able)
        arms, propensity = ask(np.asarray(mean, np.float32), able)
        shares, propensity = np.bincount(arms, minlength=4) / DRAWS, np.asarray(propensity, np.float64)
        assert matches(shares, propensity)
        assert not propensity[~able].any()
        np.testing.assert_allclose(propensity.sum(), 1, rtol=1e-6)
        if able.sum() > 1:  # the control
            assert not matches(shares, np.where(able, propensity * 0.5, 0) + 0.5 * np.eye(4)[propensity.argmin()])


def test_inverse_gap_weights_are_the_formula():
    propensity = square_cb(10.0)(jax.random.key(0), prediction([0.1, 0.9, 0.4, 0.2]), ALL).propensity
    others = 1 / (4 + 10 * np.asarray([0.8, 0.5, 0.7]))
    np.testing.assert_allclose(propensity, [others[0], 1 - others.sum(), others[1], others[2]], rtol=1e-6)


@pytest.mark.parametrize(
    ("widths", "error"), [((1, 1, 1, 1), 1e-5), ((0.1, 1, 1.6, 0.3), 1e-5), ((1e-3, 1, 0.2, 2), 0.0125)]
)
def test_thompsons_propensities_are_as_close_as_they_say(widths, error):
    from scipy.integrate import quad
    from scipy.stats import norm

    means, widths = np.asarray([0.1, 0.9, 0.4, 0.2]), np.asarray(widths, float)

    def density(x, arm):
        others = np.arange(4) != arm
        return norm.pdf(x, means[arm], widths[arm]) * norm.cdf(x, means[others], widths[others]).prod()

    exact = [
        quad(density, means[arm] - 9 * widths[arm], means[arm] + 9 * widths[arm], (arm,), points=means, limit=500)[0]
        for arm in range(4)
    ]
    believed = prediction(means)._replace(width=jnp.asarray(widths, jnp.float32))
    ours = jax.jit(thompson(constant(1.0)))(jax.random.key(0), believed, ALL).propensity
    assert np.abs(np.asarray(ours) - exact).max() <= error


@pytest.mark.parametrize(
    ("means", "widths"),
    [
        ([1000, 1000.001], [5e-4, 5e-4]),
        ([-1e4, -1e4 + 0.01, -1e4 + 0.005], [5e-3, 5e-3, 1e-3]),
        ([0, 0.001, -1e6], [5e-4, 5e-4, 5e-4]),  # an arm that is far below
        ([0, 0.001, -1], [1e-6, 1e-3, 1000]),  # one about which nothing is known
        ([-1, -1, -1, 0], [0, 0, 0, 1]),  # narrow ties below a wide arm
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thompsons_propensities_do_not_depend_on_the_scale_or_place_of_means(means, widths, dtype):
    means, widths = (np.asarray(values, dtype) for values in (means, widths))
    samples = np.random.default_rng(0).normal(size=(400_000, len(means)))
    samples = means.astype(np.float64) + widths.astype(np.float64) * samples
    best = samples == samples.max(axis=1, keepdims=True)
    expected = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    with jax.enable_x64(dtype is np.float64):
        believed = Prediction(jnp.asarray(means), jnp.asarray(widths), jnp.int32(1), jnp.asarray(0, dtype))
        able = jnp.ones(len(means), dtype=bool)
        choose = jax.jit(thompson(constant(1.0)))
        ours = choose(jax.random.key(0), believed, able).propensity
        keys = jax.random.split(jax.random.key(1), DRAWS)
        arms = jax.jit(jax.vmap(lambda key: choose(key, believed, able).arm))(keys)
    error = 5 * np.sqrt(expected * (1 - expected) / len(samples)) + (1e-5 if np.ptp(widths) < 4.5e-3 else 0.0125)
    assert (np.abs(np.asarray(ours, np.float64) - expected) <= error).all()
    shares = np.bincount(arms, minlength=len(means)) / DRAWS
    assert (np.abs(shares - expected) <= 5 * np.sqrt(expected * (1 - expected) / DRAWS) + 1e-5).all()


def test_thompson_without_width_is_greedy_with_ties():
    believed = prediction([0.3, 0.9, 0.9, 0.1])._replace(width=jnp.zeros(4, jnp.float32))
    np.testing.assert_allclose(
        jax.jit(thompson(constant(1.0)))(jax.random.key(0), believed, ALL).propensity, [0, 0.5, 0.5, 0], atol=1e-6
    )


def test_a_floor_must_be_a_probability():
    with pytest.raises(ValueError, match="probability must be from 0 to 1, got 2"):
        floor(None, 2)


def test_only_a_certain_choice_among_several_is_deterministic():
    propensity, arms = np.asarray([1.0, 1.0, 0.5, 0.99, np.nan, np.nan]), np.asarray([3, 1, 2, 2, 2, 1])
    assert deterministic(propensity, arms).tolist() == [True, False, False, False, True, False]
