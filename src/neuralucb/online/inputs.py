"""The arguments of an `OnlineBandit`, checked."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId, Arms, arm_id
from neuralucb.online.contexts import Shape, read_available
from neuralucb.online.journal import SYNCS
from neuralucb.policy import Policy, Slot
from neuralucb.runtime.errors import InputError
from neuralucb.schedules import read_schedule
from neuralucb.settings import check_integer

__all__ = [
    "Request",
    "check_policy",
    "is_number",
    "names_of",
    "pieces",
    "played",
    "read_arguments",
    "read_request",
    "read_rewards",
]

LEARNING = ("inline", "background", "manual")


def check_policy(policy: Any, journal: Any) -> None:
    """A policy, and a path for its journal if any."""
    if not isinstance(policy, Policy):
        raise InputError(f"policy must be one that build made, or your own Policy, got {policy!r:.80}.")
    if journal is not None and not isinstance(journal, str | PathLike):
        raise InputError(f"journal must be a folder's path, got {journal!r:.80}.")


def read_arguments(
    *, seed: Any, schedule: Any, learning: Any, window: Any, normalize: Any, count_pending: Any, floor: Any,
    snapshot_every: Any, sync: Any,
) -> dict[str, Any]:  # fmt: skip
    """What a bandit is made with, as it is kept beside its state."""
    for name, value, known in (("learning", learning, LEARNING), ("sync", sync, SYNCS)):
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    for name, value in (("normalize", normalize), ("count_pending", count_pending)):
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {value!r}.")
    if any(phase.forgets for phase in read_schedule(schedule)):
        raise InputError(f"schedule must not forget (!) here, got {schedule!r}; take window.")
    if not is_number(floor) or not 0 <= floor <= 1:
        raise InputError(f"floor must be a probability, from 0 to 1, got {floor!r}; 0.02 explores one in fifty.")
    return {
        "seed": check_integer("seed", seed, 0),
        "schedule": str(schedule),
        "learning": learning,
        "window": None if window is None else check_integer("window", window, 1),
        "normalize": bool(normalize),
        "count_pending": bool(count_pending),
        "floor": float(floor),
        "snapshot_every": check_integer("snapshot_every", snapshot_every, 1),
        "sync": sync,
    }


def is_number(value: Any) -> bool:
    """Whether it is a real number, also one of NumPy's."""
    return isinstance(value, int | float | np.integer | np.floating)


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
            raise InputError(f"rewards must be {found} numbers, one for each context, got {count}.")
        return rows
    if np.ndim(choices) != 1 or len(choices) != count:
        raise InputError(f"arms must be as many as rewards, {count}, got shape {np.shape(choices)}.")
    if arms.place:
        ids = tuple(arm_id(arm) for arm in choices)
        arms.check(dict.fromkeys(ids))
        return arms.shape.read(arms.played(contexts, ids), 1)[0]
    whole, _ = _spread(arms, contexts, None, 2)
    whole, (found, number) = arms.shape.read(whole, 2)
    if found != count:
        raise InputError(f"contexts must be {count} sets, one for each reward, got {found}.")
    index = np.asarray(choices)
    if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= number:
        raise InputError(f"arms must be whole numbers from 0 to {number - 1}, got {choices!r:.80}.")
    return jax.tree.map(lambda leaf: leaf[np.arange(count), index], whole)


def read_rewards(rewards: Any, count: int) -> np.ndarray:
    """Finite numbers, as many as wanted."""
    try:
        given = np.asarray(rewards)
        if given.dtype.kind not in "fiubO":  # "1" would do as a number, and 1 + 2j as 1
            raise TypeError
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"rewards must be numbers, got {rewards!r:.80}.") from None
    if values.shape != (count,):
        raise InputError(f"rewards must be {count} numbers, one a decision, got shape {values.shape}.")
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        raise InputError(f"reward must be a finite number, got {values[bad][0]}; give none, and let it expire.")
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
        raise InputError(f"contexts must be {shape.in_words(axes)}, got None; without contexts, add arms first.")
    if shared and shape.is_vector and len(shape.leaves[0][0]) == 1:
        got = np.shape(given)
        raise InputError(f"contexts must be {shape.in_words(axes)}, got shape {got}; if arms share it, add arms first.")
    return given, None


def _check_places(arms: Arms, contexts: Any) -> None:
    if isinstance(contexts, Slot) and arms.places is not None:
        places = np.asarray(contexts.arm)
        if places.min() < 0 or places.max() >= arms.places:
            raise InputError(f"arm must be from 0 to {arms.places - 1}, got {places.min()} to {places.max()}.")


def _dimensions(given: Any) -> int | None:
    """How many axes an array or nested lists have; None for other trees, and for lists that are no array."""
    if type(given) not in (list, tuple) and not hasattr(given, "shape"):
        return None
    try:
        return np.ndim(np.asarray(given))
    except ValueError:
        return None


ROWS = 4096
"""Observations taken at once: others may decide in between."""


def pieces(arms: Arms, contexts: Any, choices: Any, rewards: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Contexts of what was played, and rewards, some at a time; all of them checked before the first."""
    if hasattr(contexts, "chunks"):
        if choices is not None or rewards is not None:
            raise InputError("arms and rewards must be None beside a log, which has its own.")
        yield from _of_log(arms, contexts)
        return
    if rewards is None:
        raise InputError("rewards must be numbers, one for each context, got None.")
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
        raise InputError(f"{contexts.path} has the features {names}, the bandit has learned from {known}.")
    return names


def _of_log(arms: Arms, log: Any) -> Iterator[tuple[Any, np.ndarray]]:
    from neuralucb.logs.batches import batches
    from neuralucb.logs.warm_start import chosen

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
        raise InputError(f"{log.path} has no reward to learn from.")
