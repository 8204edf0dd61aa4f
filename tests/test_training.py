"""TrainNN: the minibatch version against its transcription, and divergence that does not go unnoticed."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose

from neuralucb import training
from neuralucb.history import History
from neuralucb.networks.mlp import mlp
from tests.reference import neural_ucb

ROWS, DIM, WIDTH = 30, 4, 6
NETWORK = mlp(DIM, width=WIDTH, initialization="gaussian")
PLAIN = {"step_size": 0.01, "steps": 5, "batch_size": 8, "pull": WIDTH * 0.5}


def history(*, scale=1.0, capacity=40):
    generator = np.random.default_rng(5)
    contexts = np.zeros((capacity, DIM), np.float32)
    rewards = np.full(capacity, np.nan, np.float32)  # room that must never be read
    contexts[:ROWS] = generator.normal(size=(ROWS, DIM))
    rewards[:ROWS] = scale * generator.normal(size=ROWS)
    return History(jnp.asarray(contexts), jnp.asarray(rewards), jnp.int32(ROWS), jnp.int32(ROWS))


def trained(train, key, record=None, params=None):
    initial = NETWORK.init(jax.random.key(1))
    start = initial if params is None else params
    return jax.jit(lambda *a: train(a[0], NETWORK.apply_many, *a[1:]))(key, start, initial, record or history())


@pytest.mark.parametrize("steps", [5, 123, "t"])
@pytest.mark.parametrize("decay", ["none", "linear"])
def test_sgd_is_the_transcriptions_on_the_same_batches(key, steps, decay):
    settings = PLAIN | {"steps": steps, "decay": decay}
    count = ROWS if steps == "t" else steps
    chunk = training.CHUNK if steps == "t" else min(training.CHUNK, steps)
    batches = np.concatenate(
        [
            training.draw_rows(jax.random.fold_in(key, index), (chunk, 8), jnp.int32(ROWS))
            for index in range(-(-count // chunk))
        ]
    )[:count]
    weights, info = trained(training.sgd(**settings), key)
    record, initial = history(), [np.asarray(leaf, np.float64) for leaf in NETWORK.init(jax.random.key(1))]
    expected = neural_ucb.train_sgd(
        initial, initial, np.asarray(record.contexts[:ROWS], np.float64), np.asarray(record.rewards[:ROWS], np.float64),
        factor=np.sqrt(WIDTH), pull=WIDTH * 0.5, batches=batches,
        step_size=0.01 * (1 - np.arange(count) / count) if decay == "linear" else 0.01,
    )  # fmt: skip
    for ours, theirs in zip(weights, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    assert not info.diverged


def test_rows_are_drawn_from_all_that_was_observed_and_from_nothing_else(key):
    rows = np.asarray(training.draw_rows(key, (100, 50), jnp.int32(ROWS)))
    assert rows.min() == 0
    assert rows.max() == ROWS - 1
    counts = np.bincount(rows.ravel(), minlength=ROWS)
    expected = rows.size / ROWS
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_training_starts_where_it_is_told_and_is_pulled_to_the_initial_weights(key):
    elsewhere = NETWORK.init(jax.random.key(2))
    initial = NETWORK.init(jax.random.key(1))
    strong = PLAIN | {"pull": 1000.0, "steps": 200}
    pulled, _ = trained(training.sgd(**strong), key, params=elsewhere)
    for ours, start in zip(pulled, initial, strict=True):
        assert_allclose(ours, start, atol=0.05)
    unmoved, _ = trained(training.sgd(**PLAIN | {"step_size": 1e-9}), key, params=elsewhere)
    for ours, start in zip(unmoved, elsewhere, strict=True):
        assert_allclose(ours, start, atol=1e-6)


@pytest.mark.parametrize("method", ["sgd", "gradient-descent"])
def test_divergence_is_reported(key, method):
    wild = {"step_size": 10.0, "steps": 40, "pull": 1.0}
    train = training.sgd(**wild, batch_size=8) if method == "sgd" else training.gradient_descent(**wild)
    assert trained(train, key)[1].diverged
    calm = training.sgd(**PLAIN) if method == "sgd" else training.gradient_descent(step_size=1e-4, steps=5, pull=1.0)
    assert not trained(calm, key)[1].diverged


def test_a_network_that_exploded_and_died_is_reported_though_its_loss_is_finite(key):
    """All units dead is a zero network with a modest loss: only the way there tells."""
    train = training.sgd(**PLAIN | {"step_size": 3.0, "steps": 3, "pull": 0.0})
    weights, info = trained(train, key, history(scale=100.0))
    if np.isfinite(info.loss):
        assert all(np.isfinite(leaf).all() for leaf in weights)
    assert info.diverged


@pytest.mark.parametrize("method", ["sgd", "gradient-descent"])
def test_an_explosion_in_the_only_step_is_reported(key, method):
    wild = {"step_size": 1e3, "steps": 1, "pull": 1.0}
    train = training.sgd(**wild, batch_size=8) if method == "sgd" else training.gradient_descent(**wild)
    assert trained(train, key)[1].diverged


def test_nothing_observed_means_nothing_learned(key):
    nothing = history()._replace(seen=jnp.int32(0), rounds=jnp.int32(5))
    for train in (training.sgd(**PLAIN), training.gradient_descent(step_size=0.1, steps=3, pull=1.0)):
        weights, info = trained(train, key, nothing)
        assert not info.diverged
        for ours, start in zip(weights, NETWORK.init(jax.random.key(1)), strict=True):
            assert_allclose(ours, start)


def test_the_loss_is_the_mean_over_the_observed_rows(key):
    weights, info = trained(training.sgd(**PLAIN), key)
    record = history()
    values = jax.vmap(NETWORK.apply, (None, 0))(weights, record.contexts[:ROWS])
    assert_allclose(info.loss, 0.5 * ((values - record.rewards[:ROWS]) ** 2).mean(), rtol=1e-5)


def test_an_optax_step_of_plain_sgd_is_the_plain_step(key):
    plain, _ = trained(training.sgd(**PLAIN), key)
    ours, _ = trained(training.sgd(**PLAIN, optimizer=optax.sgd(PLAIN["step_size"])), key)
    for a, b in zip(plain, ours, strict=True):
        assert_allclose(a, b, rtol=1e-5, atol=1e-7)
