"""Designs of Z that are not the full one: where they equal it, and against float64 transcriptions where they do not."""

from functools import cache

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
    x = generator.normal(size=(ROUNDS, DIM))
    arms = generator.integers(0, ARMS, ROUNDS).astype(np.int32)
    return x if encoding == "own contexts" else Slot(x, arms)


@cache
def gradients(encoding="own contexts"):
    """A run's, in NumPy: of a network whose weights drift."""
    network = ENCODED[encoding]()

    @jax.jit
    def of_rounds(times, rows):
        weights = network.init(jax.random.key(0))

        def one(t, context):
            drifted = jax.tree.map(lambda w: w * (1 + 0.3 * jnp.sin(t + w)), weights)
            return network.tangent(drifted, context)[1]

        return jax.vmap(one)(times, rows)

    return jax.tree.map(np.asarray, of_rounds(np.arange(ROUNDS) / ROUNDS, contexts(encoding)))


def of_round(rows, t):
    return jax.tree.map(lambda leaf: leaf[t], rows)


def play(design, rows, b=None):
    """The design at the end, widths before each update, and Z⁻¹b at the end if there is a b; as one program."""

    def step(z, g):
        return design.add(z, g), (design.width(z, g), design.log_det(z))

    @jax.jit
    def all_rounds(rows, b):
        z, seen = jax.lax.scan(step, design.init(), rows)
        return z, seen, None if b is None else design.solve(z, b)

    return all_rounds(rows, b)


@cache
def played_in_full(encoding):
    """Widths of the full design, and its solution."""
    rows = gradients(encoding)
    size = size_of(rows)
    _, seen, solved = play(full(size, ridge=RIDGE), rows, np.linspace(-1, 1, size))
    return seen, solved


def size_of(rows):
    """The number of parameters."""
    return jax.eval_shape(dense, of_round(rows, 0)).size


def matrices(gradient):
    """The layers as matrices, a `Block` written out with zeros."""
    return [written_out(layer).reshape(shape_of(layer)) for layer in layers(gradient)]


def written_out(layer):
    """As `dense`, without a program for each shape."""
    if isinstance(layer, Block):
        part = written_out(layer.part)
        return np.concatenate([part * (arm == layer.arm) for arm in range(layer.arms)])
    return np.outer(layer.left, layer.right).ravel() if isinstance(layer, Outer) else np.ravel(layer)


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
    b = np.linspace(-1, 1, size_of(rows))
    _, (widths, log_dets), solved = play(design, rows, b)
    theirs = transcribe(b.size)
    for t in range(ROUNDS):
        layered = matrices(of_round(rows, t))
        assert_allclose(widths[t], theirs.width(layered), rtol=1e-8)
        assert_allclose(log_dets[t], theirs.log_det(), rtol=1e-8, atol=1e-10)
        theirs.add(layered)
    assert_allclose(solved, theirs.solve(b), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_a_projection_is_the_full_design_of_projected_gradients(orthogonal):
    rows = gradients()
    design = random_projection(of_round(rows, 0), size=8, ridge=RIDGE, orthogonal=orthogonal)
    b = np.linspace(-1, 1, size_of(rows))
    z, (widths, log_dets), solved = play(design, rows, b)
    matrix = np.concatenate([np.asarray(part).reshape(8, -1) for part in z.matrix], axis=1)
    theirs = reference.Projected(matrix, RIDGE)
    for t in range(ROUNDS):
        assert_allclose(widths[t], theirs.width(matrices(of_round(rows, t))), rtol=1e-8)
        assert_allclose(log_dets[t], theirs.log_det(), rtol=1e-8, atol=1e-10)
        theirs.add(matrices(of_round(rows, t)))
    assert_allclose(solved, theirs.solve(b), rtol=1e-7, atol=1e-9)
    if orthogonal:
        assert_allclose(matrix @ matrix.T, np.eye(8) * matrix.shape[1] / 8, atol=1e-10)


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("name", ["frequent-directions", "random-projection", "dual"])
def test_with_room_for_all_of_it_a_design_is_the_full_one(name, encoding):
    rows = gradients(encoding)
    like, size = of_round(rows, 0), size_of(rows)
    room = {
        "frequent-directions": lambda: frequent_directions(like, rank=ROUNDS, ridge=RIDGE),
        "random-projection": lambda: random_projection(like, size=size, ridge=RIDGE, orthogonal=True),
        "dual": lambda: dual(like, window=ROUNDS, ridge=RIDGE),
    }[name]()
    _, (widths, log_dets), solved = play(room, rows, np.linspace(-1, 1, size))
    (true_widths, true_log_dets), true_solution = played_in_full(encoding)
    assert_allclose(widths, true_widths, rtol=1e-8)
    assert_allclose(log_dets, true_log_dets, rtol=1e-8, atol=1e-10)
    assert_allclose(solved, true_solution, rtol=1e-7, atol=1e-9)


def last_width(design, rows, g):
    """That of g after all rounds."""
    return jax.jit(lambda rows, g: design.width(play(design, rows)[0], g))(rows, g)


def test_block_diagonal_with_one_layer_is_the_full_one():
    rows = (gradients()[0],)
    like = of_round(rows, 0)
    _, (widths, log_dets), _ = play(block_diagonal(like, ridge=RIDGE), rows)
    _, (true_widths, true_log_dets), _ = play(full(size_of(rows), ridge=RIDGE), rows)
    assert_allclose(widths, true_widths, rtol=1e-12)
    assert_allclose(log_dets, true_log_dets, rtol=1e-12)


@pytest.mark.parametrize("encoding", ENCODED)
def test_the_last_layer_is_the_full_design_of_its_features(encoding):
    network, rows = ENCODED[encoding](), contexts(encoding)

    @jax.jit
    def both(rows):
        weights = network.init(jax.random.key(0))
        directions = jax.vmap(lambda context: network.tangent(weights, context)[1])(rows)
        return directions, jax.vmap(lambda context: network.last_layer(weights, context))(rows)

    directions, features = jax.tree.map(np.asarray, both(rows))
    b = np.linspace(-1, 1, size_of(directions))
    _, ours, solved = play(last_layer(of_round(directions, 0), ridge=RIDGE), directions, b)
    _, theirs, _ = play(exact_design(last_features(network), ridge=RIDGE), features)
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-12), ours, theirs)
    size = size_of(features)
    explicit = reference.LastLayer(size, RIDGE)
    for t in range(ROUNDS):
        feature = np.concatenate([written_out(layer) for layer in layers(of_round(features, t))])
        assert_allclose(ours[0][t], explicit.width([feature]), rtol=1e-9)
        explicit.add(feature)
    assert_allclose(solved[-size:], explicit.solve(b[-size:]), rtol=1e-9)
    assert not solved[:-size].any()


