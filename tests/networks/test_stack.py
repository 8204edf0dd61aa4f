"""Networks beyond the paper's: equal to transcriptions, gradients, encodings, and in every algorithm with a network."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import InputError, OnlineBandit, build, labelled, run
from neuralucb.algorithms import ALGORITHMS, Task
from neuralucb.algorithms.networks import make_network
from neuralucb.gradients import Block, dense
from neuralucb.networks import cnn, embedding, heads, layer_norm, mlp, residual
from neuralucb.policy import Slot
from neuralucb.settings import read_settings
from tests.networks.helpers import compiled, gradients, many
from tests.nightly import in_ci
from tests.problems.rows import X, Y
from tests.reference import networks as reference

WIDTH, CATEGORIES = 6, {1: 3, 4: 5}
MADE = {
    "residual": lambda **shape: residual(9, depth=4, **shape),
    "layer-norm": lambda **shape: layer_norm(9, depth=3, **shape),
    "embedding": lambda **shape: embedding(9, categories=CATEGORIES, size=2, depth=3, **shape),
    "cnn": lambda **shape: cnn(5 * 4 * 2, image=(5, 4, 2), **shape),
}
FORWARDS = {
    "residual": lambda params, x: reference.residual(params, x),
    "layer-norm": lambda params, x: reference.layer_norm(params, x),
    "embedding": lambda params, x: reference.embedding(params[:2], params[2:], x, tuple(CATEGORIES)),
    "cnn": lambda params, x: reference.cnn(params[:2], params[2:], x.reshape(5, 4, 2)),
}


def context(name, *, code=2.0):
    x = np.random.default_rng(0).normal(size=40 if name == "cnn" else 9)
    if name == "embedding":
        x[list(CATEGORIES)] = 1, code
    return x


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", MADE)
def test_the_value_is_the_transcriptions(name, key):
    network = compiled(MADE[name](width=WIDTH, scaling="standard", dtype="float64"))
    params, x = jax.tree.map(np.asarray, network.init(key)), context(name)
    expected = FORWARDS[name](list(params), x)
    assert_allclose(network.apply(params, x), expected, rtol=1e-12)
    rows = np.stack([x, 0.5 * x])
    assert_allclose(many(network, params, rows)[0], expected, rtol=1e-12)
    assert_allclose(params[-1] @ np.asarray(network.last_layer(params, x)), expected, rtol=1e-12)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    "shape",
    [{"scaling": "tangent"}, {"scaling": "standard", "biases": True, "duplicate": True}],
    ids=["tangent", "biases"],
)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("shared", [False, True], ids=["own contexts", "heads"])
def test_the_tangent_is_the_gradient_over_the_scale(name, shape, shared, key):
    network = MADE[name](width=WIDTH, dtype="float64", **shape)
    x = context(name)
    if shared:
        network, x = heads(network, 3), Slot(x, np.int32(1))
    network = compiled(network)
    params = network.init(key)
    value, gradient, automatic = gradients(network, params, x)
    factor = np.sqrt(WIDTH) if shape["scaling"] == "tangent" else 1
    assert_allclose(value, network.apply(params, x), rtol=1e-12)
    assert_allclose(gradient, automatic / factor, rtol=1e-10, atol=1e-12)
    assert gradient.size == sum(leaf.size for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize("name", MADE)
def test_symmetric_starts_at_zero_everywhere(name, key):
    network = compiled(MADE[name](width=WIDTH, initialization="symmetric", scaling="standard"))
    params, x = network.init(key), context(name).astype(np.float32)
    assert abs(float(network.apply(params, x))) < 1e-5
    assert np.abs(gradients(network, params, x)[1]).max() > 0.01


def test_a_residual_network_of_two_layers_is_the_papers(key):
    ours, papers = (compiled(make(9, width=WIDTH, depth=2)) for make in (residual, mlp))
    params, x = papers.init(key), context("residual").astype(np.float32)
    assert_allclose(ours.apply(params, x), papers.apply(params, x), rtol=1e-6)
    jax.tree.map(
        lambda a, b: assert_allclose(a, b, rtol=1e-5, atol=1e-7),
        ours.tangent(params, x)[1],
        papers.tangent(params, x)[1],
    )


def test_a_category_moves_its_own_row_and_an_unknown_one_none(key):
    network = compiled(MADE["embedding"](width=WIDTH))
    params = network.init(key)
    written_out = jax.jit(lambda table: dense((table,)))
    for code, row in ((2.0, 2), (-1.0, None), (5.0, None)):
        x = context("embedding", code=code).astype(np.float32)
        table = network.tangent(params, x)[1][1]
        assert isinstance(table, Block)
        moved = np.flatnonzero(np.asarray(written_out(table)).reshape(5, 2).any(axis=1))
        assert list(moved) == ([] if row is None else [row])
    missing, other = (context("embedding", code=code).astype(np.float32) for code in (-1.0, 7.0))
    assert_allclose(network.apply(params, missing), network.apply(params, other), rtol=1e-6)


SETTINGS = {
    "residual": {"depth": 4},
    "layer-norm": {"depth": 3},
    "embedding": {"categories": {0: 3}, "embedding_size": 2},
    "cnn": {"image": "3x2"},
}
SMALL = {"width": 4, "steps": 3, "batch_size": 4}


@pytest.mark.parametrize("shared", [False, True], ids=["own contexts", "shared"])
@pytest.mark.parametrize("network", in_ci(SETTINGS, "embedding", "cnn"))
def test_bandits_decide_and_learn_with_it(network, shared):
    """NeuralMix, in learned units; and NeuralUCB by a design that asks for layers where arms share a context."""
    name, own = ("neural-ucb", {"design": "kronecker"}) if shared else ("neural-mix", {})
    policy = build(name, dim=6, shared_by=3 if shared else None, network=network, **SETTINGS[network], **SMALL, **own)
    world = np.random.default_rng(0)
    with OnlineBandit(policy, schedule="3") as bandit:
        for _ in range(4):
            x = np.append(world.integers(0, 3), world.uniform(0, 100, size=5))
            decision = bandit.select(x if shared else np.stack([x, x + 1]))
            bandit.observe(decision.id, float(world.normal()))
        health = bandit.health()
        assert (health.learned, health.refused, health.failure) == (1, 0, None)


def test_learned_units_leave_the_codes_of_categories_alone():
    trained = SMALL | {"steps": 30, "width": 16}  # of four units all may be off
    policy = build("neural-ucb", dim=2, network="embedding", categories="0:40", design="diagonal", **trained)
    with OnlineBandit(policy, schedule="5") as bandit:
        for code, reward in (
            (3, -1.0),
            (9, 3.0),
            (30, 5.0),
            (3, -1.0),
            (9, 3.0),
        ):  # none is the mean, where nothing moves
            bandit.observe(bandit.select(np.array([[code, 100.0 * code]])).id, reward)
        table = np.asarray(bandit.state.belief.inner.params[0] - bandit.state.belief.inner.initial[0])
    assert list(np.flatnonzero(np.abs(table).max(axis=1) > 1e-3)) == [3, 9, 30]


@pytest.mark.parametrize("encoding", ["heads", "concat", "disjoint"])
@pytest.mark.parametrize("name", ["residual", "layer-norm"])
def test_dense_networks_take_every_encoding(name, encoding, key):
    settings = read_settings(
        ALGORITHMS["neural-ucb"].settings, {"network": name, "encoding": encoding, "width": 4}, of="neural-ucb"
    )
    network = compiled(make_network(name, Task(4, None, 3), settings))
    _, gradient, automatic = gradients(network, network.init(key), Slot(np.ones(4, np.float32), np.int32(2)))
    assert_allclose(gradient, automatic, rtol=1e-4, atol=1e-6)


def test_labelled_data_are_played_by_a_convolutional_network():
    result = run("neural-ucb", labelled(X, Y), rounds=20, seeds=2, schedule="10", network="cnn", image="1x3", **SMALL)
    assert result.diverged == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "embedding"}, "categories must name at least one column.*got none; .* network=mlp"),
        ({"network": "embedding", "categories": "7:3"}, "columns from 0 to 5, .* got 7:3"),
        ({"network": "embedding", "categories": "0:0"}, "at least one category of each, got 0:0"),
        ({"categories": "0-3"}, "must be columns and how many categories each has, such as 0:5,3:12, got '0-3'"),
        ({"categories": "0:3,0:4"}, "must name each column once"),
        ({"network": "cnn"}, "image must be given for contexts of 6 numbers, which are no square"),
        ({"network": "cnn", "image": (2, 2)}, "image must have 6 numbers, as a context has, got 2x2: 4"),
        ({"image": "large"}, "must be auto, or an image's height, width and perhaps channels.*got 'large'"),
        ({"categories": "0:3"}, "categories must not be set with network=mlp, .* got '0:3'; take network=embedding"),
        ({"network": "residual", "image": "3x2"}, "image must not be set with network=residual, .*take network=cnn"),
        ({"network": "residual", "depth": 1}, "depth .L. must be a whole number ≥ 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_cure(settings, message):
    with pytest.raises(InputError, match=message):
        build("neural-ucb", dim=6, **settings)


def test_an_encoding_that_a_network_does_not_have_is_refused():
    with pytest.raises(InputError, match="encoding must be heads with network=cnn, got 'disjoint'; set encoding=heads"):
        build("neural-ucb", dim=9, shared_by=2, network="cnn", encoding="disjoint")


def test_the_command_line_knows_them(command):
    code, out, _ = command("list")
    assert code == 0
    assert all(name in out for name in MADE)
    small = [f"--set={name}={value}" for name, value in (SMALL | {"network": "cnn"}).items()]
    code, out, err = command("run", "neural-ucb", "digits", "--rounds", "20", "--seeds", "1", *small)
    assert code == 0, err
