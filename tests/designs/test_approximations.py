"""Designs of Z that are not the full one: where they equal it, and against float64 transcriptions where they do not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import InputError
from neuralucb.designs import (
    block_diagonal,
    dual,
    frequent_directions,
    full,
    kronecker,
    last_layer,
    projection_error,
    random_projection,
    width_bounds,
)
from neuralucb.designs.factorizations import eigenvectors, inverse_cholesky
from neuralucb.estimators.features import exact_design, last_layer as last_features
from neuralucb.gradients import Block, Outer, dense, layers
from neuralucb.networks import disjoint, heads, mlp
from neuralucb.policy import Slot
from tests.reference import designs as reference

DIM, WIDTH, ARMS, ROUNDS, RIDGE = 4, 5, 3, 60, 0.3
pytestmark = pytest.mark.usefixtures("wide")
NETWORK = mlp(DIM, width=WIDTH, depth=3, dtype="float64")
ENCODED = {
    "own contexts": lambda: NETWORK,
    "disjoint": lambda: disjoint(NETWORK, ARMS),
    "heads": lambda: heads(NETWORK, ARMS),
}


def contexts(encoding):
    generator = np.random.default_rng(1)
    x = jnp.asarray(generator.normal(size=(ROUNDS, DIM)))
    arms = jnp.asarray(generator.integers(0, ARMS, ROUNDS), jnp.int32)
    return x if encoding == "own contexts" else Slot(x, arms)


def gradients(encoding="own contexts"):
    """A run's: of a network whose weights drift."""
    network, rows = ENCODED[encoding](), contexts(encoding)
    weights = network.init(jax.random.key(0))

    def one(t, context):
        drifted = jax.tree.map(lambda w: w * (1 + 0.3 * jnp.sin(t + w)), weights)
        return network.tangent(drifted, context)[1]

    return jax.jit(jax.vmap(one))(jnp.arange(ROUNDS) / ROUNDS, rows)


def of_round(rows, t):
    return jax.tree.map(lambda leaf: leaf[t], rows)


def play(design, rows):
    """Widths before each update, and the design at the end."""

    def step(z, g):
        return design.add(z, g), (design.width(z, g), design.log_det(z))

    return jax.jit(lambda rows: jax.lax.scan(step, design.init(), rows))(rows)


def matrices(gradient):
    """The layers as NumPy has them, a `Block` written out with zeros."""
    return [np.asarray(dense(layer)).reshape(shape_of(layer)) for layer in layers(jax.tree.map(np.asarray, gradient))]


def shape_of(layer):
    if isinstance(layer, Block):
        return (layer.arms, *shape_of(layer.part))
    return (layer.left.size, layer.right.size) if isinstance(layer, Outer) else layer.shape


SIZES = {"own contexts": (WIDTH * DIM, WIDTH**2, WIDTH), "disjoint": None, "heads": None}
TRANSCRIBED = {
    "block-diagonal": (block_diagonal, {}, lambda p: reference.BlockDiagonal(p, RIDGE, SIZES["own contexts"])),
    "kronecker": (kronecker, {}, lambda p: reference.Kronecker(p, RIDGE)),
    "frequent-directions": (frequent_directions, {"rank": 6}, lambda p: reference.FrequentDirections(p, RIDGE, 6)),
    "dual": (dual, {"window": 11}, lambda p: reference.Window(p, RIDGE, 11)),
}


