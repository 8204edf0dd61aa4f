"""Cholesky's factor of a large matrix, in its own memory, block column by block column."""

import numpy as np

from neuralucb.theory.pieces import Progress

__all__ = ["factor_in_place", "log_dets", "solve_lower"]

BLOCK = 512


def factor_in_place(matrix: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """L with L Lᵀ = matrix, written over the matrix's lower triangle; what is above the diagonal is left as it was.

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


def log_dets(factor: np.ndarray) -> np.ndarray:
    """log det of every leading block of the matrix that was factored: of 1, 2, …, n rows."""
    return 2 * np.cumsum(np.log(np.diagonal(factor)))


def solve_lower(factor: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """L⁻¹ vector; the squares of its first k numbers add up to vᵀM⁻¹v of the leading block of k rows."""
    solution = np.empty_like(vector, dtype=np.float64)
    for start in range(0, len(vector), BLOCK):
        rows = slice(start, min(start + BLOCK, len(vector)))
        left = vector[rows] - factor[rows, :start] @ solution[:start]
        solution[rows] = np.linalg.solve(factor[rows, rows], left)
    return solution
