"""The estimate of log det(I + H/λ) from products with H, and its error."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.theory import tangent_kernel
from neuralucb.theory.log_det import estimate_log_det
from tests.theory.helpers import sphere


def test_estimate_is_within_its_error_of_the_truth():
    x = sphere(400, 6)
    values = np.linalg.eigvalsh(tangent_kernel(x, depth=2))
    for regularization in (0.1, 10.0):
        truth = np.log1p(values / regularization).sum()
        found = estimate_log_det(theory.kernel_product(x, depth=2), 400, regularization=regularization)
        assert abs(found.value - truth) < 4 * found.error
        assert found.error < 0.02 * truth


def test_estimate_of_a_matrix_of_low_rank_is_exact():
    a = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 3)))[0]
    low = estimate_log_det(lambda v: a @ (a.T @ v), 50, regularization=0.5)
    assert_allclose(low.value, 3 * math.log(3), rtol=1e-8)


def test_estimate_for_contexts_that_are_all_zero_is_zero():
    found = estimate_log_det(theory.kernel_product(np.zeros((8, 3)), depth=2), 8, regularization=1.0)
    assert_allclose(found, (0, 0), atol=1e-12)


@pytest.mark.parametrize(("dim", "decades", "regularization"), [(8, 3, 1e-4), (2, 0, 1e-8), (20, 0, 1e-8)])
def test_error_of_an_estimate_is_honest_where_lanczos_has_not_converged(dim, decades, regularization):
    norms = 10.0 ** np.random.default_rng(1).uniform(-decades, decades, size=(300, 1))
    kernel = tangent_kernel(norms * sphere(300, dim), depth=2)
    truth = np.log1p(np.maximum(np.linalg.eigvalsh(kernel), 0) / regularization).sum()
    for seed in range(5):
        found = estimate_log_det(lambda v: kernel @ v, 300, regularization=regularization, seed=seed)
        assert abs(found.value - truth) < 3 * found.error < 1.5 * truth


def test_an_estimate_refuses_a_regularization_below_rounding():
    with pytest.raises(ValueError, match="above the rounding error of 80 contexts' eigenvalues, up to .* got 1e-16"):
        estimate_log_det(theory.kernel_product(sphere(80, 3), depth=2), 80, regularization=1e-16)