@pytest.mark.parametrize("name", TRANSCRIBED)
def test_every_round_is_that_of_the_transcription(name):
    make, size, transcribe = TRANSCRIBED[name]
    rows = gradients()
    like = of_round(rows, 0)
    design = make(like, ridge=RIDGE, **size)
    z, (widths, log_dets) = play(design, rows)
    theirs = transcribe(dense(like).size)
    for t in range(ROUNDS):
        layered = matrices(of_round(rows, t))
        assert_allclose(widths[t], theirs.width(layered), rtol=1e-8)
        assert_allclose(log_dets[t], theirs.log_det(), rtol=1e-8, atol=1e-10)
        theirs.add(layered)
    b = np.linspace(-1, 1, dense(like).size)
    assert_allclose(design.solve(z, jnp.asarray(b)), theirs.solve(b), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_a_projection_is_the_full_design_of_projected_gradients(orthogonal):
    rows = gradients()
    design = random_projection(of_round(rows, 0), size=8, ridge=RIDGE, orthogonal=orthogonal)
    z, (widths, log_dets) = play(design, rows)
    matrix = np.concatenate([np.asarray(part).reshape(8, -1) for part in z.matrix], axis=1)
    theirs = reference.Projected(matrix, RIDGE)
    for t in range(ROUNDS):
        assert_allclose(widths[t], theirs.width(matrices(of_round(rows, t))), rtol=1e-8)
        assert_allclose(log_dets[t], theirs.log_det(), rtol=1e-8, atol=1e-10)
        theirs.add(matrices(of_round(rows, t)))
    b = np.linspace(-1, 1, matrix.shape[1])
    assert_allclose(design.solve(z, jnp.asarray(b)), theirs.solve(b), rtol=1e-7, atol=1e-9)
    if orthogonal:
        assert_allclose(matrix @ matrix.T, np.eye(8) * matrix.shape[1] / 8, atol=1e-10)


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("name", ["frequent-directions", "random-projection", "dual"])
def test_with_room_for_all_of_it_a_design_is_the_full_one(name, encoding):
    rows = gradients(encoding)
    like, size = of_round(rows, 0), dense(of_round(rows, 0)).size
    room = {
        "frequent-directions": lambda: frequent_directions(like, rank=ROUNDS, ridge=RIDGE),
        "random-projection": lambda: random_projection(like, size=size, ridge=RIDGE, orthogonal=True),
        "dual": lambda: dual(like, window=ROUNDS, ridge=RIDGE),
    }[name]()
    z, (widths, log_dets) = play(room, rows)
    exact = full(size, ridge=RIDGE)
    y, (true_widths, true_log_dets) = play(exact, rows)
    assert_allclose(widths, true_widths, rtol=1e-8)
    assert_allclose(log_dets, true_log_dets, rtol=1e-8, atol=1e-10)
    b = jnp.linspace(-1, 1, size)
    assert_allclose(room.solve(z, b), exact.solve(y, b), rtol=1e-7, atol=1e-9)


def test_block_diagonal_with_one_layer_is_the_full_one():
    rows = (gradients()[0],)
    like = of_round(rows, 0)
    _, (widths, log_dets) = play(block_diagonal(like, ridge=RIDGE), rows)
    _, (true_widths, true_log_dets) = play(full(dense(like).size, ridge=RIDGE), rows)
    assert_allclose(widths, true_widths, rtol=1e-12)
    assert_allclose(log_dets, true_log_dets, rtol=1e-12)


@pytest.mark.parametrize("encoding", ENCODED)
def test_the_last_layer_is_the_full_design_of_its_features(encoding):
    network, rows = ENCODED[encoding](), contexts(encoding)
    weights = network.init(jax.random.key(0))
    directions = jax.vmap(lambda context: network.tangent(weights, context)[1])(rows)
    features = jax.vmap(lambda context: network.last_layer(weights, context))(rows)
    design = last_layer(of_round(directions, 0), ridge=RIDGE)
    z, ours = play(design, directions)
    _, theirs = play(exact_design(last_features(network), ridge=RIDGE), features)
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-12), ours, theirs)
    size = dense(of_round(features, 0)).size
    explicit = reference.LastLayer(size, RIDGE)
    for t in range(ROUNDS):
        assert_allclose(ours[0][t], explicit.width([dense(of_round(features, t))]), rtol=1e-9)
        explicit.add(np.asarray(dense(of_round(features, t))))
    b = np.linspace(-1, 1, dense(of_round(directions, 0)).size)
    solved = design.solve(z, jnp.asarray(b))
    assert_allclose(solved[-size:], explicit.solve(b[-size:]), rtol=1e-9)
    assert not solved[:-size].any()


