"""What the tools take: kernels, rewards and λ, checked in one place before anything is computed."""

import math

import numpy as np

__all__ = ["check_kernel", "check_regularization", "check_rewards", "finite_or_none"]

BLOCK = 512
SYMMETRIC = 1e-5
"""Of the largest diagonal entry: what a kernel computed in float32 may differ from its transpose."""


def check_kernel(kernel: np.ndarray) -> None:
    """Raise ValueError unless it is a square symmetric matrix of finite numbers in float64, of one row at least."""
    if not isinstance(kernel, np.ndarray) or kernel.dtype != np.float64 or kernel.ndim != 2:
        got = f"{kernel.dtype} of shape {kernel.shape}" if isinstance(kernel, np.ndarray) else type(kernel).__name__
        raise ValueError(f"kernel must be a square matrix in float64, got {got}; see `tangent_kernel`.")
    if kernel.shape[0] != kernel.shape[1] or not len(kernel):
        raise ValueError(f"kernel must be a square matrix in float64 of one row or more, got shape {kernel.shape}.")
    for start in range(0, len(kernel), BLOCK):
        rows = kernel[start : start + BLOCK]
        if not np.isfinite(rows).all():
            bad = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise ValueError(f"kernel must be finite, got NaN or infinity in row {bad}; look at context {bad}.")
    allowed = SYMMETRIC * float(np.abs(np.diagonal(kernel)).max())
    for start in range(0, len(kernel), BLOCK):
        apart = np.abs(kernel[start : start + BLOCK, start:] - kernel[start:, start : start + BLOCK].T)
        if apart.max() > allowed:
            row, column = np.unravel_index(int(apart.argmax()), apart.shape)
            raise ValueError(
                f"kernel must be symmetric, got {kernel[start + row, start + column]:g} at "
                f"({start + row}, {start + column}) and {kernel[start + column, start + row]:g} across; "
                "between two sets of contexts it has no log det."
            )


def check_regularization(regularization: float) -> None:
    """Raise ValueError unless λ is a positive number."""
    if not 0 < regularization < math.inf:
        raise ValueError(f"regularization must be positive and finite, got {regularization}; d̃ divides H by it.")


def check_rewards(expected: np.ndarray, contexts: int) -> np.ndarray:
    """Expected rewards in float64, one for each context."""
    h = np.asarray(expected, dtype=np.float64)
    if h.shape != (contexts,):
        raise ValueError(f"expected must have a reward for each of the {contexts} contexts, got shape {h.shape}.")
    if not np.isfinite(h).all():
        row = int(np.flatnonzero(~np.isfinite(h))[0])
        raise ValueError(f"expected must be finite, got {h[row]} for context {row}; leave it out.")
    return h


def finite_or_none(value: float | None) -> float | None:
    """The number as JSON can have it: None where it is NaN or infinite."""
    return None if value is None or not math.isfinite(value) else float(value)
