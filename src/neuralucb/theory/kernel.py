"""The neural tangent kernel of an infinitely wide network (Zhou et al. 2020, Definition 1), in closed form for ReLU."""

import math
import sys
from collections.abc import Callable
from itertools import combinations_with_replacement
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.gradients import inner
from neuralucb.networks.network import Network
from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import exact
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.threads import spread

__all__ = [
    "Directions",
    "directions",
    "distinct",
    "empirical_kernel",
    "kernel_product",
    "parallel_pair",
    "tangent_kernel",
]

TILE = 128
"""Contexts a side: the handful of arrays that a tile takes stay in a core's cache."""


NEAR = 1e-6
"""1 - |cos| below which an angle is computed from a difference: from the cosine it would have 10 digits or fewer."""


PARALLEL = 1e-6
"""Radians: directions nearer than this are one direction, about what contexts stored in float32 can tell apart."""


class Directions(NamedTuple):
    """Contexts as unit vectors and norms, in float64."""

    unit: np.ndarray
    """[n, d] x/‖x‖; 0 for a context that is 0"""
    norm: np.ndarray
    """[n]"""
    arm: np.ndarray | None
    """[n] the arm whose block of (0, …, x, …, 0) holds x; None where contexts are plain vectors"""

    def __len__(self) -> int:
        return len(self.norm)

    def take(self, rows: Any) -> "Directions":
        """Some of the contexts."""
        return Directions(self.unit[rows], self.norm[rows], None if self.arm is None else self.arm[rows])


def directions(contexts: Any, *, name: str = "contexts") -> Directions:
    """Contexts, checked: an array [n, d], or a `Slot` of x [n, d] and arm [n], which stands for (0, …, x, …, 0)."""
    if isinstance(contexts, Directions):
        return contexts
    x, arm = (contexts.x, np.asarray(contexts.arm)) if isinstance(contexts, Slot) else (contexts, None)
    try:
        rows = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a table of numbers, a row for each context, all of one length.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"{name} must be a table, a row for each context, got shape {rows.shape}.")
    if arm is not None and arm.shape != rows.shape[:1]:
        raise InputError(f"{name} must have an arm for each of the {len(rows)} rows, got shape {arm.shape}.")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} must be finite, got NaN or infinity in row {np.argwhere(~np.isfinite(rows))[0][0]}.")
    largest = np.abs(rows).max(axis=1)
    scaled = rows / np.where(largest > 0, largest, 1)[:, None]  # squares of very large or small numbers have no place
    length = np.linalg.norm(scaled, axis=1)
    with np.errstate(over="ignore"):
        norm = largest * length
    if not np.isfinite(norm).all():
        row = int(np.flatnonzero(~np.isfinite(norm))[0])
        raise InputError(
            f"{name} must have norms within float64, got one beyond in row {row}; scale the contexts down."
        )
    return Directions(scaled / np.where(length > 0, length, 1)[:, None], norm, arm)


def angles(a: Directions, b: Directions) -> tuple[np.ndarray, np.ndarray]:
    """The angle α between every two directions, and 1 - cos α, both to full precision near 0 and near π."""
    cosine = a.unit @ b.unit.T
    same = None if a.arm is None or b.arm is None else a.arm[:, None] == b.arm[None]
    if same is not None:
        cosine *= same
    np.clip(cosine, -1, 1, out=cosine)
    angle = np.arccos(cosine)
    gap = np.subtract(1, cosine)
    left, right = np.nonzero((gap < NEAR) | (gap > 2 - NEAR))
    if left.size:
        opposite = gap[left, right] > 1
        sign = np.where(opposite, -1.0, 1.0)[:, None]
        half = np.arcsin(np.minimum(np.linalg.norm(a.unit[left] - sign * b.unit[right], axis=1) / 2, 1))
        angle[left, right] = np.where(opposite, np.pi - 2 * half, 2 * half)
        gap[left, right] = np.where(opposite, 2 * np.cos(half) ** 2, 2 * np.sin(half) ** 2)
    return angle, gap


def tiles(rows: int, columns: int | None = None, *, size: int | None = None) -> list[tuple[slice, slice]]:
    """The tiles of a matrix; of a symmetric one, without `columns`, those on and above the diagonal."""
    size = size or TILE
    down = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if columns is None:
        return list(combinations_with_replacement(down, 2))
    across = [slice(start, min(start + size, columns)) for start in range(0, columns, size)]
    return [(up, left) for up in down for left in across]


def parallel_pair(contexts: Any) -> tuple[int, int] | None:
    """The first two contexts of one direction, which make H singular; a context that is 0 pairs with itself.

    Opposite directions are not counted: two of them leave H regular.
    """
    groups = distinct(contexts)
    known = directions(contexts)
    zero = np.flatnonzero(known.norm == 0)
    if zero.size:
        return int(zero[0]), int(zero[0])
    later = np.flatnonzero(groups != np.arange(len(groups)))
    return (int(groups[later[0]]), int(later[0])) if later.size else None


def distinct(contexts: Any) -> np.ndarray:
    """For each context the first one of its direction, itself if none came before."""
    known = directions(contexts)
    first = np.arange(len(known))
    for rows, columns in tiles(len(known)):
        a, b = np.nonzero(known.unit[rows] @ known.unit[columns].T > 1 - NEAR)
        a, b = a + rows.start, b + columns.start
        kept = (a < b) & (known.arm is None or known.arm[a] == known.arm[b])
        a, b = a[kept], b[kept]
        close = np.linalg.norm(known.unit[a] - known.unit[b], axis=1) < PARALLEL
        np.minimum.at(first, b[close], a[close])
    return first


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
        raise InputError(
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
            raise InputError(
                f"contexts must have norms whose products are within float64, got {pair[0]:.3g} and {pair[1]:.3g}; "
                f"scale them {word}, and λ with the square of that."
            )


def _check(depth: int, initialization: str) -> None:
    if not isinstance(depth, int | np.integer):
        raise TypeError(f"depth must be a whole number, got {depth!r}.")
    if depth < 2:
        raise InputError(f"depth must be at least 2, got {depth}.")
    if initialization not in LIMITS:
        raise InputError(
            f"initialization must be one of {', '.join(LIMITS)}, got {initialization!r}; "
            "Definition 1 has no kernel for others."
        )


GRADIENT_TILE = 256
"""Contexts a tile: their gradients are kept as factors, a few vectors of length m each."""


def empirical_kernel(network: Network, params: Any, contexts: Any, others: Any = None) -> np.ndarray:
    """⟨g(x^i; θ), g(x^j; θ)⟩/m between every two contexts, or between contexts and others, in float64.

    Lemma B.1: at a random θ_0 it approaches H as the width m grows, with an error of order 1/√m.
    contexts is a pytree with a leading axis, as many as you like: the work is done in tiles, and no gradient of
    length p is ever built. Computed in the network's own precision.
    Departure: for a θ_0 of two halves the limit is H̃^(L); see `tangent_kernel`.
    """
    count = _count(network, contexts, "contexts")
    columns = count if others is None else _count(network, others, "others")
    matrix = np.empty((count, columns))
    for rows, across in (
        tiles(count, size=GRADIENT_TILE) if others is None else tiles(count, columns, size=GRADIENT_TILE)
    ):
        right = contexts if others is None else others
        matrix[rows, across] = _products(network, params, _take(contexts, rows), _take(right, across))
        if others is None:
            matrix[across, rows] = matrix[rows, across].T
    return matrix


def _products(network: Network, params: Any, a: Any, b: Any) -> np.ndarray:
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
            f"{name} must be an array with a row for each context, or a pytree of such arrays, got "
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