@pytest.mark.parametrize("common", ["left", "right"])
def test_kronecker_is_exact_where_one_factor_keeps_its_direction(common):
    """So it is for a single gradient, and for a layer that is a vector."""
    generator = np.random.default_rng(3)
    varied, fixed = generator.normal(size=(15, 4)), np.outer(generator.normal(size=15), generator.normal(size=3))
    rows = (Outer(fixed, varied) if common == "left" else Outer(varied, fixed), generator.normal(size=(15, 5)))
    rows = jax.tree.map(jnp.asarray, rows)
    _, ours = play(kronecker(of_round(rows, 0), ridge=RIDGE), rows)
    _, theirs = play(block_diagonal(of_round(rows, 0), ridge=RIDGE), rows)
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-9, atol=1e-12), ours, theirs)
    both = Outer(jnp.asarray(generator.normal(size=(15, 4))), jnp.asarray(varied))  # the control
    widths, true_widths = (
        play(make(of_round(both, 0), ridge=RIDGE), both)[1][0] for make in (kronecker, block_diagonal)
    )
    assert_allclose(widths[:2], true_widths[:2], rtol=1e-9)
    assert np.abs(widths / true_widths - 1).max() > 0.01


@pytest.mark.parametrize("make", [block_diagonal, kronecker])
@pytest.mark.parametrize("encoding", ["disjoint", "heads"])
def test_the_layer_of_each_arm_has_a_block_of_its_own(make, encoding):
    """An arm that was never played is as wide as at the start; as if its rows alone were all there were."""
    rows = gradients(encoding)
    place = 0 if encoding == "disjoint" else -1
    layer = rows[place]
    design = make(of_round((layer,), 0), ridge=RIDGE)
    z, _ = play(design, (layer,))
    for arm in range(ARMS):
        own = jax.tree.map(lambda leaf, arm=arm: leaf[np.asarray(layer.arm) == arm], (layer.part,))
        alone = make(of_round(own, 0), ridge=RIDGE)
        y, _ = play(alone, own)
        g = of_round(own, 1)
        assert_allclose(design.width(z, (Block(jnp.int32(arm), g[0], ARMS),)), alone.width(y, g), rtol=1e-9)


def test_a_matrix_that_is_no_outer_product_counts_as_one_layer():
    generator = np.random.default_rng(5)
    rows = {"kernel": jnp.asarray(generator.normal(size=(12, 3, 2, 2))), "bias": jnp.asarray(generator.normal(size=12))}
    design = kronecker(of_round(rows, 0), ridge=RIDGE)
    _, (widths, _) = play(design, rows)
    theirs = reference.Kronecker(13, RIDGE)
    for t in range(12):
        bias, kernel = np.asarray(rows["bias"][t]).reshape(1, 1), np.asarray(rows["kernel"][t]).reshape(3, 4)
        assert_allclose(widths[t], theirs.width([bias, kernel]), rtol=1e-9)
        theirs.add([bias, kernel])


def test_frequent_directions_keep_their_promise_in_every_direction():
    """0 ⪯ Σ ggᵀ - BᵀB ⪯ ΔI, Δ at most the tail of the spectrum; widths of the full Z between both bounds."""
    rows = gradients()
    like, rank = of_round(rows, 0), 6
    design = frequent_directions(like, rank=rank, ridge=RIDGE)
    z, _ = play(design, rows)
    stacked = np.asarray(jax.vmap(dense)(rows))
    left_out = np.linalg.eigvalsh(stacked.T @ stacked - np.asarray(z.rows).T @ np.asarray(z.rows))
    assert left_out.min() > -1e-9
    assert left_out.max() <= float(z.lost) + 1e-9
    spectrum = np.linalg.eigvalsh(stacked.T @ stacked)[::-1]
    assert 0 < float(z.lost) <= min(spectrum[k:].sum() / (rank + 1 - k) for k in range(rank + 1))
    exact = full(stacked.shape[1], ridge=RIDGE)
    y, _ = play(exact, rows)
    for t in (0, 30, 59):
        low, high = width_bounds(z, of_round(rows, t), ridge=RIDGE)
        assert low <= exact.width(y, of_round(rows, t)) <= high
        assert_allclose(high, design.width(z, of_round(rows, t)), rtol=1e-8)
    assert width_bounds(z, like, ridge=RIDGE)[0] < 0.999 * width_bounds(z, like, ridge=RIDGE)[1]


