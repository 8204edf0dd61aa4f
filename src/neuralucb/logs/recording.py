"""From choices to a log: what a policy decided, in columns, with a propensity only where there was chance."""

import numpy as np

from neuralucb.exploring import deterministic
from neuralucb.logs.columns import Chunk, Names, blank_times

__all__ = ["recorded"]


def recorded(
    contexts: np.ndarray,
    arm: np.ndarray,
    reward: np.ndarray,
    propensity: np.ndarray,
    *,
    available: np.ndarray | None = None,
    first: int = 1,
) -> Chunk:
    """Decisions as a chunk, ready for `write_log`.

    contexts    [n, K, d], features of every arm; or [n, d], features that all arms share
    propensity  [n, K], as `Choice.propensity`; a deterministic choice is written without one
    reward      [n]; NaN where none was seen yet
    first       the number of the first decision: ids and lines count from it
    """
    contexts, propensity, arm = (np.asarray(values) for values in (contexts, propensity, arm))
    if propensity.ndim != 2 or contexts.ndim not in (2, 3) or len(contexts) != len(propensity):
        raise ValueError(
            f"contexts must be [n, K, d] or [n, d] and propensity [n, K], got {contexts.shape} and {propensity.shape}."
        )
    n, arms = propensity.shape
    if contexts.ndim == 3 and contexts.shape[1] != arms:
        raise ValueError(f"contexts have {contexts.shape[1]} arms, propensity has {arms}.")
    able = np.ones((n, arms), dtype=bool) if available is None else np.asarray(available, dtype=bool)
    counts = able.sum(axis=1)
    chosen = propensity[np.arange(n), arm].astype(np.float64)
    number = np.arange(first, first + n)
    ids = np.full(n, None, dtype=object)
    ids[:] = [str(one) for one in number]
    shared, own = (
        (contexts, np.zeros((able.sum(), 0), contexts.dtype))
        if contexts.ndim == 2
        else (
            np.zeros((n, 0), contexts.dtype),
            contexts[able],
        )
    )
    names = Names(
        tuple(f"shared/x{column}" for column in range(shared.shape[1])),
        tuple(f"own/x{column}" for column in range(own.shape[1])),
    )
    return Chunk(
        names,
        number,
        ids,
        blank_times(n),
        counts,
        np.broadcast_to(np.arange(arms, dtype=np.int32), (n, arms))[able],
        shared,
        own,
        arm.astype(np.int32),
        np.asarray(reward, np.float64),
        np.where(deterministic(chosen, counts), np.nan, chosen),
        np.ones(n),
        propensity[able].astype(np.float64),
    )
