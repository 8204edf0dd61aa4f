"""Contexts as directions and norms: angles between them, and which have the same direction and make H singular."""

from typing import Any, NamedTuple

import numpy as np

from neuralucb.policy import Slot
from neuralucb.runtime.errors import InputError
from neuralucb.theory.linalg import tiles

__all__ = [
    "Directions",
    "angles",
    "directions",
    "first_of_direction",
    "parallel_pair",
    "require_regular",
]

NEAR = 1e-6
"""1 - |cos| below which an angle is computed from a difference: from the cosine it would have 10 digits or fewer."""

PARALLEL = 1e-6
"""Radians: directions nearer than this count as the same, about what contexts stored in float32 can tell apart."""


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
        raise InputError(f"{name} must be a table of numbers, one row per context, all of one length.") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"{name} must be a table, one row per context, got shape {rows.shape}.")
    if arm is not None and arm.shape != rows.shape[:1]:
        raise InputError(f"{name} must have one arm for each of the {len(rows)} rows, got shape {arm.shape}.")
    if not np.isfinite(rows).all():
        raise InputError(f"{name} must be finite, got NaN or infinity in row {np.argwhere(~np.isfinite(rows))[0][0]}.")
    largest = np.abs(rows).max(axis=1)
    scaled = rows / np.where(largest > 0, largest, 1)[:, None]  # else squares would overflow, or vanish
    length = np.linalg.norm(scaled, axis=1)
    with np.errstate(over="ignore"):
        norm = largest * length
    if not np.isfinite(norm).all():
        row = int(np.flatnonzero(~np.isfinite(norm))[0])
        raise InputError(
            f"{name} must have norms within float64, got one beyond it in row {row}; scale the contexts down."
        )
    return Directions(scaled / np.where(length > 0, length, 1)[:, None], norm, arm)


def require_regular(contexts: Any) -> None:
    """Raise InputError, naming the pair, where two contexts have the same direction: H then has no inverse.

    A network without biases is homogeneous, f(cx) = c f(x) for c > 0, so that parallel contexts are as bad as equal
    ones. Assumption 4.2 excludes both.

    Args:
        contexts: An array [n, d], or a `Slot` of x [n, d] and arm [n].

    Raises:
        InputError: Two contexts have the same direction, or one is 0.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> theory.require_regular(np.eye(3))
    """
    pair = parallel_pair(contexts)
    if pair is None:
        return
    a, b = pair
    fault = f"context {a} is 0" if a == b else f"contexts {a} and {b} have the same direction"
    raise InputError(f"{fault}, which makes H singular, λ_0 = 0 and S undefined; keep one context per direction.")


def parallel_pair(contexts: Any) -> tuple[int, int] | None:
    """The first two contexts of the same direction, which make H singular.

    Opposite directions are not counted: one such pair leaves H regular.

    Args:
        contexts: An array [n, d], or a `Slot` of x [n, d] and arm [n].

    Returns:
        Their two rows, the same row twice for a context that is 0, or None where all directions differ.

    Example:
        >>> import numpy as np
        >>> from neuralucb import theory
        >>> theory.parallel_pair(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0]]))
        (0, 2)
    """
    known = directions(contexts)
    zero = np.flatnonzero(known.norm == 0)
    if zero.size:
        return int(zero[0]), int(zero[0])
    first = first_of_direction(known)
    later = np.flatnonzero(first != np.arange(len(first)))
    return (int(first[later[0]]), int(later[0])) if later.size else None


def first_of_direction(known: Directions) -> np.ndarray:
    """For each context the row of the first one with its direction: the same row if none came before."""
    first = np.arange(len(known))
    for rows, columns in tiles(len(known)):
        a, b = np.nonzero(known.unit[rows] @ known.unit[columns].T > 1 - NEAR)
        a, b = a + rows.start, b + columns.start
        kept = (a < b) & (known.arm is None or known.arm[a] == known.arm[b])
        a, b = a[kept], b[kept]
        close = np.linalg.norm(known.unit[a] - known.unit[b], axis=1) < PARALLEL
        np.minimum.at(first, b[close], a[close])
    return first


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