@pytest.mark.parametrize("common", ["left", "right"])
def test_kronecker_is_exact_where_one_factor_keeps_its_direction(common):
    """So it is for a single gradient, and for a layer that is a vector."""
    generator = np.random.default_rng(3)
    varied, fixed = generator.normal(size=(15, 4)), np.outer(generator.normal(size=15), generator.normal(size=3))
    rows = (Outer(fixed, varied) if common == "left" else Outer(varied, fixed), generator.normal(size=(15, 5)))
    _, ours, _ = play(kronecker(of_round(rows, 0), ridge=RIDGE), rows)
    _, theirs, _ = play(block_diagonal(of_round(rows, 0), ridge=RIDGE), rows)
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-9, atol=1e-12), ours, theirs)
    both = Outer(generator.normal(size=(15, 4)), varied)  # the control
    widths, true_widths = (
        np.asarray(play(make(of_round(both, 0), ridge=RIDGE), both)[1][0]) for make in (kronecker, block_diagonal)
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
    z, _, _ = play(design, (layer,))
    width = jax.jit(design.width)
    for arm in range(ARMS):
        own = jax.tree.map(lambda leaf, arm=arm: leaf[layer.arm == arm], (layer.part,))
        alone = make(of_round(own, 0), ridge=RIDGE)
        g = of_round(own, 1)
        found = width(z, (Block(np.int32(arm), g[0], ARMS),))
        assert_allclose(found, last_width(alone, own, g), rtol=1e-9)


def test_a_matrix_that_is_no_outer_product_counts_as_one_layer():
    generator = np.random.default_rng(5)
    rows = {"kernel": generator.normal(size=(12, 3, 2, 2)), "bias": generator.normal(size=12)}
    design = kronecker(of_round(rows, 0), ridge=RIDGE)
    _, (widths, _), _ = play(design, rows)
    theirs = reference.Kronecker(13, RIDGE)
    for t in range(12):
        bias, kernel = rows["bias"][t].reshape(1, 1), rows["kernel"][t].reshape(3, 4)
        assert_allclose(widths[t], theirs.width([bias, kernel]), rtol=1e-9)
        theirs.add([bias, kernel])


def test_frequent_directions_keep_their_promise_in_every_direction():
    """0 ⪯ Σ ggᵀ - BᵀB ⪯ ΔI, Δ at most the tail of the spectrum; widths of the full Z between both bounds."""
    rows = gradients()
    like, rank = of_round(rows, 0), 6
    design = frequent_directions(like, rank=rank, ridge=RIDGE)
    z, _, _ = play(design, rows)
    stacked = np.asarray(jax.jit(jax.vmap(dense))(rows))
    left_out = np.linalg.eigvalsh(stacked.T @ stacked - np.asarray(z.rows).T @ np.asarray(z.rows))
    assert left_out.min() > -1e-9
    assert left_out.max() <= float(z.lost) + 1e-9
    spectrum = np.linalg.eigvalsh(stacked.T @ stacked)[::-1]
    assert 0 < float(z.lost) <= min(spectrum[k:].sum() / (rank + 1 - k) for k in range(rank + 1))
    exact = full(stacked.shape[1], ridge=RIDGE)
    y, _, _ = play(exact, rows)

    @jax.jit
    def widths(z, y, g):
        return *width_bounds(z, g, ridge=RIDGE), exact.width(y, g), design.width(z, g)

    for t in (0, 30, 59):
        low, high, true, stated = map(float, widths(z, y, of_round(rows, t)))
        assert low <= true <= high
        assert_allclose(high, stated, rtol=1e-8)
        assert t or low < 0.999 * high


def test_a_projection_keeps_within_its_bound():
    """One fixed draw against a bound that fails in one of a million: rank 2 in 400 of 1000 dimensions."""
    generator = np.random.default_rng(6)
    rows = generator.normal(size=(20, 2)) @ generator.normal(size=(2, 1000)) / 30
    _, (widths, _), _ = play(random_projection(rows[0], size=400, ridge=RIDGE), rows)
    _, (true_widths, _), _ = play(dual(rows[0], window=20, ridge=RIDGE), rows)
    error = np.abs(np.asarray(widths) / true_widths - 1).max()
    assert 0 < error <= projection_error(400, rank=2, failure=1e-6) < 0.4
    with pytest.raises(InputError, match="size must be from 1 to 1000, the number of parameters, got 1001"):
        random_projection(rows[0], size=1001, ridge=RIDGE)
    with pytest.raises(InputError, match="failure between 0 and 1"):
        projection_error(4, rank=2, failure=0.0)


def test_a_dual_window_stays_exact_over_many_turns():
    """Also at a small ridge, for directions of very different size."""
    generator = np.random.default_rng(4)
    rows = generator.normal(size=(3000, 6)) * [1, 1, 1e-1, 1e-2, 1e-3, 1e-3]
    design = dual(rows[0], window=10, ridge=1e-6)
    z, _, _ = play(design, rows)
    kept = rows[-int(z.seen) :]
    truth = np.sqrt(kept[3] @ np.linalg.solve(1e-6 * np.eye(6) + kept.T @ kept, kept[3]))
    assert_allclose(jax.jit(design.width)(z, kept[3]), truth, rtol=1e-7)


@pytest.mark.parametrize("name", ["frequent-directions", "dual"])
def test_an_update_of_which_no_digit_would_be_left_is_refused(name):
    direction = np.asarray([0.6, 0.48, 0.64])
    make = {
        "frequent-directions": lambda: frequent_directions(direction, rank=2, ridge=1e-3),
        "dual": lambda: dual(direction, window=3, ridge=1e-3),
    }[name]
    design = make()
    width = jax.jit(lambda rows, g: design.width(play(design, rows)[0], g))
    for size, refused in ((1e3, False), (1e7, True)):
        assert np.isnan(width(np.tile(size * direction, (5, 1)), direction)) == refused


def test_parameters_without_an_order_have_no_last_layer():
    with pytest.raises(InputError, match="a tuple of layers, the output layer last.*these are a dict"):
        last_layer({"a": np.ones(2), "b": np.ones(3)}, ridge=1.0)


@pytest.mark.parametrize("factorize", [eigenvectors, inverse_cholesky])
def test_lanes_are_factorized_one_matrix_at_a_time(factorize):
    """A batch in one call of LAPACK waits forever where two programs run side by side."""
    lanes = np.stack([np.eye(4), 2 * np.eye(4), 3 * np.eye(4)])
    calls = [line for line in jax.jit(jax.vmap(factorize)).lower(lanes).as_text().splitlines() if "@lapack" in line]
    assert calls
    assert not [line for line in calls if "3x4x4" in line]
    together, one = jax.jit(jax.vmap(factorize)), jax.jit(factorize)
    jax.tree.map(lambda *each: assert_allclose(each[0], np.stack(each[1:])), together(lanes), *map(one, lanes))
