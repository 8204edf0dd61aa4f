"""Encodings of shared contexts: equal to the network they stand for, in value, gradient, Z and training."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.designs import diagonal, full
from neuralucb.gradients import Block, dense, inner
from neuralucb.history import History
from neuralucb.networks.encodings import concat, disjoint, heads
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.training import sgd
from tests.networks.helpers import compiled, gradients, many
from tests.reference import lin_ucb

DIM, ARMS, WIDTH = 3, 4, 6
VECTOR = jax.jit(dense)


def padded(slot):
    """(0, …, x, …, 0)."""
    rows = np.zeros((ARMS, DIM), np.float32)
    rows[int(slot.arm)] = slot.x
    return rows.ravel()


def padded_weights(weights):
    """[K, m, d] blocks side by side: [m, K d]."""
    return (np.concatenate(list(np.asarray(weights[0])), axis=1), *weights[1:])


def slots(count, seed=0):
    generator = np.random.default_rng(seed)
    arms = generator.integers(0, ARMS, count).astype(np.int32)
    return Slot(generator.normal(size=(count, DIM)).astype(np.float32), arms)


def one(many, index):
    return Slot(many.x[index], many.arm[index])


@pytest.fixture(params=[2, 3], ids=["L=2", "L=3"])
def networks(request):
    shape = {"width": WIDTH, "depth": request.param}
    return compiled(disjoint(mlp(DIM, **shape), ARMS)), compiled(mlp(DIM * ARMS, **shape))


def in_padded_order(gradient):
    """A disjoint gradient as the padded network's vector: blocks side by side."""
    blocks, others = VECTOR((gradient[0],)), VECTOR(gradient[1:])
    return np.concatenate([np.concatenate(list(np.reshape(blocks, (ARMS, WIDTH, DIM))), axis=1).ravel(), others])


def test_disjoint_is_the_zero_padded_network(key, networks):
    ours, theirs = networks
    weights = ours.init(key)
    for index in range(8):
        slot = one(slots(8), index)
        assert_allclose(
            ours.apply(weights, slot), theirs.apply(padded_weights(weights), padded(slot)), rtol=1e-5, atol=1e-6
        )
        expected = VECTOR(theirs.tangent(padded_weights(weights), padded(slot))[1])
        assert_allclose(in_padded_order(ours.tangent(weights, slot)[1]), expected, rtol=1e-5, atol=1e-6)


