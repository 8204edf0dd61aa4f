"""The effective dimension d̃: how many directions of the kernel the contexts really use (Definition 2)."""

import math
from typing import Any, NamedTuple

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import host_bytes
from neuralucb.runtime.progress import Progress, part
from neuralucb.theory.kernel import directions, kernel_product, tangent_kernel
from neuralucb.theory.linalg import check_kernel, check_regularization, factor_in_place, is_singular, log_dets
from neuralucb.theory.log_det import Estimate, estimate_log_det

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
    check_kernel(kernel)
    check_regularization(regularization)
    return float(_log_dets(kernel.copy(), regularization)[-1] / math.log1p(len(kernel) / regularization))


def dimension_from_eigenvalues(eigenvalues: np.ndarray, *, regularization: float) -> float:
    """d̃ from the eigenvalues of H: Σ log(1 + e_i/λ) / log(1 + TK/λ). With them, any λ costs next to nothing.

    An eigenvalue that rounding left below 0 counts as 0.
    """
    check_regularization(regularization)
    if np.ndim(eigenvalues) != 1 or not len(eigenvalues) or not np.isfinite(eigenvalues).all():
        raise InputError(
            f"eigenvalues must be a row of finite numbers, one or more, got shape {np.shape(eigenvalues)}; "
            "take those of `numpy.linalg.eigvalsh`."
        )
    logs = np.log1p(np.maximum(eigenvalues, 0) / regularization)
    return float(logs.sum() / math.log1p(len(eigenvalues) / regularization))


def dimensions_over_rounds(
    kernel: np.ndarray, *, arms: int, regularization: float, progress: Progress | None = None
) -> np.ndarray:
    """d̃ of the contexts of the first t rounds, for t = 1, …, T: all of them from one Cholesky factor.

    kernel  of T·arms contexts in the order in which they came; overwritten.
    """
    check_kernel(kernel)
    check_regularization(regularization)
    if arms < 1 or len(kernel) % arms:
        raise InputError(f"arms must divide the {len(kernel)} contexts of the kernel, got {arms}.")
    whole = _log_dets(kernel, regularization, progress)[arms - 1 :: arms]
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
    check_regularization(regularization)
    scale = math.log1p(size / regularization)
    if ROOM * 8 * size**2 <= host_bytes():
        made, factored = part(progress, 0, of=2), part(progress, 1, of=2)
        kernel = tangent_kernel(known, depth=depth, initialization=initialization, progress=made)
        return EffectiveDimension(float(_log_dets(kernel, regularization, factored)[-1] / scale), 0.0)
    found: Estimate = estimate_log_det(
        kernel_product(known, depth=depth, initialization=initialization),
        size,
        regularization=regularization,
        progress=progress,
    )
    return EffectiveDimension(found.value / scale, found.error / scale)


def _log_dets(kernel: np.ndarray, regularization: float, progress: Progress | None = None) -> np.ndarray:
    """log det(I + H/λ) of the first 1, 2, …, n contexts, in H's own memory; refused where λ is lost in rounding."""
    largest = float(np.diagonal(kernel).max())
    with np.errstate(over="ignore"):
        kernel /= regularization
    kernel[np.diag_indices_from(kernel)] += 1
    diagonal = np.diagonal(kernel).copy()
    try:
        if np.isfinite(diagonal).all() and not is_singular(factor_in_place(kernel, progress), diagonal):
            return log_dets(kernel)
    except ValueError:
        pass  # not positive definite to working precision: the same cause, met earlier
    raise InputError(
        f"regularization must be above what rounding leaves of {len(kernel)} contexts' eigenvalues, up to "
        f"{largest:.3g} on the diagonal, got {regularization:g}; take a larger λ, or contexts that differ more."
    )
