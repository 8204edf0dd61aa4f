"""From what a caller gives to what the state takes: contexts of named arms, rewards, what a log says was played."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId
from neuralucb.online.contexts import read_available
from neuralucb.online.state import State
from neuralucb.policy import Slot

__all__ = ["Request", "played", "read_request", "read_rewards"]


class Request(NamedTuple):
    """A question as the programs take it: contexts [K, …] or [B, K, …], the arms' ids if any, which may be chosen."""

    contexts: Any
    ids: tuple[ArmId, ...] | None
    available: np.ndarray


def read_request(state: State, contexts: Any, arms: Sequence[ArmId] | None, available: Any, axes: int) -> Request:
    """What a caller asks, checked."""
    whole, ids = _spread(state, contexts, arms, axes)
    read, lengths = state.shape.read(whole, axes)
    return Request(read, ids, read_available(available, lengths))


def played(state: State, contexts: Any, arms: Any, count: int) -> Any:
    """The contexts of the arms that were played, one row each, from a log's columns."""
    if arms is None:
        return state.shape.read(contexts, 1)[0]
    if len(arms) != count:
        raise ValueError(f"arms must be as many as rewards, {count}, got {len(arms)}.")
    if len(state.arms):
        ids = [arm.item() if isinstance(arm, np.generic) else arm for arm in arms]
        state.arms.check(dict.fromkeys(ids))
        rows = [state.arms.contexts(x, (arm,)) for x, arm in zip(np.asarray(contexts), ids, strict=True)]
        return state.shape.read(jax.tree.map(lambda *leaves: np.concatenate(leaves), *rows), 1)[0]
    whole, _ = _spread(state, contexts, None, 2)
    whole, (_, choices) = state.shape.read(whole, 2)
    index = np.asarray(arms)
    if index.dtype.kind not in "iu" or index.ndim != 1 or index.min() < 0 or index.max() >= choices:
        raise ValueError(f"arms must be whole numbers from 0 to {choices - 1}, got {arms!r:.80}.")
    return jax.tree.map(lambda leaf: leaf[np.arange(count), index], whole)


def read_rewards(rewards: Any, count: int) -> np.ndarray:
    """Finite numbers, as many as wanted."""
    try:
        values = np.asarray(rewards, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"rewards must be numbers, got {rewards!r:.80}.") from None
    if values.shape != (count,):
        raise ValueError(f"rewards must be {count} numbers, one a decision, got shape {values.shape}.")
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        raise ValueError(f"reward must be a finite number, got {values[bad][0]}; give none, and let it expire.")
    return values.astype(np.float32)


def _spread(state: State, given: Any, arms: Sequence[ArmId] | None, axes: int) -> tuple[Any, tuple[ArmId, ...] | None]:
    """Contexts with an axis of arms, and the arms' ids if they have any."""
    shape = state.shape
    shared = given is None or (not isinstance(given, Slot) and np.ndim(_first_leaf(given)) == axes)
    if arms is not None or (len(state.arms) and shared):
        ids = state.arms.check(arms)
        return state.arms.contexts(given, ids), ids
    if shared and shape.is_slot and given is not None and state.places is not None:
        x = np.asarray(given)
        whole = np.broadcast_to(x[..., None, :], (*x.shape[:-1], state.places, x.shape[-1]))
        places = np.broadcast_to(np.arange(state.places, dtype=np.int32), whole.shape[:-1])
        return Slot._make((whole, places)), None
    if given is None:
        raise ValueError(f"contexts must be {shape.in_words(axes)}, got None; without contexts, add arms first.")
    return given, None


def _first_leaf(tree: Any) -> Any:
    leaves = jax.tree.leaves(tree) if not isinstance(tree, list | tuple) or isinstance(tree, Slot) else [tree]
    try:
        return np.asarray(leaves[0]) if leaves else np.zeros(0)
    except ValueError:
        return np.zeros((0, 0, 0))