def test_disjoint_widths_and_determinants_are_those_of_the_zero_padded_network(key, networks):
    ours, theirs = networks
    weights = ours.init(key)
    mine, whole = (
        design._replace(width=jax.jit(design.width), add=jax.jit(design.add), log_det=jax.jit(design.log_det))
        for design in (diagonal(weights, ridge=0.3), diagonal(padded_weights(weights), ridge=0.3))
    )
    z, w = mine.init(), whole.init()
    for index in range(8):
        slot = one(slots(8), index)
        (_, g), (_, h) = ours.tangent(weights, slot), theirs.tangent(padded_weights(weights), padded(slot))
        assert_allclose(mine.width(z, g), whole.width(w, h), rtol=1e-5)
        z, w = mine.add(z, g), whole.add(w, h)
    assert_allclose(mine.log_det(z), whole.log_det(w), rtol=1e-5)
    a, b = (ours.tangent(weights, one(slots(8), index))[1] for index in (0, 1))
    assert_allclose(jax.jit(inner)(a, b), np.asarray(VECTOR(a)) @ VECTOR(b), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batch_size", [8, 300])  # through all blocks, and in tiles
def test_disjoint_training_is_that_of_the_zero_padded_network(key, networks, batch_size):
    ours, theirs = networks
    weights = ours.init(key)
    rows = slots(20)
    rewards = np.random.default_rng(1).normal(size=20).astype(np.float32)
    long_rows = np.stack([padded(one(rows, index)) for index in range(20)])
    train = sgd(step_size=0.05, steps=30, batch_size=batch_size, pull=0.5)
    count = np.int32(20)

    def trained(network, weights, rows):
        learn = jax.jit(lambda weights, history: train(key, network.apply_many, weights, weights, history)[0])
        return learn(weights, History(rows, rewards, count, count))

    mine = trained(ours, weights, rows)
    full_size = trained(theirs, padded_weights(weights), long_rows)
    for a, b in zip(padded_weights(mine), full_size, strict=True):
        assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("initialization", ["uniform", "gaussian"])
def test_disjoint_starts_as_large_as_the_zero_padded_network(key, initialization):
    settings = {"width": 200, "initialization": initialization, "encoding": "disjoint", "units": "given"}
    ours = build("neural-ucb", dim=30, shared_by=9, **settings).init(key).params[0]
    theirs = build("neural-ucb", dim=30 * 9, **settings).init(key).params[0]
    assert_allclose(np.asarray(ours).std(), np.asarray(theirs).std(), rtol=0.05)


@pytest.mark.parametrize("encode", [disjoint, heads])
def test_users_may_take_gradients_of_one_value(key, encode):
    network = compiled(encode(mlp(DIM, width=WIDTH), ARMS))
    _, gradient, automatic = gradients(network, network.init(key), one(slots(4), 2))
    assert_allclose(automatic, gradient * np.sqrt(WIDTH), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("encode", [disjoint, heads])
def test_many_rows_are_the_rows_one_by_one(key, encode):
    network = compiled(encode(mlp(DIM, width=WIDTH, depth=3), ARMS))
    weights, rows = network.init(key), slots(9)
    single = [network.apply(weights, one(rows, index)) for index in range(9)]
    assert_allclose(many(network, weights, rows), single, rtol=1e-5, atol=1e-6)


def test_concat_sees_the_arm(key):
    network = compiled(concat(mlp(DIM + ARMS, width=WIDTH), ARMS))
    weights, rows = network.init(key), slots(9)
    assert_allclose(many(network, weights, rows)[2], network.apply(weights, one(rows, 2)), rtol=1e-5, atol=1e-6)
    x = rows.x[0]
    values = [float(network.apply(weights, Slot(x, np.int32(arm)))) for arm in range(ARMS)]
    assert len(set(values)) == ARMS


def test_disjoint_lin_ucb_is_lin_ucb_on_padded_contexts():
    bandit = build("lin-ucb", dim=DIM, shared_by=ARMS, regularization=0.4, exploration=0.3)
    belief, paper = bandit.init(jax.random.key(0)), lin_ucb.LinUCB(DIM * ARMS, regularization=0.4)
    generator = np.random.default_rng(2)
    for t in range(15):
        x = generator.normal(size=DIM).astype(np.float32)
        contexts = Slot(np.tile(x, (ARMS, 1)), np.arange(ARMS, dtype=np.int32))
        choice = bandit.select(jax.random.key(t), belief, contexts)
        upper = paper.upper([padded(one(contexts, arm)).astype(np.float64) for arm in range(ARMS)], 0.3)
        assert_allclose(choice.score, upper, rtol=1e-6)
        arm, reward = int(choice.arm), float(generator.normal())
        belief = bandit.observe(belief, one(contexts, arm), reward)
        paper.observe(padded(one(contexts, arm)).astype(np.float64), np.float32(reward))


def test_a_block_is_zero_elsewhere(wide):
    block = Block(np.int32(2), np.ones(3), ARMS)
    assert_allclose(np.reshape(VECTOR((block,)), (ARMS, 3)).sum(axis=1), [0, 0, 3, 0])
    design = full(ARMS * 3, ridge=1.0)
    assert jax.jit(lambda g: design.width(design.init(), g))((block,)) == pytest.approx(np.sqrt(3))


def test_contexts_of_another_kind_are_refused():
    bandit = build("neural-ucb", dim=DIM, shared_by=ARMS, width=4)
    belief = bandit.init(jax.random.key(0))
    with pytest.raises(ValueError, match=r"must be a Slot\(x, arm\)"):
        bandit.select(jax.random.key(0), belief, np.zeros((ARMS, DIM), np.float32))
    with pytest.raises(ValueError, match="arm must be from 0 to 3, got 9"):
        bandit.observe(belief, Slot(np.zeros(DIM, np.float32), np.int32(9)), 1.0)
