"""Problems made of a function: what it may see, drift, and functions that cannot be used."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, run
from neuralucb.problems import from_function
from neuralucb.simulation import draw_rounds


def drawn(problem, rounds=200, seed=0):
    return jax.tree.map(np.asarray, draw_rounds(jax.random.key(seed), problem, rounds=rounds))


def test_expected_rewards_are_the_function_of_each_context():
    seen = drawn(from_function(lambda x: 3 * x[0] - x[1], dim=2, arms=4, noise=0.5))
    assert_allclose(seen.expected, 3 * seen.contexts[..., 0] - seen.contexts[..., 1], rtol=1e-5, atol=1e-6)
    assert np.linalg.norm(seen.contexts, axis=-1).max() <= 1 + 1e-6
    assert abs(seen.noise.std() / 0.5 - 1) < 5 / np.sqrt(2 * 200)


def test_arms_that_share_a_context_are_told_to_the_function():
    seen = drawn(from_function(lambda x, arm: arm * x[0], dim=2, arms=3, shared=True, noise=0))
    assert_allclose(seen.expected, np.arange(3) * seen.contexts.x[:, 0, :1], rtol=1e-6)
    assert_array_equal(seen.contexts.x[:, 0], seen.contexts.x[:, 2])
    assert not seen.noise.any()


def test_the_best_arm_changes_where_the_function_sees_the_round():
    """The first 100 rounds pay for the first number, the others for the second."""
    problem = from_function(lambda x, t: jnp.where(t < 100, x[0], x[1]), dim=2, arms=5, noise=0.0)
    seen = drawn(problem)
    best = seen.expected.argmax(axis=1)
    assert_array_equal(best[:100], seen.contexts[:100, :, 0].argmax(axis=1))
    assert_array_equal(best[100:], seen.contexts[100:, :, 1].argmax(axis=1))
    still = from_function(lambda x: x[0], dim=2, arms=5, noise=0.0)
    changed, same = (np.diff(run("lin-ucb", one, rounds=200, seeds=4).regret, axis=1) for one in (problem, still))
    assert changed[:, 100:120].mean() > 5 * same[:, 100:120].mean() + 0.1  # what was learned is wrong now
    shared = drawn(from_function(lambda x, arm, t: jnp.float32(arm == t % 3), dim=1, arms=3, shared=True, noise=0))
    assert_array_equal(shared.expected.argmax(axis=1), np.arange(200) % 3)


def test_contexts_may_be_drawn_by_a_function():
    problem = from_function(lambda x: x.sum(), dim=3, arms=2, sample=lambda key: jax.random.uniform(key, (3,)) + 7)
    seen = drawn(problem, 50)
    assert 7 <= seen.contexts.min() < seen.contexts.max() <= 8
    assert not np.allclose(seen.contexts[:, 0], seen.contexts[:, 1])


@pytest.mark.parametrize(
    ("h", "options", "message"),
    [
        (3, {}, "h must be a function of a context, got 3"),
        (lambda: 1.0, {}, r"h must be h\(x\) or h\(x, t\), got \(\)"),
        (lambda x, arm, t: x[0], {}, r"h must be h\(x\) or h\(x, t\), got \(x, arm, t\); shared says"),
        (lambda x: x[0], {"shared": True}, r"h must be h\(x, arm\) or h\(x, arm, t\), got \(x\)"),
        (lambda x: x, {}, r"h must return one number for one context, got shape \(2,\)"),
        (lambda x: 1.0 if x[0] > 0 else 0.0, {}, "h and sample must be functions that JAX can trace, .*[^\n]$"),
        (lambda x: x[0], {"sample": lambda key: jnp.ones(3)}, r"sample must return one context of 2 numbers"),
        (lambda x: x[0], {"arms": 1}, "arms must be a whole number of at least 2, got 1"),
        (lambda x: x[0], {"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        (lambda x: x[0], {"noise": np.inf}, "noise must be a standard deviation, at least 0 and finite, got inf"),
    ],
)
def test_functions_that_cannot_be_used_are_refused(h, options, message):
    with pytest.raises(InputError, match=message):
        from_function(h, **{"dim": 2, "arms": 3} | options)
