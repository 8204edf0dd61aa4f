"""Classification as a bandit: rounds, scaling, and tables that cannot be played."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, build, compare, run, simulate
from neuralucb.problems import from_file, labelled
from neuralucb.problems.labelled import scale_rows
from tests.pins.play import LATER
from tests.problems.rows import X, Y


def test_a_round_is_a_row_its_arms_and_its_label():
    problem = labelled(X, np.array(["no", "yes"])[Y], input_scaling="none")
    world = problem.init(jax.random.key(0), problem.data)
    assert_array_equal(np.sort(world), np.arange(40))
    for t in range(40):
        now = problem.draw(jax.random.key(1), problem.data, world, jnp.int32(t))
        row = int(world[t])
        assert_allclose(now.contexts.x, np.tile(X[row], (2, 1)), rtol=1e-6)
        assert_array_equal(now.contexts.arm, [0, 1])
        assert_array_equal(now.expected, [1 - Y[row], Y[row]])
        assert now.noise == 0


def test_scaling_does_what_its_name_says():
    rows = np.array([[1.0, 5, 7], [3, 5, 9], [5, 5, 8], [0, 5, 1]])
    assert_allclose(scale_rows(rows, "none"), rows)
    assert_allclose(np.linalg.norm(scale_rows(rows, "unit"), axis=1), 1, rtol=1e-6)
    standard = scale_rows(rows, "standard")
    assert_allclose(np.linalg.norm(standard, axis=1), 1, rtol=1e-6)
    assert_array_equal(standard[:, 1], 0)  # a constant column says nothing
    for value in (0.1, 1 / 3, 1e9 + 0.1):
        with_constant = scale_rows(np.c_[X, np.full(40, value)], "standard")
        assert_array_equal(with_constant[:, 3], 0)
        assert_allclose(with_constant[:, :3], scale_rows(X, "standard"), rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.where(np.arange(120).reshape(40, 3) == 7, np.nan, X), Y, "X must be finite, got nan in row 2, column 1"),
        (X, np.zeros(40), "at least 2 classes"),
        (X, Y[:-1], "one label for each of the 40 rows"),
        (X[0], Y, "table of rows and columns, got shape"),
        (X[:1], Y[:1], "table of at least 2 rows"),
        (X.astype(complex), Y, "column 0 of X must be numbers or words, got complex128"),
        (
            np.where(np.arange(120).reshape(40, 3) == 7, "?", X.astype(str)),
            Y,
            "column 1 of X has a missing value in row 2",
        ),
        (np.ma.masked_greater(X, 1), Y, "must not have masked values"),
        (X, np.ma.masked_equal(Y, 1), "must not have masked values"),
        (X, np.where(np.arange(40) == 3, np.nan, Y), "missing labels, got '.*' in row 3"),
        (X, np.where(np.arange(40) == 3, None, Y), "missing labels, got '.*' in row 3"),
        (X, np.where(np.arange(40) == 3, "NA", Y.astype(str)), "missing labels, got '.*' in row 3"),
        (X, np.arange(40.0), "y must be classes, got 40 different values in 40 rows"),
        (X * 1e300, Y, "size that can be scaled"),
    ],
)
def test_tables_that_cannot_be_played_are_refused(rows, labels, message):
    with pytest.raises(InputError, match=message):
        labelled(rows, labels)


def test_columns_of_words_are_one_hot_in_python_too():
    colour = np.array(["red", "blue"])[Y]
    mixed = np.column_stack([X.astype(object), colour])
    by_hand = np.c_[X, colour == "blue", colour == "red"]
    assert_array_equal(labelled(mixed, Y).data[0], labelled(by_hand, Y).data[0])
    assert_array_equal(labelled(X.astype(str), Y).data[0], labelled(X, Y).data[0])  # numbers, as in a file of text


def test_algorithms_that_have_no_pins_play_shared_contexts(tmp_path):
    """Those that have are played with them in tests/pins, which keep their numbers."""
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    toy = from_file(tmp_path / "toy.npz", None)
    small = {"width": 4, "steps": 3, "batch_size": 4, "networks": 2, "budget": 10}
    names = [*LATER, "lin-ucb", "oracle"]
    results = compare(names, toy, rounds=30, seeds=2, schedule="10", **small)
    assert {result.algorithm for result in results} == set(names)
    assert {result.problem for result in results} == {"toy"}
    assert all(np.isfinite(result.final_regret).all() and result.diverged == 0 for result in results)
    assert not results[-1].regret.any()
    with pytest.raises(InputError, match="rounds must be at most 40, the rows of toy, got 50; .* --repeat"):
        run("lin-ucb", toy, rounds=50, seeds=1)
    assert run("lin-ucb", toy, rounds=50, seeds=1, repeat=True).rounds == 50


def test_an_intercept_is_one_more_column_of_a_scaled_row():
    rows = scale_rows(X, "standard", intercept=True)
    assert rows.shape == (40, 4)
    assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert_allclose(rows[:, :3] / rows[:, 3:], (X - X.mean(0)) / X.std(0), rtol=1e-4, atol=1e-5)
    assert labelled(X, Y, intercept=True).dim == 4


@pytest.mark.parametrize("side", [4, 5])
def test_smooth_rows_are_blurred_images_of_half_the_size(side):
    images = np.random.default_rng(1).random((3, side, side))
    kept = range(0, side, 2)
    expected = []
    for image in images:
        for row in kept:
            for column in kept:
                weights = [
                    [np.exp(-((i - row) ** 2 + (j - column) ** 2) / 2) for j in range(side)] for i in range(side)
                ]
                expected.append(np.average(image, weights=weights))
    whole = np.reshape(expected, (3, len(kept) ** 2))
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    assert_allclose(scale_rows(images.reshape(3, -1), "smooth"), whole, rtol=1e-5)


def test_smooth_needs_square_images():
    with pytest.raises(InputError, match="input_scaling smooth needs .* square images, got 3 columns; use unit"):
        labelled(X, Y, input_scaling="smooth")
    assert run("lin-ucb", "digits", rounds=20, seeds=1, input_scaling="smooth").rounds == 20


def test_rows_that_are_all_alike_are_told_so():
    with pytest.raises(InputError, match="every column is constant"):
        labelled(np.full((4, 2), 5.0), [0, 1, 0, 1])
    labelled(np.full((4, 2), 5.0), [0, 1, 0, 1], intercept=True)
    labelled(np.full((4, 2), 5.0), [0, 1, 0, 1], input_scaling="unit")


def test_numbers_too_small_to_scale_are_refused_without_a_warning():
    with pytest.raises(InputError, match="of a size that can be scaled"):
        labelled(np.arange(8).reshape(4, 2) * 1e-310, [0, 1, 0, 1])


def test_one_run_is_simulated_on_labelled_data():
    policy = build("lin-ucb", dim=3, shared_by=2)
    outcome = simulate(jax.random.key(0), policy, labelled(X, Y), rounds=40, schedule="10")
    assert outcome.trace.arm.shape == (40,)
    assert_allclose(np.cumsum(outcome.trace.regret), run("lin-ucb", labelled(X, Y), seeds=1, schedule="10").regret[0])
