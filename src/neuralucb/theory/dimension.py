"""The effective dimension d̃: how many directions of the kernel the contexts really use (Definition 2)."""

import math
from typing import Any, NamedTuple

import numpy as np

from neuralucb.memory import available_bytes
from neuralucb.theory.cholesky import factor_in_place, log_dets
from neuralucb.theory.contexts import directions
from neuralucb.theory.kernel import kernel_product, tangent_kernel
from neuralucb.theory.lanczos import Estimate, estimate_log_det
from neuralucb.theory.pieces import Progress

__all__ = [
    "EffectiveDimension",
    "dimension_from_eigenvalues",
    "dimensions_over_rounds",
    "effective_dimension",
    "effective_dimension_of",
]

ROOM = 1.25
"""Bytes that the exact way takes, over those of the matrix."""


class EffectiveDimension(NamedTuple):
    """d̃, and its standard error: 0 where it was computed, not estimated."""

    value: float
    error: float


def effective_dimension(kernel: np.ndarray, *, regularization: float) -> float:
    """d̃ of a kernel matrix (Definition 2), by Cholesky; the matrix is left as it is.

        d̃ = log det(I + H/λ) / log(1 + TK/λ)

    TK is the number of contexts, the size of H. d̃ ≤ d̂, the rank of H, wherever the diagonal of H is at most 1.
    Departure: none in the formula. The diagonal of H is (L + 1)/2 for contexts of norm 1, so that the paper's d̃ ≤ d̂
    does not cover its own kernel.
    """
    _check(kernel, regularization)
    factor = factor_in_place(_plus_identity(kernel.copy(), regularization))
    return float(log_dets(factor)[-1] / math.log1p(len(kernel) / regularization))


def dimension_from_eigenvalues(eigenvalues: np.ndarray, *, regularization: float) -> float:
    """d̃ from the eigenvalues of H: Σ log(1 + e_i/λ) / log(1 + TK/λ). With them, any λ costs next to nothing.

    An eigenvalue that rounding left below 0 counts as 0.
    """
    if not regularization > 0:
        raise ValueError(f"regularization must be positive, got {regularization}.")
    logs = np.log1p(np.maximum(eigenvalues, 0) / regularization)
    return float(logs.sum() / math.log1p(len(eigenvalues) / regularization))


def dimensions_over_rounds(
    kernel: np.ndarray, *, arms: int, regularization: float, progress: Progress | None = None
) -> np.ndarray:
    """d̃ of the contexts of the first t rounds, for t = 1, …, T: all of them from one Cholesky factor.

    kernel  of T·arms contexts in the order in which they came; overwritten.
    """
    _check(kernel, regularization)
    if arms < 1 or len(kernel) % arms:
        raise ValueError(f"arms must divide the {len(kernel)} contexts of the kernel, got {arms}.")
    whole = log_dets(factor_in_place(_plus_identity(kernel, regularization), progress))[arms - 1 :: arms]
    counts = arms * np.arange(1, len(whole) + 1)
    return whole / np.log1p(counts / regularization)


def effective_dimension_of(
    contexts: Any,
    *,
    depth: int,
    regularization: float,
    initialization: str = "gaussian",
    progress: Progress | None = None,
) -> EffectiveDimension:
    """d̃ of contexts, from the kernel of Definition 1: exact where n² numbers fit into memory, an estimate beyond.

    Exact: H is made and factored in one n × n array, 8n² bytes. Beyond: stochastic Lanczos quadrature on products
    with H, whose tiles are never kept, with a standard error.
    """
    known = directions(contexts)
    size = len(known)
    if not regularization > 0:
        raise ValueError(f"regularization must be positive, got {regularization}.")
    scale = math.log1p(size / regularization)
    if ROOM * 8 * size**2 <= available_bytes():
        kernel = tangent_kernel(known, depth=depth, initialization=initialization)
        factor = factor_in_place(_plus_identity(kernel, regularization), progress)
        return EffectiveDimension(float(log_dets(factor)[-1] / scale), 0.0)
    found: Estimate = estimate_log_det(
        kernel_product(known, depth=depth, initialization=initialization),
        size,
        regularization=regularization,
        progress=progress,
    )
    return EffectiveDimension(found.value / scale, found.error / scale)


def _plus_identity(kernel: np.ndarray, regularization: float) -> np.ndarray:
    """I + H/λ, in H's own memory."""
    kernel /= regularization
    kernel[np.diag_indices_from(kernel)] += 1
    return kernel


def _check(kernel: np.ndarray, regularization: float) -> None:
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or kernel.dtype != np.float64:
        raise ValueError(f"kernel must be a square matrix in float64, got {kernel.dtype} of shape {kernel.shape}.")
    if not regularization > 0:
        raise ValueError(f"regularization must be positive, got {regularization}; d̃ divides H by it.")
