"""The neural tangent kernel H (Zhou et al. 2020, Definition 1): in closed form for infinite width, and of a network."""

import math
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

import jax
import numpy as np

from neuralucb.gradients import inner
from neuralucb.networks.network import Network
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import exact
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.threads import spread
from neuralucb.theory.directions import Directions, angles, directions
from neuralucb.theory.linalg import tiles

__all__ = ["LIMITS", "empirical_kernel", "kernel_product", "tangent_kernel"]

LIMITS = ("gaussian", "symmetric", "paper")
"""Initializations whose limit of infinite width is known."""

GRADIENT_TILE = 256
"""Contexts per side of a tile of the empirical kernel: their gradients are kept as factors, a few vectors of length m
per context."""


def tangent_kernel(
    contexts: Any,
    others: Any = None,
    *,
    depth: int,
    initialization: str = "gaussian",
    progress: Progress | None = None,
) -> np.ndarray:
    """H between every two contexts, or between contexts and others (Definition 1).

        Σ^(1)_ij = H̃^(1)_ij = ⟨x^i, x^j⟩
        Σ^(l+1)_ij = 2E[σ(u)σ(v)] = sqrt(Σ_ii Σ_jj) (sin α + (π - α) cos α)/π,   (u, v) ~ N(0, A^(l)_ij)
        H̃^(l+1)_ij = H̃^(l)_ij · 2E[σ'(u)σ'(v)] + Σ^(l+1)_ij,   2E[σ'(u)σ'(v)] = (π - α)/π
        H = (H̃^(L) + Σ^(L))/2

    with α = arccos of the correlation of Σ^(l). Its diagonal is ‖x‖²(L + 1)/2. A symmetric H costs n²/2 entries,
    computed in tiles on all cores; the memory is that of the matrix.
    Departure: H̃ where the paper has H for its θ_0; see docs/deviations.md.

    Args:
        contexts: An array [n, d], of any norm, or a `Slot` of x [n, d] and arm [n], which stands for (0, …, x, …, 0).
        others: Contexts of the same kind, [k, d]; without them, H of the contexts with themselves.
        depth: L, the layers of the network.
        initialization: The θ_0 whose limit to take. `gaussian` has H; `symmetric`, and `paper` on contexts of two
            equal halves, have H̃^(L), because their last layer has variance 2/m, not 1/m.
        progress: Called with the tiles done and the total.

    Returns:
        [n, n], or [n, k] with others, in float64.

    Raises:
        InputError: Contexts that are not finite numbers or whose norms leave float64, a depth below 2, an
            initialization without a known limit, or a matrix larger than the free memory.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> theory.tangent_kernel(np.eye(2), depth=2).round(3)
        array([[1.5  , 0.318],
               [0.318, 1.5  ]])
    """
    a = directions(contexts)
    b = a if others is None else _matching(directions(others, name="others"), a)
    _check(depth, initialization)
    _check_scale(a, b, depth)
    shape = len(a), len(b)
    require_memory(
        8 * shape[0] * shape[1], what=f"a kernel matrix of {shape[0]} × {shape[1]}", cure="take fewer", host=True
    )
    matrix = np.empty(shape)

    def fill(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        matrix[tile] = _tile(a.take(rows), b.take(columns), depth, initialization)
        if others is None and rows != columns:
            matrix[columns, rows] = matrix[tile].T

    spread(fill, tiles(len(a)) if others is None else tiles(*shape), progress)
    return matrix


def kernel_product(
    contexts: Any, *, depth: int, initialization: str = "gaussian"
) -> Callable[[np.ndarray], np.ndarray]:
    """A function that multiplies by H without ever holding it: each tile is computed, used and dropped.

    Args:
        contexts: As for `tangent_kernel`.
        depth: L, the layers of the network.
        initialization: As for `tangent_kernel`.

    Returns:
        V [n, k] -> H V [n, k].

    Raises:
        InputError: As `tangent_kernel` does.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> theory.kernel_product(np.eye(2), depth=2)(np.ones((2, 1))).round(3)
        array([[1.818],
               [1.818]])
    """
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


def empirical_kernel(network: Network, params: Any, contexts: Any, others: Any = None) -> np.ndarray:
    """⟨g(x^i; θ), g(x^j; θ)⟩/m between every two contexts, or between contexts and others.

    Lemma B.1: at a random θ_0 it approaches H as the width m grows, with an error of order 1/√m. Computed in tiles, in
    the network's precision; no gradient of length p is ever built.
    Departure: for a θ_0 of two halves the limit is H̃^(L); see `tangent_kernel`.

    Args:
        network: Such as `mlp(dim, width=20)`.
        params: θ, such as `network.init(key)`.
        contexts: A pytree that the network takes, with a leading axis of n contexts.
        others: Contexts of the same kind, k of them; without them, the kernel of the contexts with themselves.

    Returns:
        [n, n], or [n, k] with others, in float64.

    Raises:
        InputError: Contexts that are not finite, or that the network cannot take.

    Example:
        >>> import jax, numpy as np
        >>> from neuralucb import theory
        >>> from neuralucb.networks.mlp import mlp
        >>> network = mlp(2, width=16)
        >>> theory.empirical_kernel(network, network.init(jax.random.key(0)), np.eye(2, dtype=np.float32)).shape
        (2, 2)
    """
    count = _count(network, contexts, "contexts")
    right = contexts if others is None else others
    columns = count if others is None else _count(network, others, "others")
    matrix = np.empty((count, columns))
    for rows, across in tiles(count, None if others is None else columns, size=GRADIENT_TILE):
        matrix[rows, across] = _products(network, params, _take(contexts, rows), _take(right, across))
        if others is None:
            matrix[across, rows] = matrix[rows, across].T
    return matrix


def _tile(a: Directions, b: Directions, depth: int, initialization: str) -> np.ndarray:
    """One tile of H. The recursion over layers is in 1 - ρ, which keeps its digits where ρ is near 1."""
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
    """The others, where they are of the same kind as the contexts."""
    if others.unit.shape[1] != contexts.unit.shape[1] or (others.arm is None) != (contexts.arm is None):
        raise InputError(
            f"others must be contexts of the same kind, got {_kind(others)} where contexts have {_kind(contexts)}."
        )
    return others


def _kind(known: Directions) -> str:
    return f"{known.unit.shape[1]} numbers and {'no arms' if known.arm is None else 'arms'}"


def _check_scale(a: Directions, b: Directions, depth: int) -> None:
    """H grows with the product of two norms: refuse one that overflows, or that vanishes where no context is 0."""
    largest = float(a.norm.max()), float(b.norm.max())
    least = tuple(float(known.norm.min(where=known.norm > 0, initial=1.0)) for known in (a, b))
    for pair, lost, word in (
        (largest, math.prod(largest) * depth == math.inf, "down"),
        (least, math.prod(least) < sys.float_info.min, "up"),
    ):
        if lost:
            raise InputError(
                f"contexts must have norms whose products are within float64, got {pair[0]:.3g} and {pair[1]:.3g}; "
                f"scale them {word}, and λ with the square of that."
            )


def _check(depth: int, initialization: str) -> None:
    if not isinstance(depth, int | np.integer):
        raise TypeError(f"depth must be an integer, got {depth!r}.")
    if depth < 2:
        raise InputError(f"depth must be at least 2, got {depth}.")
    if initialization not in LIMITS:
        raise InputError(
            f"initialization must be one of {', '.join(LIMITS)}, got {initialization!r}; "
            "the limit of infinite width is known only for these."
        )


def _products(network: Network, params: Any, a: Any, b: Any) -> np.ndarray:
    """One tile of the empirical kernel."""

    def gradients(rows: Any) -> Any:
        return jax.vmap(lambda context: network.tangent(params, context)[1])(rows)

    def every_two(a: Any, b: Any) -> jax.Array:
        return jax.vmap(jax.vmap(inner, (None, 0)), (0, None))(gradients(a), gradients(b))

    return np.asarray(exact(every_two)(a, b), dtype=np.float64)


def _count(network: Network, contexts: Any, name: str) -> int:
    """How many contexts there are, checked: rows of the shape that the network takes, of finite numbers."""
    leaves = jax.tree.leaves(contexts)
    counts = {np.shape(leaf)[:1] for leaf in leaves}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise InputError(
            f"{name} must be an array with one row per context, or a pytree of such arrays, got "
            f"{type(contexts).__name__} of shapes {sorted(map(np.shape, leaves))[:3]}."
        )
    rows = jax.tree.map(np.asarray, contexts)
    for row in range(len(leaves[0])):
        network.check(_take(rows, row))
    for leaf in leaves:
        bad = np.flatnonzero(~np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1))
        if bad.size:
            raise InputError(f"{name} must be finite, got NaN or infinity in row {bad[0]}.")
    return len(leaves[0])


def _take(contexts: Any, rows: slice | int) -> Any:
    return jax.tree.map(lambda leaf: leaf[rows], contexts)
