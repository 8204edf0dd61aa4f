"""log det(I + H/λ) from products with H alone: a Nyström part, and stochastic Lanczos quadrature for the rest.

Frangella, Tropp & Udell 2023 for the first, Ubaru, Chen & Saad 2017 for the second, Wenger et al. 2022 for both
together.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress
from neuralucb.theory.linalg import check_regularization, solve_lower

__all__ = ["Estimate", "estimate_log_det"]

RANK = 256
"""Columns of the Nyström part; a quarter of the contexts where those are few."""

PROBES = 32
"""More would cost little beside the tiles of H, but n · 24 numbers of memory each."""

STEPS = 24
"""Of Lanczos's method."""

EPS = float(np.finfo(np.float64).eps)

LOST = 0.1
"""How far rounding may move an eigenvalue of M, all of which are 1 or more."""

NODE = 0.5
"""The fixed node of Radau's rule: below every eigenvalue of M, rounding included."""


class Estimate(NamedTuple):
    """A number and one standard error: about one estimate in three is further off, one in twenty by twice as much.

    Example:
        >>> Estimate(value=2056.0, error=4.0).error
        4.0
    """

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
    """An estimate of log det(I + H/λ), with its error.

        log det(I + H/λ) = log det P + tr log M,   M = P^(-1/2) (I + H/λ) P^(-1/2),   P = I + UΛUᵀ/λ
        tr log M ≈ mean over random signs z of  n · Σ_k τ_k² log θ_k

    UΛUᵀ is Nyström's approximation of H from its product with 256 random directions: it takes the large eigenvalues
    out of what is sampled. θ_k and τ_k are the eigenvalues and the first entries of the eigenvectors of the
    tridiagonal matrix to which Lanczos's method, started at z/√n, reduces M.
    With few steps that sum is too large. Gauss's and Radau's rules bracket the truth, because M has no eigenvalue
    below 1 and the derivatives of log alternate in sign: the estimate is the middle of the two.
    The error is the standard error over 32 probes, plus half the distance between the two rules, plus rounding.

    Args:
        multiply: V [n, k] -> H V, such as `kernel_product` returns; it is called 25 times.
        size: n, the number of contexts.
        regularization: λ.
        seed: Of the random directions and signs.
        progress: Called with the products done and the total.

    Returns:
        The estimate and one standard error.

    Raises:
        InputError: λ is not positive, or is lost in rounding.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> found = theory.estimate_log_det(lambda v: 3 * v, 100, regularization=1.0)
        >>> abs(found.value - 100 * np.log(4)) < 2 * found.error < 5
        True
    """
    check_regularization(regularization)
    rng = np.random.default_rng(seed)
    steps = min(STEPS, size)
    tick = (lambda done: None) if progress is None else (lambda done: progress(done, steps + 1))
    vectors, values = _nystrom(multiply, rng.normal(size=(size, max(1, min(RANK, size // 4)))))
    tick(1)
    largest = float(values.max())
    if math.sqrt(size) * EPS * largest > LOST * regularization:
        raise InputError(
            f"regularization must be above the rounding error of {size} contexts' eigenvalues, up to {largest:.3g}, "
            f"got {regularization:g}; take a larger λ."
        )
    shrink = 1 / np.sqrt(1 + values / regularization) - 1

    def half(v: np.ndarray) -> np.ndarray:
        return v + vectors @ (shrink[:, None] * (vectors.T @ v))

    def preconditioned(v: np.ndarray) -> np.ndarray:
        inner = half(v)
        return half(inner + multiply(inner) / regularization)

    signs = rng.choice([-1.0, 1.0], size=(size, PROBES))
    reduced = _tridiagonal(preconditioned, signs / math.sqrt(size), steps, lambda done: tick(done + 1))
    high, low = size * _quadrature(reduced[:, :-1, :-1]), size * _quadrature(_with_node(reduced, NODE))
    middle, apart = (high + low) / 2, float((high - low).mean()) / 2
    rounding = steps * size * EPS * (1 + largest / regularization)
    error = float(middle.std(ddof=1)) / math.sqrt(PROBES) + max(apart, 0.0) + rounding
    return Estimate(float(np.log1p(values / regularization).sum() + middle.mean()), error)


def _nystrom(multiply: Callable[[np.ndarray], np.ndarray], random: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and Λ of HΩ(ΩᵀHΩ)⁻¹(HΩ)ᵀ, shifted against rounding, and back at the end."""
    directions = np.linalg.qr(random)[0]
    product = multiply(directions)
    if not product.any():
        return directions, np.zeros(directions.shape[1])  # contexts that are all 0
    shift = math.sqrt(len(random)) * EPS * float(np.linalg.norm(product))
    product += shift * directions
    middle = directions.T @ product
    root = np.linalg.cholesky((middle + middle.T) / 2)
    vectors, singular, _ = np.linalg.svd(solve_lower(root, product.T).T, full_matrices=False)
    return vectors, np.maximum(singular**2 - shift, 0)


def _tridiagonal(
    multiply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int, tick: Callable[[int], None]
) -> np.ndarray:
    """Lanczos's method for every column at once, each step orthogonal to all before it: [probes, steps + 1, steps + 1].

    The last row lacks its diagonal entry, which `_with_node` sets.
    """
    basis = [start]
    reduced = np.zeros((start.shape[1], steps + 1, steps + 1))
    for step in range(steps):
        new = multiply(basis[-1])
        reduced[:, step, step] = np.where(basis[-1].any(axis=0), (new * basis[-1]).sum(axis=0), 1)
        for _ in range(2):  # once is not enough in floating point
            for old in basis:
                new -= old * (old * new).sum(axis=0)
        beside = np.linalg.norm(new, axis=0)
        alive = beside > 1e-12 * np.abs(reduced[:, 0, 0])
        beside *= alive  # a column whose Krylov space is exhausted continues as 0
        reduced[:, step, step + 1] = reduced[:, step + 1, step] = beside
        basis.append(np.where(alive, new / np.where(alive, beside, 1), 0))
        tick(step + 1)
    return reduced


def _with_node(reduced: np.ndarray, node: float) -> np.ndarray:
    """The matrices of Radau's rule: the last diagonal entry makes `node` an eigenvalue (Golub 1973)."""
    values, vectors = np.linalg.eigh(reduced[:, :-1, :-1])
    last = node + reduced[:, -1, -2] ** 2 * (vectors[:, -1] ** 2 / (values - node)).sum(axis=1)
    found = reduced.copy()
    found[:, -1, -1] = last
    return found


def _quadrature(reduced: np.ndarray) -> np.ndarray:
    """Σ_k τ_k² log θ_k of each probe."""
    values, vectors = np.linalg.eigh(reduced)
    return np.asarray((vectors[:, 0] ** 2 * np.log(values)).sum(axis=1))
