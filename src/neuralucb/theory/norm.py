"""How hard a reward function is for the kernel: λ_0, hᵀH⁻¹h and S (Assumption 4.2, Theorem 1)."""

import math

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.theory.directions import PARALLEL
from neuralucb.theory.linalg import BLOCK, check_kernel, factor_in_place, solve_lower

__all__ = ["norm_bound", "rkhs_norm_squared", "rounding", "smallest_eigenvalue", "squared_norms"]

SINGULAR = (
    "kernel must be regular, and is singular to working precision, so that hᵀH⁻¹h would be noise; `parallel_pair` "
    "finds contexts of the same direction, of which to keep one. With L = 2, more than d pairs of opposite contexts "
    "make it singular, too."
)


def norm_bound(kernel: np.ndarray, expected: np.ndarray) -> float:
    """The smallest S that Theorem 1 allows: S = sqrt(2 hᵀH⁻¹h).

    Departure: none.

    Args:
        kernel: H [n, n], as `tangent_kernel` returns it; left unchanged.
        expected: h [n], the expected reward of each context.

    Returns:
        S.

    Raises:
        InputError: H is singular to working precision, or h does not match it.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> H = theory.tangent_kernel(np.eye(2), depth=2)
        >>> round(theory.norm_bound(H, np.array([1.0, 0.0])), 4)
        1.1816
    """
    return math.sqrt(2 * rkhs_norm_squared(kernel, expected))


def rkhs_norm_squared(kernel: np.ndarray, expected: np.ndarray) -> float:
    """hᵀH⁻¹h, the squared norm of the simplest function of the kernel's space that takes the values h on the contexts.

    Remark 4.8: where h belongs to that space, at most ‖h‖².
    Departure: none.

    Args:
        kernel: H [n, n], as `tangent_kernel` returns it; left unchanged.
        expected: h [n], the expected reward of each context.

    Returns:
        hᵀH⁻¹h.

    Raises:
        InputError: H is singular to working precision (the message names the two contexts that make it so, if it
            finds them), or h does not match it.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> H = theory.tangent_kernel(np.eye(2), depth=2)
        >>> round(theory.rkhs_norm_squared(H, np.array([1.0, 0.0])), 4)
        0.6981
    """
    check_kernel(kernel)
    try:
        return float(squared_norms(kernel.copy(), expected)[-1])
    except np.linalg.LinAlgError:
        raise InputError(SINGULAR + _pair_in(kernel)) from None


def smallest_eigenvalue(kernel: np.ndarray) -> float:
    """λ_0, the smallest eigenvalue of H (Assumption 4.2: H ⪰ λ_0 I, λ_0 > 0).

    Departure: none.

    Args:
        kernel: H [n, n], as `tangent_kernel` returns it; left unchanged.

    Returns:
        λ_0.

    Raises:
        InputError: It is below n · 2.2e-16 times the largest, where it would be noise.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> round(theory.smallest_eigenvalue(theory.tangent_kernel(np.eye(2), depth=2)), 4)
        1.1817
    """
    check_kernel(kernel)
    values = np.linalg.eigvalsh(kernel)
    if values[0] <= rounding(values):
        raise InputError(
            f"the kernel's smallest eigenvalue, {values[0]:.3g}, is lost in rounding beside its largest, "
            f"{values[-1]:.3g}: H is singular; `parallel_pair` finds contexts that make it so.{_pair_in(kernel)}"
        )
    return float(values[0])


def squared_norms(kernel: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """hᵀH⁻¹h of the first 1, 2, …, n contexts, all from one Cholesky factor; the kernel is overwritten.

    A kernel that is singular to working precision raises LinAlgError, a ValueError.
    """
    check_kernel(kernel)
    h = _check_rewards(expected, len(kernel))
    try:
        factor = factor_in_place(kernel)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(SINGULAR) from None
    return np.cumsum(solve_lower(factor, h) ** 2)


def rounding(eigenvalues: np.ndarray) -> float:
    """How far from 0 rounding may leave an eigenvalue that is 0."""
    return float(len(eigenvalues) * np.finfo(np.float64).eps * eigenvalues[-1])


def _check_rewards(expected: np.ndarray, contexts: int) -> np.ndarray:
    """Expected rewards in float64, one per context."""
    h = np.asarray(expected, dtype=np.float64)
    if h.shape != (contexts,):
        raise InputError(f"expected must have one reward for each of the {contexts} contexts, got shape {h.shape}.")
    if not np.isfinite(h).all():
        row = int(np.flatnonzero(~np.isfinite(h))[0])
        raise InputError(f"expected must be finite, got {h[row]} for context {row}; leave it out.")
    return h


def _pair_in(kernel: np.ndarray) -> str:
    """A sentence about the first context that is 0, or the first two of the same direction, found in H itself, if any.

    H_ij/sqrt(H_ii H_jj) is 1 for contexts of the same direction, and falls in proportion to the angle between others.
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
