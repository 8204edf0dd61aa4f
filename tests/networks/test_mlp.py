"""The network of the paper: its gradient, its initializations, its shapes."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.networks.mlp import INITIALIZATIONS, mlp
from tests.networks.helpers import compiled, gradients

CONTEXT = np.random.default_rng(1).normal(size=6).astype(np.float32)


@pytest.mark.parametrize("scaling", ["tangent", "standard"])
@pytest.mark.parametrize("duplicate", [False, True])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_tangent_is_the_gradient_over_the_scale(key, depth, biases, duplicate, scaling):
    shape = {"width": 8, "depth": depth, "scaling": scaling, "duplicate": duplicate, "biases": biases}
    network = compiled(mlp(6, **shape, initialization="gaussian"))
    weights = network.init(key)
    factor = np.sqrt(8) if scaling == "tangent" else 1
    value, gradient, automatic = gradients(network, weights, CONTEXT)
    assert_allclose(value, network.apply(weights, CONTEXT), rtol=1e-6)
    assert_allclose(gradient, automatic / factor, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("initialization", INITIALIZATIONS)
def test_the_number_of_parameters_is_the_papers(key, depth, initialization):
    weights = jax.eval_shape(mlp(6, width=8, depth=depth, initialization=initialization).init, key)
    assert sum(leaf.size for leaf in weights) == 8 * 6 + 8 * 8 * (depth - 2) + 8


def test_the_papers_experiment_has_420_parameters(key):
    assert sum(leaf.size for leaf in jax.eval_shape(mlp(20, width=20).init, key)) == 420


@pytest.mark.parametrize("scaling", ["tangent", "standard"])
@pytest.mark.parametrize("depth", [2, 3])
def test_symmetric_starts_at_zero_everywhere(key, depth, scaling):
    network = compiled(mlp(5, width=8, depth=depth, initialization="symmetric", scaling=scaling))
    assert abs(float(network.apply(network.init(key), CONTEXT[:5]))) < 1e-6


@pytest.mark.parametrize("depth", [2, 3])
def test_paper_starts_at_zero_only_for_duplicated_contexts(key, depth):
    duplicated = compiled(mlp(6, width=8, depth=depth, initialization="paper", duplicate=True))
    plain = compiled(mlp(6, width=8, depth=depth, initialization="paper"))
    assert abs(float(duplicated.apply(duplicated.init(key), CONTEXT))) < 1e-6
    assert abs(float(plain.apply(plain.init(key), CONTEXT))) > 1e-3


@pytest.mark.parametrize(
    ("initialization", "hidden", "last"), [("paper", 4, 2), ("symmetric", 2, 2), ("gaussian", 2, 1)]
)
def test_the_weights_have_the_variances_of_the_text(key, initialization, hidden, last):
    width = 400
    weights = compiled(mlp(200, width=width, depth=3, initialization=initialization)).init(key)
    first, second, output = (np.asarray(leaf) for leaf in weights)
    deeper = 2 if initialization == "gaussian" else 4
    assert_allclose(first[first != 0].var() * width, hidden, rtol=0.05)
    assert_allclose(second[second != 0].var() * width, deeper, rtol=0.05)
    assert_allclose(output.var() * width, last, rtol=0.25)


@pytest.mark.parametrize("depth", [2, 3])
def test_uniform_with_biases_is_the_network_of_most_libraries(key, depth):
    network = compiled(mlp(6, width=8, depth=depth, initialization="uniform", scaling="standard", biases=True))
    *hidden, last = (np.asarray(leaf) for leaf in network.init(key))
    h = CONTEXT
    for layer in hidden:
        h = np.maximum(layer[:, :-1] @ h + layer[:, -1], 0)
    assert_allclose(network.apply((*hidden, last), CONTEXT), last[:-1] @ h + last[-1], rtol=1e-5)
    wide = compiled(mlp(50, width=400, initialization="uniform", biases=True)).init(key)
    for leaf, fan_in in zip(wide, (50, 400), strict=True):
        assert_allclose(np.abs(leaf).max(), fan_in**-0.5, rtol=0.02)
        assert_allclose(np.asarray(leaf).std(), fan_in**-0.5 / np.sqrt(3), rtol=0.1)


def test_paper_layers_are_two_equal_blocks(key):
    first, output = map(np.asarray, compiled(mlp(6, width=8, initialization="paper")).init(key))
    assert_allclose(first[:4, :3], first[4:, 3:])
    assert not np.asarray(first[:4, 3:]).any()
    assert not np.asarray(first[4:, :3]).any()
    assert_allclose(output[:4], -output[4:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 7, "initialization": "symmetric"}, "width must be even .* got 7"),
        ({"dim": 5, "initialization": "paper"}, "dim must be even .* got 5"),
        ({"depth": 1}, "depth must be at least 2, got 1"),
        ({"initialization": "xavier"}, "paper, symmetric, gaussian"),
        ({"scaling": "big"}, "tangent, standard"),
        ({"biases": True, "initialization": "symmetric"}, "biases must be false"),
    ],
)
def test_shapes_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mlp(**{"dim": 6, "width": 8, **arguments})
