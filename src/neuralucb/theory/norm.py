"""How hard a reward function is for the kernel: λ_0, hᵀH⁻¹h and S (Assumption 4.2, Theorem 1)."""

import math
from typing import Any

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress
from neuralucb.theory.kernel import PARALLEL, parallel_pair
from neuralucb.theory.linalg import BLOCK, check_kernel, check_rewards, factor_in_place, is_singular, solve_lower

__all__ = ["norm_bound", "require_regular", "rkhs_norm_squared", "smallest_eigenvalue", "squared_norms"]

SINGULAR = (
    "kernel must be regular, and is singular to working precision, so that hᵀH⁻¹h would be noise; `parallel_pair` "
    "finds contexts of one direction, of which to keep one. With L = 2, more than d pairs of opposite ones do the same."
)


def smallest_eigenvalue(kernel: np.ndarray) -> float:
    """λ_0, the smallest eigenvalue of H (Assumption 4.2: H ⪰ λ_0 I, λ_0 > 0).

    Below n · 2.2e-16 times the largest it is noise, and ValueError says so.
    Departure: none.
    """
    check_kernel(kernel)
    values = np.linalg.eigvalsh(kernel)
    if values[0] <= rounding(values):
        raise InputError(
            f"the kernel's smallest eigenvalue, {values[0]:.3g}, is lost in rounding beside its largest, "
            f"{values[-1]:.3g}: H is singular; `parallel_pair` finds contexts that make it so.{_pair_in(kernel)}"
        )
    return float(values[0])


def rounding(eigenvalues: np.ndarray) -> float:
    """What an eigenvalue of 0 may come out as."""
    return float(len(eigenvalues) * np.finfo(np.float64).eps * eigenvalues[-1])


def rkhs_norm_squared(kernel: np.ndarray, expected: np.ndarray) -> float:
    """hᵀH⁻¹h, the squared norm of the simplest function of the kernel's space that takes the values h on the contexts.

    Remark 4.8: at most ‖h‖² in that space, where h belongs to it. H must be regular: one that is not is refused, with
    the two contexts that make it so.
    Departure: none.
    """
    check_kernel(kernel)
    try:
        return float(squared_norms(kernel.copy(), expected)[-1])
    except np.linalg.LinAlgError:
        raise InputError(SINGULAR + _pair_in(kernel)) from None


def squared_norms(kernel: np.ndarray, expected: np.ndarray, progress: Progress | None = None) -> np.ndarray:
    """hᵀH⁻¹h of the first 1, 2, …, n contexts, all from one Cholesky factor; the kernel is overwritten.

    A kernel that is singular to working precision raises LinAlgError, a ValueError, whether or not it happens to have
    a factor.
    """
    check_kernel(kernel)
    h, diagonal = check_rewards(expected, len(kernel)), np.diagonal(kernel).copy()
    try:
        factor = factor_in_place(kernel, progress)
    except ValueError:
        raise np.linalg.LinAlgError(SINGULAR) from None
    if is_singular(factor, diagonal):
        raise np.linalg.LinAlgError(SINGULAR)
    return np.cumsum(solve_lower(factor, h) ** 2)


def norm_bound(kernel: np.ndarray, expected: np.ndarray) -> float:
    """The smallest S that Theorem 1 allows: S = sqrt(2 hᵀH⁻¹h).

    Departure: none.
    """
    return math.sqrt(2 * rkhs_norm_squared(kernel, expected))


def require_regular(contexts: Any) -> None:
    """Raise ValueError, naming the pair, where two contexts have one direction and H has therefore no inverse.

    A network without biases is homogeneous, f(cx) = c f(x) for c > 0, so that parallel contexts are as bad as equal
    ones. Assumption 4.2 excludes both.
    """
    pair = parallel_pair(contexts)
    if pair is None:
        return
    a, b = pair
    what = f"context {a} is 0" if a == b else f"contexts {a} and {b} have the same direction"
    raise InputError(f"{what}, which makes H singular, λ_0 = 0 and S undefined; keep one of each direction.")


def _pair_in(kernel: np.ndarray) -> str:
    """A sentence about the first context that is 0, or the first two of one direction, found in H itself, if any.

    H_ij/sqrt(H_ii H_jj) is 1 for contexts of one direction, and falls in proportion to the angle between others.
    """
    root = np.sqrt(np.maximum(np.diagonal(kernel), 0))
    zero = np.flatnonzero(root == 0)
    if zero.size:
        return f" Context {zero[0]} is 0."
    for start in range(0, len(kernel), BLOCK):
        rows = kernel[start : start + BLOCK] / root[start : start + BLOCK, None] / root
        a, b = np.nonzero(np.triu(rows, start + 1) > 1 - PARALLEL)
        if a.size:
            return f" Contexts {start + a[0]} and {b[0]} have the same direction, or nearly."
    return ""
