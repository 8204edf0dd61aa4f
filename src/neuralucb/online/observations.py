"""Past observations in host memory: arrays that double when they are full, or hold a sliding window."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np

from neuralucb.history import History
from neuralucb.online.compiled import history_capacity
from neuralucb.online.context_shape import ContextShape
from neuralucb.policy import Noted

__all__ = ["ABOUT", "Observations"]

FULL = 0.75
"""Share of the rows in use from which there is made room for twice as many."""

ABOUT = ("number", "time", "label")
"""What is known of the decision behind a row: its number, when it was made, and its arm, as a number that the state
gives it. -1, NaN and -1 where it is not: a log was fitted, or version 0.1 wrote it."""


class Observations:
    """Contexts and rewards in order of arrival: all of them, or the last `window`.

    Rows that were handed out never change: growing and forgetting make new arrays.
    """

    def __init__(self, shape: ContextShape, window: int | None) -> None:
        self.window = window
        self.total: int = 0
        """how many have ever been added"""
        self._first = 0
        """the number of the oldest row in memory"""
        self._contexts, self._rewards = _allocate(shape, history_capacity(0))
        self._about = _unknown(len(self._rewards))
        self._are_lent = False
        """whether the rows are another's"""
        self._shape = shape

    def add(
        self, contexts: Any, rewards: np.ndarray, *, keep_from: int | None = None, about: np.ndarray | None = None
    ) -> None:
        """Append rows; those from number `keep_from` on stay in memory even when they leave the window."""
        count = len(rewards)
        used = self.total - self._first
        if used + count > len(self._rewards):
            self._grow(count, keep_from)
            used = self.total - self._first
        _write(self._contexts, used, contexts)
        self._rewards[used : used + count] = rewards
        self._about[used : used + count] = _unknown(count) if about is None else about
        self.total += count

    def make_room(self, lock: AbstractContextManager[Any]) -> None:
        """Grow before it is needed, if it soon will be; the lock is held for the rows that came meanwhile, not for all.

        Without this, adding a row to hundreds of thousands would now and then take half a second.
        """
        with lock:
            used, rows = self.total - self._first, self._rewards
            old = [*jax.tree.leaves(self._contexts), rows, self._about]
        if self._are_lent or self.window is not None or used < FULL * len(rows):
            return
        contexts, rewards = _allocate(self._shape, 2 * len(rows))
        new = [*jax.tree.leaves(contexts), rewards, _unknown(len(rewards))]
        for target, source in zip(new, old, strict=True):
            target[:used] = source[:used]  # they never change once they are added
        with lock:
            if self._rewards is rows:  # else it has grown, or holds other rows
                end = self.total - self._first
                for target, source in zip(new, old, strict=True):
                    target[used:end] = source[used:end]
                self._contexts, self._rewards, self._about = contexts, rewards, new[-1]

    def since(self, number: int) -> tuple[Any, np.ndarray]:
        """The rows from this number on, as far as they are in memory."""
        start, end = max(0, number - self._first), self.total - self._first
        return jax.tree.map(lambda rows: rows[start:end], (self._contexts, self._rewards))

    def in_window(self) -> tuple[Any, np.ndarray]:
        """The rows to learn from: the window, or all."""
        return self.since(0 if self.window is None else self.total - self.window)

    def about(self) -> np.ndarray:
        """[n, 3] what is known of the decisions behind the rows to learn from; columns are ABOUT."""
        count = len(self.in_window()[1])
        end = self.total - self._first
        return self._about[end - count : end]

    def without(self, numbers: np.ndarray) -> "Observations":
        """Those in the window that are not of decisions with these numbers."""
        contexts, rewards = self.in_window()
        about = self.about()
        left = ~np.isin(about[:, 0], numbers.astype(np.float64))
        made = Observations(self._shape, self.window)
        rest = jax.tree.map(lambda rows: rows[left], (contexts, rewards))
        made.restore(rest[0], rest[1], int(left.sum()), about[left])
        return made

    def refit(self, shape: ContextShape) -> "Observations":
        """Those in the window, as a policy that notes other things keeps them."""
        made = Observations(shape, self.window)
        made.follow(self)
        contexts, rewards = made.in_window()
        made.restore(contexts, rewards, self.total, self.about())
        return made

    def history(self, contexts: Any, rewards: np.ndarray, *, capacity: int | None = None) -> History:
        """Rows as a policy's `learn` takes them, padded to a power of two, by default the next one."""
        count = len(rewards)
        padded, padded_rewards = _allocate(self._shape, capacity or history_capacity(count))
        _write(padded, 0, contexts)
        padded_rewards[:count] = rewards
        padded = padded.context if isinstance(padded, Noted) else padded  # notes are for `observe` alone
        return History._make((padded, padded_rewards.astype(np.float32), np.int32(count), np.int32(count)))

    @property
    def bytes(self) -> int:
        """Memory used."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self._contexts, self._rewards)))

    def lend(self) -> tuple[Any, np.ndarray, int, int]:
        """The arrays themselves, the number of their first row, and the number after the last one in use."""
        return self._contexts, self._rewards, self._first, self.total

    def follow(self, other: "Observations") -> None:
        """Become a view of another's rows, which costs no memory. From then on only the other may add."""
        contexts, self._rewards, self._first, self.total = other.lend()
        self._are_lent = True
        contexts = contexts.context if isinstance(contexts, Noted) else contexts
        if len(jax.tree.leaves(contexts)) < len(self._shape.leaves):  # what this policy would have noted is not known
            (size, kind) = self._shape.leaves[-1]
            contexts = Noted._make((contexts, np.zeros((len(self._rewards), *size), kind)))
        self._contexts = contexts
        self._about = np.broadcast_to(_unknown(1), (len(self._rewards), len(ABOUT)))

    def restore(self, contexts: Any, rewards: np.ndarray, total: int, about: np.ndarray | None = None) -> None:
        """Replace everything by these rows, the last of `total`."""
        self._first = self.total = total - len(rewards)
        self._are_lent = False
        self._contexts, self._rewards = _allocate(self._shape, history_capacity(len(rewards)))
        self._about = _unknown(len(self._rewards))
        self.add(contexts, rewards, about=about)

    def _grow(self, count: int, keep_from: int | None) -> None:
        """Make space for `count` rows: drop those outside the window, then double."""
        oldest = 0 if self.window is None else max(0, self.total - self.window)
        if keep_from is not None:
            oldest = min(oldest, keep_from)
        contexts, rewards = self.since(oldest)
        end = self.total - self._first
        about = self._about[end - len(rewards) : end]
        self._first = max(self._first, oldest)
        # twice what is needed, so that copying is rare
        self._contexts, self._rewards = _allocate(self._shape, history_capacity(2 * len(rewards) + count))
        _write(self._contexts, 0, contexts)
        self._rewards[: len(rewards)] = rewards
        self._about = _unknown(len(self._rewards))
        self._about[: len(rewards)] = about


def _allocate(shape: ContextShape, capacity: int) -> tuple[Any, np.ndarray]:
    return shape.zeros(capacity), np.zeros(capacity, np.float64)


def _unknown(count: int) -> np.ndarray:
    return np.tile(np.asarray([-1.0, np.nan, -1.0]), (count, 1))


def _write(target: Any, start: int, contexts: Any) -> None:
    """Write contexts into the rows from `start` on."""
    for rows, new in zip(jax.tree.leaves(target), jax.tree.leaves(contexts), strict=True):
        rows[start : start + len(new)] = new
