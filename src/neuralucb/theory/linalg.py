"""Cholesky's factor of a large matrix, in its own memory, block column by block column."""

import math

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress

__all__ = [
    "check_kernel",
    "check_regularization",
    "check_rewards",
    "factor_in_place",
    "finite_or_none",
    "is_singular",
    "log_dets",
    "solve_lower",
]

BLOCK = 512


PROBES = 8
"""Random signs with which the rows of L⁻¹ are weighed: a row that all of them miss is next to impossible."""


MARGIN = 16
"""Times n · 2.2e-16: a smallest eigenvalue above it leaves a digit or more of what is computed from the factor."""


def factor_in_place(matrix: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """L with L Lᵀ = matrix, written over the matrix's lower triangle; what is above the diagonal means nothing.

    One n × 512 block beside the matrix is all the memory it takes. A matrix that is not positive definite to working
    precision raises ValueError.
    """
    size = len(matrix)
    starts = range(0, size, BLOCK)
    for done, start in enumerate(starts, 1):
        stop = min(start + BLOCK, size)
        column = matrix[start:, start:stop]
        column -= matrix[start:, :start] @ matrix[start:stop, :start].T
        try:
            column[: stop - start] = np.linalg.cholesky(column[: stop - start])
        except np.linalg.LinAlgError:
            raise InputError(
                f"matrix must be positive definite, and is not within rows {start} to {stop - 1}; "
                "add a regularization, or leave out contexts that are nearly parallel."
            ) from None
        if stop < size:
            column[stop - start :] = column[stop - start :] @ np.linalg.inv(column[: stop - start]).T
        if progress is not None:
            progress(done, len(starts))
    return matrix


def is_singular(factor: np.ndarray, diagonal: np.ndarray) -> bool:
    """Whether the matrix that was factored, whose diagonal is given, is singular to working precision.

    Cholesky's method ends, or fails, by luck on a singular matrix. What tells is L⁻¹: for a matrix of diagonal 1 the
    squared length of each of its rows is at most 1/(smallest eigenvalue), and of one of them at least 1/n of that.
    Scaled to that diagonal, so that contexts of very different norms do not look singular.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(factor), PROBES))
    lengths = (solve_lower(factor, np.sqrt(diagonal)[:, None] * signs) ** 2).mean(axis=1)
    return not float(lengths.max()) * MARGIN * len(factor) * np.finfo(np.float64).eps < 1


def log_dets(factor: np.ndarray) -> np.ndarray:
    """log det of every leading block of the matrix that was factored: of 1, 2, …, n rows."""
    return 2 * np.cumsum(np.log(np.diagonal(factor)))


def solve_lower(factor: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """L⁻¹ vector; the squares of its first k numbers add up to vᵀM⁻¹v of the leading block of k rows.

    A matrix is solved for column by column.
    """
    solution = np.empty_like(vector, dtype=np.float64)
    for start in range(0, len(vector), BLOCK):
        rows = slice(start, min(start + BLOCK, len(vector)))
        left = vector[rows] - factor[rows, :start] @ solution[:start]
        solution[rows] = np.linalg.solve(factor[rows, rows], left)
    return solution


SYMMETRIC = 1e-5
"""Of the largest diagonal entry: what a kernel computed in float32 may differ from its transpose."""


def check_kernel(kernel: np.ndarray) -> None:
    """Raise ValueError unless it is a square symmetric matrix of finite numbers in float64, of one row at least."""
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
                f"({start + row}, {start + column}) and {kernel[start + column, start + row]:g} across; "
                "between two sets of contexts it has no log det."
            )


def check_regularization(regularization: float) -> None:
    """Raise ValueError unless λ is a positive number."""
    if not 0 < regularization < math.inf:
        raise InputError(f"regularization must be positive and finite, got {regularization}; d̃ divides H by it.")


def check_rewards(expected: np.ndarray, contexts: int) -> np.ndarray:
    """Expected rewards in float64, one for each context."""
    h = np.asarray(expected, dtype=np.float64)
    if h.shape != (contexts,):
        raise InputError(f"expected must have a reward for each of the {contexts} contexts, got shape {h.shape}.")
    if not np.isfinite(h).all():
        row = int(np.flatnonzero(~np.isfinite(h))[0])
        raise InputError(f"expected must be finite, got {h[row]} for context {row}; leave it out.")
    return h


def finite_or_none(value: float | None) -> float | None:
    """The number as JSON can have it: None where it is NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)