def test_a_projection_keeps_within_its_bound():
    """One fixed draw against a bound that fails in one of a million: rank 2 in 400 of 1000 dimensions."""
    generator = np.random.default_rng(6)
    rows = jnp.asarray(generator.normal(size=(20, 2)) @ generator.normal(size=(2, 1000)) / 30)
    _, (widths, _) = play(random_projection(rows[0], size=400, ridge=RIDGE), rows)
    _, (true_widths, _) = play(dual(rows[0], window=20, ridge=RIDGE), rows)
    error = np.abs(widths / true_widths - 1).max()
    assert 0 < error <= projection_error(400, rank=2, failure=1e-6) < 0.4
    with pytest.raises(InputError, match="size must be from 1 to 1000, the number of parameters, got 1001"):
        random_projection(rows[0], size=1001, ridge=RIDGE)
    with pytest.raises(InputError, match="failure between 0 and 1"):
        projection_error(4, rank=2, failure=0.0)


def test_a_dual_window_stays_exact_over_many_turns():
    """Also at a small ridge, for directions of very different size."""
    generator = np.random.default_rng(4)
    rows = jnp.asarray(generator.normal(size=(3000, 6)) * [1, 1, 1e-1, 1e-2, 1e-3, 1e-3])
    design = dual(rows[0], window=10, ridge=1e-6)
    z, _ = play(design, rows)
    kept = np.asarray(rows[-int(z.seen) :])
    truth = np.sqrt(kept[3] @ np.linalg.solve(1e-6 * np.eye(6) + kept.T @ kept, kept[3]))
    assert_allclose(design.width(z, jnp.asarray(kept[3])), truth, rtol=1e-7)


@pytest.mark.parametrize("name", ["frequent-directions", "dual"])
def test_an_update_of_which_no_digit_would_be_left_is_refused(name):
    direction = jnp.asarray([0.6, 0.48, 0.64])
    make = {
        "frequent-directions": lambda: frequent_directions(direction, rank=2, ridge=1e-3),
        "dual": lambda: dual(direction, window=3, ridge=1e-3),
    }[name]
    design = make()
    for size, refused in ((1e3, False), (1e7, True)):
        z = design.init()
        for _ in range(5):
            z = design.add(z, size * direction)
        assert np.isnan(design.width(z, direction)) == refused


def test_parameters_without_an_order_have_no_last_layer():
    with pytest.raises(InputError, match="a tuple of layers, the output layer last.*these are a dict"):
        last_layer({"a": jnp.ones(2), "b": jnp.ones(3)}, ridge=1.0)


@pytest.mark.parametrize("factorize", [eigenvectors, inverse_cholesky])
def test_lanes_are_factorized_one_matrix_at_a_time(factorize):
    """A batch in one call of LAPACK waits forever where two programs run side by side."""
    lanes = jnp.stack([jnp.eye(4), 2 * jnp.eye(4), 3 * jnp.eye(4)])
    calls = [line for line in jax.jit(jax.vmap(factorize)).lower(lanes).as_text().splitlines() if "@lapack" in line]
    assert calls
    assert not [line for line in calls if "3x4x4" in line]
    jax.tree.map(
        lambda *each: assert_allclose(each[0], np.stack(each[1:])), jax.vmap(factorize)(lanes), *map(factorize, lanes)
    )
