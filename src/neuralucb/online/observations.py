"""What was observed, on the host: arrays that double, or of a sliding window."""

from typing import Any

import jax
import numpy as np

from neuralucb.history import History
from neuralucb.online.compiled import room_for
from neuralucb.online.contexts import Shape

__all__ = ["Observations"]


class Observations:
    """Contexts and rewards in the order in which they came; the last `window` of them, or all.

    Rows that were handed out never change: growing and forgetting make new arrays.
    """

    def __init__(self, shape: Shape, window: int | None) -> None:
        self.window = window
        self.total = 0
        self._first = 0
        """the number, from the start, of the first row that is kept"""
        self._contexts, self._rewards = _room(shape, room_for(0))
        self._shape = shape

    def add(self, contexts: Any, rewards: np.ndarray, *, keep_from: int | None = None) -> None:
        """Append rows; those from `keep_from` on are kept though the window has passed them."""
        count = len(rewards)
        used = self.total - self._first
        if used + count > len(self._rewards):
            self._move(count, keep_from)
            used = self.total - self._first
        _put(self._contexts, used, contexts)
        self._rewards[used : used + count] = rewards
        self.total += count

    def since(self, number: int) -> tuple[Any, np.ndarray]:
        """The rows from the number-th on, or as many of them as are kept."""
        start, end = max(0, number - self._first), self.total - self._first
        return jax.tree.map(lambda rows: rows[start:end], (self._contexts, self._rewards))

    def kept(self) -> tuple[Any, np.ndarray]:
        """The rows that a training may see."""
        return self.since(0 if self.window is None else self.total - self.window)

    def history(self, contexts: Any, rewards: np.ndarray) -> History:
        """Rows as a policy's `learn` takes them, padded to a power of two."""
        count = len(rewards)
        wide, wide_rewards = _room(self._shape, room_for(count))
        _put(wide, 0, contexts)
        wide_rewards[:count] = rewards
        return History._make((wide, wide_rewards.astype(np.float32), np.int32(count), np.int32(count)))

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self._contexts, self._rewards)))

    def restore(self, contexts: Any, rewards: np.ndarray, total: int) -> None:
        """Begin again with these rows, the last of which was the total-th."""
        self._first = self.total = total - len(rewards)
        self._contexts, self._rewards = _room(self._shape, room_for(len(rewards)))
        self.add(contexts, rewards)

    def _move(self, count: int, keep_from: int | None) -> None:
        """Make room: forget what the window has passed, and double."""
        oldest = 0 if self.window is None else max(0, self.total - self.window)
        if keep_from is not None:
            oldest = min(oldest, keep_from)
        contexts, rewards = self.since(oldest)
        self._first = max(self._first, oldest)
        # twice what is needed, so that moving is rare
        self._contexts, self._rewards = _room(self._shape, room_for(2 * len(rewards) + count))
        _put(self._contexts, 0, contexts)
        self._rewards[: len(rewards)] = rewards


def _room(shape: Shape, capacity: int) -> tuple[Any, np.ndarray]:
    leaves = [np.zeros((capacity, *size), np.dtype(kind)) for size, kind in shape.leaves]
    return jax.tree.unflatten(shape.structure, leaves), np.zeros(capacity, np.float64)


def _put(wide: Any, start: int, contexts: Any) -> None:
    """Write contexts into the rows from `start` on."""
    for rows, new in zip(jax.tree.leaves(wide), jax.tree.leaves(contexts), strict=True):
        rows[start : start + len(new)] = new
