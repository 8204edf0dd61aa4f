"""The pull that is applied late: equal to the step that writes every block, however long a block had no row."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.history import History
from neuralucb.networks import disjoint, late_pull, mlp
from neuralucb.networks.late_pull import ByArm
from neuralucb.policy import Slot
from neuralucb.training import sgd

DIM, WIDTH, ROWS = 3, 6, 20


@cache
def network(arms, **shape):
    network = disjoint(mlp(DIM, width=WIDTH, **shape), arms)
    return network._replace(init=jax.jit(network.init))


def history(arms, seed=0):
    """Rows of all arms but the last, which has none."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(ROWS, DIM)).astype(np.float32)
    arm = generator.integers(0, arms - 1, ROWS).astype(np.int32)
    rewards = generator.normal(size=ROWS).astype(np.float32)
    return History(Slot(x, arm), rewards, np.int32(ROWS), np.int32(ROWS))


def trained(apply, arms, seed=0, **settings):
    """θ from elsewhere than θ_0, so that blocks without a row move too."""
    train = sgd(**{"step_size": 0.02, "steps": 120, "batch_size": 1, "pull": 0.5} | settings)
    initial, start = (network(arms).init(jax.random.key(each)) for each in (seed, seed + 100))
    learn = jax.jit(lambda key, *given: train(key, apply, *given))
    return learn(jax.random.key(seed), start, initial, history(arms, seed))


def difference(one, other):
    return max(float(np.abs(np.asarray(a) - b).max()) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("pull", [0.0, 1e-5, 0.5, 20.0])
@pytest.mark.parametrize("arms", [2, 7])
def test_a_late_pull_is_the_pull_of_every_step(arms, pull, seed):
    late = network(arms).apply_many
    weights, info = trained(late, arms, seed, pull=pull)
    expected, plain = trained(late.many, arms, seed, pull=pull)
    for ours, theirs in zip(weights, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=3e-6)
    assert_allclose(info.loss, plain.loss, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shrinks", [0.3, 0.7, 1.0, 1.5])
def test_blocks_without_a_row_follow_their_powers(shrinks):
    """Also where a step goes to θ_0, or beyond it."""
    late = network(4).apply_many
    weights, _ = trained(late, 4, step_size=shrinks, pull=float(ROWS), steps=5)
    initial, start = (np.asarray(network(4).init(jax.random.key(seed))[0])[3] for seed in (0, 100))
    assert_allclose(np.asarray(weights[0])[3], initial + (1 - shrinks) ** 5 * (start - initial), rtol=1e-4, atol=1e-6)


def test_a_forgotten_pull_would_be_seen(monkeypatch):
    late = network(4).apply_many
    expected, _ = trained(late.many, 4)
    assert difference(trained(late, 4)[0], expected) < 1e-5
    monkeypatch.setattr(late_pull, "_lost", lambda shrink, steps: jnp.zeros(steps.shape, shrink.dtype))
    assert difference(trained(late, 4)[0], expected) > 1e-2


@pytest.mark.parametrize(
    ("settings", "is_late"),
    [({}, True), ({"batch_size": 2}, False), ({"decay": "linear"}, False), ({"steps": "t"}, True)],
)
def test_only_the_plain_step_on_one_row_is_late(settings, is_late):
    """A step that is late never asks for f of many rows, but for the loss at the end."""
    asked = []

    def many(weights, slots):
        asked.append(slots.arm.shape[0])
        return network(3).apply_many.many(weights, slots)

    apply = network(3).apply_many._replace(many=many)
    trained(apply, 3, **settings)
    batch = settings.get("batch_size", 1)
    assert (batch in asked) != is_late


def test_lanes_are_the_runs_one_by_one():
    apply = network(3).apply_many
    train = sgd(step_size=0.02, steps=60, batch_size=1, pull=0.5)
    initial = network(3).init(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 3)

    def one(key):
        return train(key, apply, initial, initial, history(3))[0]

    together, alone = jax.jit(jax.vmap(one))(keys), jax.jit(one)
    for lane, key in enumerate(keys):
        for ours, theirs in zip(together, alone(key), strict=True):
            assert_allclose(np.asarray(ours)[lane], theirs, rtol=1e-5, atol=1e-6)


def test_a_long_time_of_tiny_pulls_is_not_lost_in_rounding():
    """1 - 1e-9 is 1 in float32, but a hundred million such steps are a tenth."""
    weights = (jnp.ones((2, 1, 1)), jnp.ones(1))
    layer = ByArm(lambda *_: None, lambda *_: None, 0)
    origin, steps = jax.tree.map(jnp.zeros_like, weights), jnp.int32(10**8)
    end = late_pull.settle(layer, late_pull.begin(layer, weights), origin, steps, jnp.float32(1e-9))
    assert_allclose(end[0], np.exp(-0.1), rtol=1e-6)
