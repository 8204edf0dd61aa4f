"""Recording decisions: what a policy chose, in columns, with a propensity unless the choice was deterministic."""

import numpy as np

from neuralucb.logs.chunk import MOST_ARMS, Chunk, as_integers, blank_times, clean, unnamed
from neuralucb.rules import deterministic
from neuralucb.runtime.errors import InputError

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

    Args:
        contexts: [n, K, d] features of every arm; or [n, d] features that all arms share.
        arm: [n] the arm chosen, from 0.
        reward: [n] the reward; NaN where none has been seen yet.
        propensity: [n, K] the probability of every arm, as `Choice.propensity`. A deterministic choice, with 1 for one
            of several arms, is recorded without a propensity.
        available: [n, K] which arms could be chosen; by default all of them.
        first: The number of the first decision, from which ids and lines count.

    Returns:
        The decisions in columns.

    Raises:
        InputError: Shapes do not fit, or a decision is one that no log may hold, with its number: a propensity not
            above 0 or above 1, an arm that was not available, an infinite reward, a feature that is not finite.

    Example:
        >>> chunk = recorded(np.ones((2, 3, 4)), np.array([0, 2]), np.array([1.0, 0.5]), np.full((2, 3), 1 / 3))
        >>> from neuralucb.logs import write_log
        >>> write_log(Path("mine.parquet"), [chunk])
        2
    """
    contexts, propensity, arm = (np.asarray(values) for values in (contexts, propensity, arm))
    reward = np.asarray(reward, np.float64)
    n, arms = _check_contexts(contexts, propensity)
    mask = np.ones((n, arms), dtype=bool) if available is None else np.asarray(available, dtype=bool)
    for name, values, shape in (("arm", arm, (n,)), ("reward", reward, (n,)), ("available", mask, (n, arms))):
        if values.shape != shape:
            raise InputError(f"{name} must have shape {shape}, one per row of propensity, got {values.shape}.")
    arm = _read_arms(arm, arms, first)
    counts, number = mask.sum(axis=1), np.arange(first, first + n)
    of_chosen = _propensity_of_chosen(propensity, arm, first)
    if contexts.ndim == 2:
        shared, own = contexts, np.zeros((mask.sum(), 0), contexts.dtype)
    else:
        shared, own = np.zeros((n, 0), contexts.dtype), contexts[mask]
    made = Chunk(
        names=unnamed(shared.shape[1], own.shape[1]),
        line=number,
        id=number.astype(str).astype(object),
        time=blank_times(n),
        counts=counts,
        arms=np.broadcast_to(np.arange(arms, dtype=np.int32), (n, arms))[mask],
        shared=shared,
        own=own,
        arm=arm,
        reward=reward,
        propensity=np.where(deterministic(of_chosen, counts), np.nan, of_chosen),
        weight=np.ones(n),
        probabilities=propensity[mask].astype(np.float64),
    )
    return clean(made, _refuse)


def _check_contexts(contexts: np.ndarray, propensity: np.ndarray) -> tuple[int, int]:
    """The numbers of decisions and of arms, on which the two must agree."""
    if propensity.ndim != 2 or contexts.ndim not in (2, 3) or len(contexts) != len(propensity):
        raise InputError(
            f"contexts must be [n, K, d] or [n, d] and propensity [n, K], got {contexts.shape} and {propensity.shape}."
        )
    decisions, arms = propensity.shape
    if contexts.ndim == 3 and contexts.shape[1] != arms:
        raise InputError(f"contexts have {contexts.shape[1]} arms, propensity has {arms}.")
    if arms > MOST_ARMS:
        raise InputError(f"a log has at most {MOST_ARMS} arms, got {arms}.")
    return decisions, arms


def _read_arms(given: np.ndarray, arms: int, first: int) -> np.ndarray:
    """The chosen arms as integers."""
    arm, wrong = as_integers(given)
    wrong |= (arm < 0) | (arm >= arms)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"decision {first + row}: arm must be a whole number in 0 to {arms - 1}, got {given[row]}.")
    return arm


def _propensity_of_chosen(propensity: np.ndarray, arm: np.ndarray, first: int) -> np.ndarray:
    of_chosen = propensity[np.arange(len(arm)), arm].astype(np.float64)
    unknown = np.flatnonzero(np.isnan(of_chosen))
    if unknown.size:
        raise InputError(f"decision {first + unknown[0]}: propensity is NaN; give 1 for a deterministic choice.")
    return of_chosen


def _refuse(line: int, reason: str) -> None:
    raise InputError(f"decision {line}: {reason}.")
