"""The Cholesky factor of a kernel, in place, and the checks of a kernel, block by block."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.theory import tangent_kernel
from neuralucb.theory.linalg import check_kernel, factor_in_place, log_dets, solve_lower, tiles
from tests.theory.helpers import sphere


def test_factor_solves_and_refuses():
    kernel, h = tangent_kernel(sphere(40, 5), depth=2), np.random.default_rng(2).normal(size=40)
    assert_allclose(theory.rkhs_norm_squared(kernel, h), h @ np.linalg.solve(kernel, h), rtol=1e-9)
    assert_allclose(theory.norm_bound(kernel, h) ** 2, 2 * h @ np.linalg.solve(kernel, h), rtol=1e-9)
    with pytest.raises(ValueError, match="positive definite"):
        factor_in_place(kernel - 2 * np.eye(40))


def test_factor_takes_no_memory_of_its_own():
    kernel = tangent_kernel(sphere(40, 5), depth=2)
    kept = kernel.copy()
    factor = factor_in_place(kernel)
    assert np.shares_memory(factor, kernel)
    assert_allclose(np.tril(factor) @ np.tril(factor).T, kept, rtol=1e-12)
    assert_allclose(log_dets(factor)[[0, 6, 39]], [np.linalg.slogdet(kept[:n, :n])[1] for n in (1, 7, 40)], rtol=1e-9)
    v = np.random.default_rng(0).normal(size=40)
    assert_allclose(np.cumsum(solve_lower(factor, v) ** 2)[6], v[:7] @ np.linalg.solve(kept[:7, :7], v[:7]), rtol=1e-9)


def test_a_fault_of_a_kernel_is_found_in_every_block(monkeypatch):
    monkeypatch.setattr("neuralucb.theory.linalg.BLOCK", 7)
    for row, column in ((0, 1), (3, 30), (25, 20), (38, 39)):
        kernel = np.eye(40)
        kernel[row, column] = 5
        low, high = sorted((row, column))
        with pytest.raises(ValueError, match=rf"symmetric, got {kernel[low, high]:g} at \({low}, {high}\) and"):
            check_kernel(kernel)
        kernel[row, column] = np.nan
        with pytest.raises(ValueError, match=f"NaN or infinity in row {row}; look at context {row}"):
            check_kernel(kernel)


def test_tiles_cover_a_matrix_once_and_a_symmetric_one_above_the_diagonal():
    seen = np.zeros((10, 7), int)
    for tile in tiles(10, 7, size=4):
        seen[tile] += 1
    assert (seen == 1).all()
    half = np.zeros((10, 10), int)
    for rows, columns in tiles(10, size=4):
        half[rows, columns] += 1
        if rows != columns:
            half[columns, rows] += 1
    assert (half == 1).all()
