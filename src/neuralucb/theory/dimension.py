"""The effective dimension d̃: how many directions of the kernel the contexts really use (Definition 2)."""

import math
from typing import Any, NamedTuple

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import host_bytes
from neuralucb.runtime.progress import Progress, part
from neuralucb.runtime.records import brief
from neuralucb.theory.directions import directions
from neuralucb.theory.kernel import kernel_product, tangent_kernel
from neuralucb.theory.linalg import check_kernel, check_regularization, factor_in_place, log_dets
from neuralucb.theory.log_det import estimate_log_det

__all__ = [
    "EffectiveDimension",
    "dimension_from_eigenvalues",
    "dimensions_over_rounds",
    "effective_dimension",
    "effective_dimension_of",
]

EXACT_MEMORY = 1.25
"""Memory that the exact computation takes, relative to the kernel matrix."""


@brief
class EffectiveDimension(NamedTuple):
    """d̃ and its standard error.

    Example:
        >>> EffectiveDimension(value=14.2, error=0.0).value
        14.2
    """

    value: float
    error: float
    """0 where d̃ was computed, not estimated"""


def effective_dimension(kernel: np.ndarray, *, regularization: float) -> float:
    """d̃ of a kernel matrix (Definition 2), by Cholesky.

        d̃ = log det(I + H/λ) / log(1 + TK/λ)

    TK is the number of contexts, the size of H. d̃ ≤ d̂, the rank of H, wherever the diagonal of H is at most 1.
    Departure: none in the formula. The diagonal of H is (L + 1)/2 for contexts of norm 1, so that the paper's d̃ ≤ d̂
    does not cover the paper's kernel.

    Args:
        kernel: H [n, n], as `tangent_kernel` returns it; left unchanged.
        regularization: λ.

    Returns:
        d̃.

    Raises:
        InputError: The kernel is not a symmetric matrix of finite numbers, or λ is lost in rounding.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> H = theory.tangent_kernel(np.eye(2), depth=2)
        >>> round(theory.effective_dimension(H, regularization=1.0), 4)
        1.6532
    """
    check_kernel(kernel)
    check_regularization(regularization)
    return float(_log_dets(kernel.copy(), regularization)[-1] / math.log1p(len(kernel) / regularization))


def effective_dimension_of(
    contexts: Any,
    *,
    depth: int,
    regularization: float,
    initialization: str = "gaussian",
    progress: Progress | None = None,
) -> EffectiveDimension:
    """d̃ of contexts, from the kernel of Definition 1: exact where n² numbers fit into memory, else an estimate.

    Exact: H is computed and factored in one n × n array, 8n² bytes. The estimate: stochastic Lanczos quadrature on
    products with H, whose tiles are never kept.

    Args:
        contexts: As for `tangent_kernel`.
        depth: L, the layers of the network.
        regularization: λ.
        initialization: As for `tangent_kernel`.
        progress: Called with the pieces done and the total.

    Returns:
        d̃ and its standard error, 0 where it is exact.

    Raises:
        InputError: As `tangent_kernel` does, or λ is lost in rounding.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> found = theory.effective_dimension_of(np.eye(2), depth=2, regularization=1.0)
        >>> round(found.value, 4), found.error
        (1.6532, 0.0)
    """
    known = directions(contexts)
    size = len(known)
    check_regularization(regularization)
    scale = math.log1p(size / regularization)
    if EXACT_MEMORY * 8 * size**2 <= host_bytes():
        made, factored = part(progress, 0, of=2), part(progress, 1, of=2)
        kernel = tangent_kernel(known, depth=depth, initialization=initialization, progress=made)
        return EffectiveDimension(float(_log_dets(kernel, regularization, factored)[-1] / scale), 0.0)
    found = estimate_log_det(
        kernel_product(known, depth=depth, initialization=initialization),
        size,
        regularization=regularization,
        progress=progress,
    )
    return EffectiveDimension(found.value / scale, found.error / scale)


def dimensions_over_rounds(
    kernel: np.ndarray, *, arms: int, regularization: float, progress: Progress | None = None
) -> np.ndarray:
    """d̃ of the contexts of the first t rounds, for t = 1, …, T: all of them from one Cholesky factor.

    Args:
        kernel: H of T · arms contexts, in the order in which they came; **overwritten**.
        arms: K, the contexts per round.
        regularization: λ.
        progress: Called once, with (1, 1), at the end: the factor is one call of LAPACK.

    Returns:
        [T].

    Raises:
        InputError: `arms` does not divide the contexts, or as `effective_dimension` does.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> H = theory.tangent_kernel(np.eye(4), depth=2)
        >>> theory.dimensions_over_rounds(H, arms=2, regularization=1.0).round(3)
        array([1.653, 2.224])
    """
    check_kernel(kernel)
    check_regularization(regularization)
    if arms < 1 or len(kernel) % arms:
        raise InputError(f"arms must divide the {len(kernel)} contexts of the kernel, got {arms}.")
    log_det = _log_dets(kernel, regularization, progress)[arms - 1 :: arms]
    contexts = arms * np.arange(1, len(log_det) + 1)
    return log_det / np.log1p(contexts / regularization)


def dimension_from_eigenvalues(eigenvalues: np.ndarray, *, regularization: float) -> float:
    """d̃ from the eigenvalues of H: Σ log(1 + e_i/λ) / log(1 + TK/λ). Once you have them, any λ costs next to nothing.

    Args:
        eigenvalues: [n], in any order; one that rounding left below 0 counts as 0.
        regularization: λ.

    Returns:
        d̃.

    Raises:
        InputError: The eigenvalues are not finite numbers, or λ is not positive.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> values = np.linalg.eigvalsh(theory.tangent_kernel(np.eye(2), depth=2))
        >>> round(theory.dimension_from_eigenvalues(values, regularization=1.0), 4)
        1.6532
    """
    check_regularization(regularization)
    if np.ndim(eigenvalues) != 1 or not len(eigenvalues) or not np.isfinite(eigenvalues).all():
        raise InputError(
            f"eigenvalues must be a row of finite numbers, one or more, got shape {np.shape(eigenvalues)}; "
            "take those of `numpy.linalg.eigvalsh`."
        )
    logs = np.log1p(np.maximum(eigenvalues, 0) / regularization)
    return float(logs.sum() / math.log1p(len(eigenvalues) / regularization))


def _log_dets(kernel: np.ndarray, regularization: float, progress: Progress | None = None) -> np.ndarray:
    """log det(I + H/λ) of the first 1, 2, …, n contexts; H is overwritten, and refused where λ is lost in rounding."""
    largest = float(np.diagonal(kernel).max())
    with np.errstate(over="ignore"):
        kernel /= regularization
    kernel[np.diag_indices_from(kernel)] += 1
    try:
        if np.isfinite(np.diagonal(kernel)).all():
            found = log_dets(factor_in_place(kernel))
            if progress is not None:
                progress(1, 1)
            return found
    except np.linalg.LinAlgError:
        pass
    raise InputError(
        f"regularization must be above the rounding error of {len(kernel)} contexts' eigenvalues, with up to "
        f"{largest:.3g} on the diagonal of H, got {regularization:g}; take a larger λ, or contexts that differ more."
    )
