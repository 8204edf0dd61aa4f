"""log det(I + H/λ) from products with H alone: stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from neuralucb.theory.pieces import Progress

__all__ = ["Estimate", "estimate_log_det"]

PROBES = 16
STEPS = 40


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


def estimate_log_det(
    multiply: Callable[[np.ndarray], np.ndarray],
    size: int,
    *,
    regularization: float,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimate:
    """An estimate of log det(I + H/λ) = tr log(I + H/λ), with its error.

        tr f(H) ≈ mean over random signs z of  n · Σ_k τ_k² f(θ_k)

    θ_k and τ_k are the eigenvalues and the first entries of the eigenvectors of the tridiagonal matrix to which
    Lanczos's method, begun at z/√n, reduces H.
    The error is the standard error over 16 probes, and beside it what the last quarter of the steps still changed.

    multiply  V [n, k] -> H V.
    """
    steps = min(STEPS, size)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(size, PROBES))
    diagonal, beside = _tridiagonal(multiply, signs / math.sqrt(size), steps, progress)
    at_end = size * _quadrature(diagonal, beside, regularization)
    earlier = size * _quadrature(diagonal[: 3 * steps // 4 + 1], beside, regularization)
    error = float(at_end.std(ddof=1)) / math.sqrt(PROBES)
    return Estimate(float(at_end.mean()), error + abs(float(at_end.mean() - earlier.mean())))


def _tridiagonal(
    multiply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos's method for every column at once, each made orthogonal to all before it: diagonals [steps, probes]."""
    basis = [start]
    diagonal, beside = np.zeros((steps, start.shape[1])), np.zeros((steps, start.shape[1]))
    for step in range(steps):
        new = multiply(basis[-1])
        diagonal[step] = (new * basis[-1]).sum(axis=0)
        for _ in range(2):  # once is not enough in floating point
            for old in basis:
                new -= old * (old * new).sum(axis=0)
        beside[step] = np.linalg.norm(new, axis=0)
        alive = beside[step] > 1e-12 * np.abs(diagonal[0])
        beside[step] *= alive  # a column whose space is exhausted goes on as 0
        basis.append(np.where(alive, new / np.where(alive, beside[step], 1), 0))
        if progress is not None:
            progress(step + 1, steps)
    return diagonal, beside


def _quadrature(diagonal: np.ndarray, beside: np.ndarray, regularization: float) -> np.ndarray:
    """Σ_k τ_k² log(1 + θ_k/λ) of each probe."""
    sums = np.empty(diagonal.shape[1])
    for probe in range(diagonal.shape[1]):
        off = beside[: len(diagonal) - 1, probe]
        values, vectors = np.linalg.eigh(np.diag(diagonal[:, probe]) + np.diag(off, 1) + np.diag(off, -1))
        sums[probe] = (vectors[0] ** 2 * np.log1p(np.maximum(values, 0) / regularization)).sum()
    return sums
