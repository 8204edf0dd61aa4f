"""The set of all contexts {x^i} as the theory takes it: directions, norms, and which of them are parallel."""

from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from neuralucb.policy import Slot

__all__ = ["Directions", "directions", "distinct", "parallel_pair"]

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
        raise ValueError(f"{name} must be a table of numbers, a row for each context, all of one length.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} must be a table, a row for each context, got shape {rows.shape}.")
    if arm is not None and arm.shape != rows.shape[:1]:
        raise ValueError(f"{name} must have an arm for each of the {len(rows)} rows, got shape {arm.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity in row {np.argwhere(~np.isfinite(rows))[0][0]}.")
    largest = np.abs(rows).max(axis=1)
    scaled = rows / np.where(largest > 0, largest, 1)[:, None]  # squares of very large or small numbers have no place
    length = np.linalg.norm(scaled, axis=1)
    with np.errstate(over="ignore"):
        norm = largest * length
    if not np.isfinite(norm).all():
        row = int(np.flatnonzero(~np.isfinite(norm))[0])
        raise ValueError(
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
