"""Linear algebra of a kernel matrix that fills most of the memory: its tiles, its Cholesky factor, its checks."""

import math
from itertools import combinations_with_replacement

import numpy as np
import scipy.linalg

from neuralucb.runtime.errors import InputError

__all__ = ["check_kernel", "check_regularization", "factor_in_place", "log_dets", "solve_lower", "tiles"]

TILE = 128
"""Rows and columns of a tile: the few arrays that computing one takes stay in a core's cache."""

BLOCK = 512
"""Rows that are checked at a time, so that a check needs little memory beside the matrix."""

SYMMETRIC = 1e-5
"""Relative to the largest diagonal entry: how far a kernel computed in float32 may be from its transpose."""

PROBES = 8
"""Vectors of random signs that measure the rows of L⁻¹: it is next to impossible that all of them miss a row."""

MARGIN = 16
"""Times n · 2.2e-16: a smallest eigenvalue above it leaves a digit or more of what is computed from the factor."""


def tiles(rows: int, columns: int | None = None, *, size: int | None = None) -> list[tuple[slice, slice]]:
    """The tiles of a matrix; of a symmetric one, without `columns`, those on and above the diagonal."""
    size = size or TILE
    down = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if columns is None:
        return list(combinations_with_replacement(down, 2))
    across = [slice(start, min(start + size, columns)) for start in range(0, columns, size)]
    return [(up, left) for up in down for left in across]


def factor_in_place(matrix: np.ndarray) -> np.ndarray:
    """L with L Lᵀ = matrix, in the memory of the matrix.

    Raises LinAlgError, a ValueError, where the matrix is not positive definite to working precision, even if
    rounding happened to let the factorization through.
    """
    diagonal = np.diagonal(matrix).copy()
    try:
        # the transpose of rows is columns, which LAPACK overwrites; given rows, SciPy would copy all of them
        factor = scipy.linalg.cholesky(matrix.T, lower=False, overwrite_a=True, check_finite=False).T
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError("matrix must be positive definite, and is not to working precision.") from None
    if _is_singular(factor, diagonal):
        raise np.linalg.LinAlgError("matrix must be positive definite, and is singular to working precision.")
    return factor


def log_dets(factor: np.ndarray) -> np.ndarray:
    """log det of every leading block of the matrix that was factored: of its first 1, 2, …, n rows."""
    return 2 * np.cumsum(np.log(np.diagonal(factor)))


def solve_lower(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """L⁻¹ right; for a vector v, the squares of its first k numbers add up to vᵀM⁻¹v of the leading block of k rows."""
    return np.asarray(scipy.linalg.solve_triangular(factor, right, lower=True, check_finite=False))


def check_kernel(kernel: np.ndarray) -> None:
    """Raise InputError unless it is a square symmetric matrix of finite numbers in float64, of one row at least."""
    if not isinstance(kernel, np.ndarray) or kernel.dtype != np.float64 or kernel.ndim != 2:
        got = f"{kernel.dtype} of shape {kernel.shape}" if isinstance(kernel, np.ndarray) else type(kernel).__name__
        raise InputError(f"kernel must be a square matrix in float64, got {got}; see `tangent_kernel`.")
    if kernel.shape[0] != kernel.shape[1] or not len(kernel):
        raise InputError(f"kernel must be a square matrix in float64 of one row or more, got shape {kernel.shape}.")
    for start in range(0, len(kernel), BLOCK):
        rows = kernel[start : start + BLOCK]
        if not np.isfinite(rows).all():
            bad = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise InputError(f"kernel must be finite, got NaN or infinity in row {bad}; look at context {bad}.")
    allowed = SYMMETRIC * float(np.abs(np.diagonal(kernel)).max())
    for start in range(0, len(kernel), BLOCK):
        apart = np.abs(kernel[start : start + BLOCK, start:] - kernel[start:, start : start + BLOCK].T)
        if apart.max() > allowed:
            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
            raise InputError(
                f"kernel must be symmetric, got {kernel[start + row, start + column]:g} at "
                f"({start + row}, {start + column}) and {kernel[start + column, start + row]:g} at "
                f"({start + column}, {start + row}); a kernel between two sets of contexts has no log det."
            )


def check_regularization(regularization: float) -> None:
    """Raise InputError unless λ is a positive number."""
    if not 0 < regularization < math.inf:
        raise InputError(f"regularization must be positive and finite, got {regularization}; d̃ divides H by it.")


def _is_singular(factor: np.ndarray, diagonal: np.ndarray) -> bool:
    """Whether the matrix that was factored, whose diagonal is given, is singular to working precision.

    On a singular matrix it is luck whether Cholesky's method ends or fails. What tells is L⁻¹: for a matrix of
    diagonal 1 the squared length of each of its rows is at most 1/(smallest eigenvalue), and for one of them at least
    1/n of that. Scaled to that diagonal, so that contexts of very different norms do not look singular.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(factor), PROBES))
    lengths = (solve_lower(factor, np.sqrt(diagonal)[:, None] * signs) ** 2).mean(axis=1)
    return not float(lengths.max()) * MARGIN * len(factor) * np.finfo(np.float64).eps < 1
