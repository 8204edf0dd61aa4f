"""From what a caller gives to what the state takes: contexts of named arms, rewards, what a log says was played."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId, Arms, arm_id
from neuralucb.online.contexts import Shape, read_available
from neuralucb.policy import Slot

__all__ = ["Request", "played", "read_request", "read_rewards"]


class Request(NamedTuple):
    """A question as the programs take it: contexts [K, …] or [B, K, …], the arms' ids if any, which may be chosen."""

    contexts: Any
    ids: tuple[ArmId, ...] | None
    available: np.ndarray


def read_request(arms: Arms, contexts: Any, named: Sequence[ArmId] | None, available: Any, axes: int) -> Request:
    """What a caller asks of the arms there are now, checked."""
    whole, ids = _spread(arms, contexts, named, axes)
    read, lengths = arms.shape.read(whole, axes)
    _check_places(arms, read)
    return Request(read, ids, read_available(available, lengths))


def played(arms: Arms, contexts: Any, choices: Any, count: int) -> Any:
    """The contexts of the arms that were played, one row each, from a log's columns."""
    if choices is None:
        rows, (found,) = arms.shape.read(contexts, 1)
        _check_places(arms, rows)
        if found != count:
            raise ValueError(f"rewards must be {found} numbers, one for each context, got {count}.")
        return rows
    if np.ndim(choices) != 1 or len(choices) != count:
        raise ValueError(f"arms must be as many as rewards, {count}, got shape {np.shape(choices)}.")
    if arms.place:
        ids = tuple(arm_id(arm) for arm in choices)
        arms.check(dict.fromkeys(ids))
        return arms.shape.read(arms.played(contexts, ids), 1)[0]
    whole, _ = _spread(arms, contexts, None, 2)
    whole, (found, number) = arms.shape.read(whole, 2)
    if found != count:
        raise ValueError(f"contexts must be {count} sets, one for each reward, got {found}.")
    index = np.asarray(choices)
    if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= number:
        raise ValueError(f"arms must be whole numbers from 0 to {number - 1}, got {choices!r:.80}.")
    return jax.tree.map(lambda leaf: leaf[np.arange(count), index], whole)


def read_rewards(rewards: Any, count: int) -> np.ndarray:
    """Finite numbers, as many as wanted."""
    try:
        given = np.asarray(rewards)
        if given.dtype.kind not in "fiubO":  # "1" would do as a number, and 1 + 2j as 1
            raise TypeError
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"rewards must be numbers, got {rewards!r:.80}.") from None
    if values.shape != (count,):
        raise ValueError(f"rewards must be {count} numbers, one a decision, got shape {values.shape}.")
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        raise ValueError(f"reward must be a finite number, got {values[bad][0]}; give none, and let it expire.")
    return values


def _spread(arms: Arms, given: Any, named: Sequence[ArmId] | None, axes: int) -> tuple[Any, tuple[ArmId, ...] | None]:
    """Contexts with an axis of arms, and the arms' ids if they have any."""
    shape: Shape = arms.shape
    shared = given is None or _dimensions(given) == axes
    if named is not None or (arms.place and shared):
        ids = arms.check(named)
        return arms.contexts(given, ids), ids
    if shared and shape.is_slot and given is not None and arms.places is not None:
        x = np.asarray(given)
        whole = np.broadcast_to(x[..., None, :], (*x.shape[:-1], arms.places, x.shape[-1]))
        places = np.broadcast_to(np.arange(arms.places, dtype=np.int32), whole.shape[:-1])
        return Slot._make((whole, places)), None
    if given is None:
        raise ValueError(f"contexts must be {shape.in_words(axes)}, got None; without contexts, add arms first.")
    if shared and shape.is_vector and len(shape.leaves[0][0]) == 1:
        got = np.shape(given)
        raise ValueError(f"contexts must be {shape.in_words(axes)}, got shape {got}; if arms share it, add arms first.")
    return given, None


def _check_places(arms: Arms, contexts: Any) -> None:
    if isinstance(contexts, Slot) and arms.places is not None:
        places = np.asarray(contexts.arm)
        if places.min() < 0 or places.max() >= arms.places:
            raise ValueError(f"arm must be from 0 to {arms.places - 1}, got {places.min()} to {places.max()}.")


def _dimensions(given: Any) -> int | None:
    """How many axes an array or nested lists have; None for other trees, and for lists that are no array."""
    if type(given) not in (list, tuple) and not hasattr(given, "shape"):
        return None
    try:
        return np.ndim(np.asarray(given))
    except ValueError:
        return None
