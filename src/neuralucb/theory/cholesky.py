"""Cholesky's factor of a large matrix, in its own memory, block column by block column."""

import numpy as np

from neuralucb.theory.pieces import Progress

__all__ = ["factor_in_place", "is_singular", "log_dets", "solve_lower"]

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
            raise ValueError(
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
