"""Observing the decisions of a log: block by block, so that other threads need not wait for all."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from neuralucb.online.state import Event, State

__all__ = ["fit"]


def fit(
    state: State,
    lock: AbstractContextManager[Any],
    commit: Callable[[Event], None],
    names: dict[str, list[str]] | None,
    blocks: Iterable[tuple[Any, np.ndarray, int]],
) -> None:
    """Commit observations that others decided: contexts, rewards, and how many of these were clipped.

    names  of the features, if the log has them
    """
    for rows, values, clipped in blocks:
        with lock:
            if names != state.names:
                commit(Event("names", {"names": names}, {}))
            arrays = {**state.context_arrays(rows), "rewards": values}
            commit(Event("fit", {"clipped": clipped} if clipped else {}, arrays))
