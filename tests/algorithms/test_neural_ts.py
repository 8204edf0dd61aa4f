"""NeuralTS and SquareCB over a network: means of known algorithms, probabilities by their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.history import append, empty

DIM, ARMS = 3, 4
SMALL = {"width": 8, "steps": 20, "step_size": 0.1, "regularization": 0.3}


def choice_of(name, **settings):
    """The choice after 30 observations and a training, the same for every algorithm."""
    random = np.random.default_rng(0)
    contexts = random.normal(size=(30, DIM)).astype(np.float32)
    rewards = np.sin(contexts.sum(axis=1)).astype(np.float32)
    bandit = build(name, dim=DIM, **SMALL, **settings)
    belief = bandit.init(jax.random.key(0))
    history = empty(jax.ShapeDtypeStruct((DIM,), jnp.float32), capacity=30)
    for context, reward in zip(contexts, rewards, strict=True):
        belief = bandit.observe(belief, context, reward)
        history = append(history, context, reward)
    belief, _ = bandit.learn(jax.random.key(1), belief, history)
    return bandit.select(jax.random.key(2), belief, random.normal(size=(ARMS, DIM)).astype(np.float32))


@pytest.mark.parametrize("design", ["full", "diagonal"])
def test_neural_ts_samples_around_neural_ucbs_means_as_wide_as_its_interval(design):
    ours, optimist = (choice_of(name, design=design, exploration=0.5) for name in ("neural-ts", "neural-ucb"))
    assert_allclose(ours.mean, optimist.mean)
    assert_allclose(ours.width, optimist.width)
    assert_allclose(ours.exploration, 0.5 * np.sqrt(0.3), rtol=1e-6)  # ν√λ: σ² = λ gᵀU⁻¹g/m
    mean, spread = (np.asarray(values, np.float64) for values in (ours.mean, ours.exploration * ours.width))
    draws = (mean + spread * np.random.default_rng(0).normal(size=(100_000, ARMS))).argmax(axis=1)
    shares = np.bincount(draws, minlength=ARMS) / 100_000
    assert_allclose(ours.propensity, shares, atol=5 * 0.5 / np.sqrt(100_000))


def test_neural_square_cb_weights_the_gaps_of_neural_epsilon_greedys_means():
    ours, greedy = (
        choice_of(name, units="given", **more)
        for name, more in (("neural-square-cb", {"learning_rate": 10.0}), ("neural-epsilon-greedy", {}))
    )
    assert_allclose(ours.mean, greedy.mean)
    mean = np.asarray(greedy.mean, np.float64)
    expected = 1 / (ARMS + 10 * (mean.max() - mean))
    expected[mean.argmax()] += 1 - expected.sum()
    assert_allclose(ours.propensity, expected, rtol=1e-5)
