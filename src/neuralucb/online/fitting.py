"""What a bandit starts warm from: columns of a log, or a log itself, in pieces."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from neuralucb.online.arms import Arms
from neuralucb.online.asking import played, read_rewards

__all__ = ["names_of", "pieces"]

ROWS = 4096
"""Observations taken at once: others may decide in between."""


def pieces(arms: Arms, contexts: Any, choices: Any, rewards: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Contexts of what was played, and rewards, some at a time; all of them checked before the first."""
    if hasattr(contexts, "chunks"):
        if choices is not None or rewards is not None:
            raise ValueError("arms and rewards must be None beside a log, which has its own.")
        yield from _of_log(arms, contexts)
        return
    if rewards is None:
        raise ValueError("rewards must be numbers, one for each context, got None.")
    values = read_rewards(rewards, len(np.atleast_1d(rewards)))
    rows = played(arms, contexts, choices, len(values))
    for first in range(0, len(values), ROWS):
        yield jax.tree.map(lambda leaf, first=first: leaf[first : first + ROWS], (rows, values))


def names_of(contexts: Any, known: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
    """The names of a log's features, in the order in which a context has them; None where nobody said."""
    if not hasattr(contexts, "chunks"):
        return known
    names = {"shared": list(contexts.names.shared), "own": list(contexts.names.own)}
    if known is not None and known != names:
        raise ValueError(f"{contexts.path} has the features {names}, the bandit has learned from {known}.")
    return names


def _of_log(arms: Arms, log: Any) -> Iterator[tuple[Any, np.ndarray]]:
    from neuralucb.logs.batches import batches
    from neuralucb.logs.learning import chosen

    for _ in log.chunks():  # once, to the end: a log with a bad line teaches nothing
        pass
    found = 0
    for batch in batches(log):
        use = batch.valid & ~np.isnan(batch.reward)
        rows = jax.tree.map(lambda leaf, use=use: np.asarray(leaf)[use], chosen(batch))
        found += int(use.sum())
        if use.any():
            yield from pieces(arms, rows, None, batch.reward[use])
    if not found:
        raise ValueError(f"{log.path} has no reward to learn from.")
