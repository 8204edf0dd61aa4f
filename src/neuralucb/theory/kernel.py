"""The neural tangent kernel of an infinitely wide network (Zhou et al. 2020, Definition 1), in closed form for ReLU."""

import math
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from neuralucb.memory import require_memory
from neuralucb.theory.contexts import Directions, angles, directions, tiles
from neuralucb.theory.pieces import Progress, spread

__all__ = ["kernel_product", "tangent_kernel"]

LIMITS = ("gaussian", "symmetric", "paper")


def tangent_kernel(
    contexts: Any,
    others: Any = None,
    *,
    depth: int,
    initialization: str = "gaussian",
    progress: Progress | None = None,
) -> np.ndarray:
    """H between every two contexts, or between contexts and others (Definition 1), in float64.

        Σ^(1)_ij = H̃^(1)_ij = ⟨x^i, x^j⟩
        Σ^(l+1)_ij = 2E[σ(u)σ(v)] = sqrt(Σ_ii Σ_jj) (sin α + (π - α) cos α)/π,   (u, v) ~ N(0, A^(l)_ij)
        H̃^(l+1)_ij = H̃^(l)_ij · 2E[σ'(u)σ'(v)] + Σ^(l+1)_ij,   2E[σ'(u)σ'(v)] = (π - α)/π
        H = (H̃^(L) + Σ^(L))/2

    with α = arccos of the correlation of Σ^(l). Its diagonal is ‖x‖²(L + 1)/2.

    contexts        an array [n, d], of any norm, or a `Slot` of x [n, d] and arm [n], which stands for (0, …, x, …, 0).
    initialization  whose limit: `gaussian` has H; `symmetric`, and `paper` on contexts of two equal halves, have H̃^(L),
                    because their last layer has variance 2/m, not 1/m.

    n²/2 entries are computed, in tiles over all cores; memory is that of the matrix.
    Departure: H̃ where the paper has H for its own θ_0; see docs/deviations.md.
    """
    a = directions(contexts)
    b = None if others is None else _matching(directions(others, name="others"), a)
    _check(depth, initialization)
    _check_scale(a, a if b is None else b, depth)
    shape = len(a), len(a if b is None else b)
    require_memory(
        8 * shape[0] * shape[1], what=f"a kernel matrix of {shape[0]} × {shape[1]}", cure="take fewer", host=True
    )
    matrix = np.empty(shape)

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        matrix[tile] = _tile(a.take(rows), (a if b is None else b).take(columns), depth, initialization)
        if b is None and rows != columns:
            matrix[columns, rows] = matrix[tile].T

    spread(fill, tiles(len(a)) if b is None else tiles(*shape), progress)
    return matrix


def kernel_product(
    contexts: Any, *, depth: int, initialization: str = "gaussian"
) -> Callable[[np.ndarray], np.ndarray]:
    """V [n, k] -> H V, without the matrix: each tile is computed, used and forgotten."""
    known = directions(contexts)
    _check(depth, initialization)
    _check_scale(known, known, depth)
    lock = Lock()

    def multiply(vectors: np.ndarray) -> np.ndarray:
        product = np.zeros_like(vectors)

        def add(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            entries = _tile(known.take(rows), known.take(columns), depth, initialization)
            below, beside = entries @ vectors[columns], entries.T @ vectors[rows]
            with lock:
                product[rows] += below
                if rows != columns:
                    product[columns] += beside

        spread(add, tiles(len(known)))
        return product

    return multiply


def _tile(a: Directions, b: Directions, depth: int, initialization: str) -> np.ndarray:
    """One tile of H. What is followed from layer to layer is 1 - ρ, which keeps its digits where ρ is near 1."""
    angle, gap = angles(a, b)
    tangent = 1 - gap  # H̃/(‖x‖‖y‖)
    for layer in range(depth - 1):
        if layer > 0:
            angle = 2 * np.arcsin(np.sqrt(gap / 2))
        sine = np.sqrt(gap * (2 - gap))
        tangent *= 1 - angle / np.pi
        angle *= 1 - gap
        sine -= angle
        sine /= np.pi
        gap -= sine
        np.maximum(gap, 0, out=gap)  # rounding of a few 1e-17 at α = 0
        tangent += 1 - gap
    if initialization == "gaussian":
        tangent += 1 - gap
        tangent /= 2
    tangent *= a.norm[:, None]
    tangent *= b.norm[None]
    return tangent


def _matching(others: Directions, contexts: Directions) -> Directions:
    if others.unit.shape[1] != contexts.unit.shape[1] or (others.arm is None) != (contexts.arm is None):
        raise ValueError(
            f"others must be contexts of the same kind, got {others.unit.shape[1]} numbers and "
            f"{'no arms' if others.arm is None else 'arms'} beside {contexts.unit.shape[1]} and "
            f"{'none' if contexts.arm is None else 'arms'}."
        )
    return others


def _check_scale(a: Directions, b: Directions, depth: int) -> None:
    """H grows with the product of two norms: neither may it overflow, nor a context vanish that is not 0."""
    largest = float(a.norm.max()), float(b.norm.max())
    least = tuple(float(known.norm.min(where=known.norm > 0, initial=1.0)) for known in (a, b))
    for pair, lost, word in (
        (largest, math.prod(largest) * depth == math.inf, "down"),
        (least, math.prod(least) < sys.float_info.min, "up"),
    ):
        if lost:
            raise ValueError(
                f"contexts must have norms whose products are within float64, got {pair[0]:.3g} and {pair[1]:.3g}; "
                f"scale them {word}, and λ with the square of that."
            )


def _check(depth: int, initialization: str) -> None:
    if not isinstance(depth, int | np.integer):
        raise TypeError(f"depth must be a whole number, got {depth!r}.")
    if depth < 2:
        raise ValueError(f"depth must be at least 2, got {depth}.")
    if initialization not in LIMITS:
        raise ValueError(
            f"initialization must be one of {', '.join(LIMITS)}, got {initialization!r}; "
            "Definition 1 has no kernel for others."
        )
