"""The effective dimension: two ways to compute it, the paper's inequalities, and where rounding ends it."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.theory import tangent_kernel
from tests.theory.helpers import gram, lambdas, quick, seeds, sphere


@pytest.mark.parametrize("regularization", [1e-6, 1e-2, 1.0, 1e3])
def test_dimension_by_cholesky_is_that_by_eigenvalues(regularization):
    kernel = tangent_kernel(sphere(60, 3), depth=2)
    kept = kernel.copy()
    by_values = theory.dimension_from_eigenvalues(np.linalg.eigvalsh(kernel), regularization=regularization)
    assert_allclose(theory.effective_dimension(kernel, regularization=regularization), by_values, rtol=1e-9)
    assert_allclose(kernel, kept, atol=0)
    over = theory.dimensions_over_rounds(kernel.copy(), arms=3, regularization=regularization)
    short = [theory.effective_dimension(kernel[:n, :n], regularization=regularization) for n in (3, 30, 60)]
    assert_allclose(over[[0, 9, 19]], short, rtol=1e-9)
    exact = theory.effective_dimension_of(sphere(60, 3), depth=2, regularization=regularization)
    assert_allclose(exact, (by_values, 0), rtol=1e-9)


def test_what_does_not_fit_into_memory_is_estimated(monkeypatch):
    x, seen = sphere(300, 5), []
    truth = theory.effective_dimension(tangent_kernel(x, depth=2), regularization=1.0)
    monkeypatch.setattr("neuralucb.theory.dimension.host_bytes", lambda: 1000)
    found = theory.effective_dimension_of(x, depth=2, regularization=1.0, progress=lambda *at: seen.append(at))
    assert 0 < found.error < 0.02 * truth
    assert abs(found.value - truth) < 4 * found.error
    assert seen[-1] == (25, 25)


@quick
@given(seeds, st.integers(1, 30), st.integers(1, 6), lambdas)
def test_dimension_is_at_most_the_number_of_features(seed, contexts, features, regularization):
    kernel = gram(seed, contexts, features)
    assert theory.effective_dimension(kernel, regularization=regularization) <= min(contexts, features) + 1e-9


def test_dimension_may_exceed_it_where_the_diagonal_is_above_one():
    """The control: the paper's inequality needs ‖ψ(x)‖ ≤ 1, and H has (L + 1)/2 on its diagonal."""
    ones = np.ones((10, 10)) * tangent_kernel(sphere(1, 3), depth=2)[0, 0]
    assert theory.effective_dimension(ones, regularization=1.0) > 1.05


@quick
@given(seeds, st.integers(1, 20), lambdas, st.floats(1.01, 10))
def test_dimension_falls_as_the_regularization_grows(seed, contexts, regularization, factor):
    kernel = gram(seed, contexts, 5)
    small, large = (theory.effective_dimension(kernel, regularization=regularization * f) for f in (1, factor))
    assert large <= small + 1e-9


def test_dimension_of_one_context_grows_with_the_regularization_and_of_a_repeated_one_falls_with_rounds():
    """The control of "usually": H has (L + 1)/2 on its diagonal, not 1."""
    one = tangent_kernel(sphere(1, 3), depth=2)
    over_lambda = [theory.effective_dimension(one, regularization=lam) for lam in (0.01, 1.0, 100.0, 1e6)]
    assert (np.diff(over_lambda) > 0).all()
    assert_allclose(over_lambda[-1], 1.5, rtol=1e-5)
    again = tangent_kernel(np.repeat(sphere(1, 3), 40, axis=0), depth=2)
    assert (np.diff(theory.dimensions_over_rounds(again, arms=4, regularization=1.0)) < 0).all()


@quick
@given(seeds, st.integers(2, 20), lambdas, st.integers(2, 4))
def test_information_grows_with_contexts_and_falls_with_regularization(seed, contexts, regularization, depth):
    kernel = tangent_kernel(sphere(contexts, 4, seed), depth=depth)
    values = np.linalg.eigvalsh(kernel)
    assert values[0] > -1e-12
    assert_allclose(np.diagonal(kernel), (depth + 1) / 2, rtol=1e-12)
    logs = theory.dimensions_over_rounds(kernel.copy(), arms=1, regularization=regularization)
    logs *= np.log1p(np.arange(1, contexts + 1) / regularization)
    assert (np.diff(logs) > -1e-9).all()
    assert np.log1p(values / (2 * regularization)).sum() <= logs[-1] + 1e-9


@quick
@given(seeds, st.integers(1, 15), st.floats(1, 100))
def test_log_det_is_concave_as_lemma_5_4_uses_it(seed, contexts, regularization):
    """log det(I + (H + E)/λ) ≤ log det(I + H/λ) + √n ‖E‖_F for λ ≥ 1."""
    H, other = gram(seed, contexts, 5), gram(seed ^ 1, contexts, 5)
    left = np.linalg.slogdet(np.eye(contexts) + other / regularization)[1]
    right = np.linalg.slogdet(np.eye(contexts) + H / regularization)[1]
    assert left <= right + math.sqrt(contexts) * np.linalg.norm(other - H) + 1e-9


@quick
@given(seeds, st.integers(1, 30), st.floats(0.01, 10), st.floats(0.1, 10))
def test_widths_add_up_to_at_most_twice_the_log_det(seed, rounds, regularization, size):
    """Lemma 11 of Abbasi-Yadkori et al.: Σ min(‖g‖²_{Z⁻¹}, 1) ≤ 2 log(det Z_T/det λI)."""
    rng = np.random.default_rng(seed)
    Z, total = regularization * np.eye(4), 0.0
    for g in size * rng.normal(size=(rounds, 4)):
        total += min(g @ np.linalg.solve(Z, g), 1)
        Z += np.outer(g, g)
    assert total <= 2 * (np.linalg.slogdet(Z)[1] - 4 * math.log(regularization)) + 1e-9


def test_regularization_below_rounding_is_refused():
    twice = tangent_kernel(np.repeat(sphere(30, 4), 2, axis=0), depth=2)
    for regularization in (1e-14, 1e-16, 1e-20, 1e-300):
        with pytest.raises(ValueError, match="regularization must be above the rounding error of 60 contexts"):
            theory.effective_dimension(twice, regularization=regularization)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.effective_dimension(np.eye(3), regularization=0),
            "regularization must be positive and finite, got 0",
        ),
        (lambda: theory.effective_dimension(np.ones((2, 3)), regularization=1), "square matrix in float64"),
        (lambda: theory.dimensions_over_rounds(np.eye(3), arms=2, regularization=1), "arms must divide the 3"),
        (lambda: theory.effective_dimension(np.full((3, 3), np.nan), regularization=1.0), "NaN or infinity in row 0"),
        (lambda: theory.effective_dimension(np.eye(3), regularization=math.inf), "regularization must be positive and"),
        (lambda: theory.effective_dimension(np.zeros((0, 0)), regularization=1.0), "one row or more"),
        (lambda: theory.effective_dimension([[1.0]], regularization=1.0), "float64, got list"),
        (lambda: theory.effective_dimension(np.array([[1.0, 5], [0, 1]]), regularization=1.0), "symmetric, got 5 at"),
        (lambda: theory.dimension_from_eigenvalues(np.array([np.nan]), regularization=1.0), "eigenvalues must be"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()
