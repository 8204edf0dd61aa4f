"""What a caller gives an `OnlineBandit`, checked and read: settings, requests, rewards, and logs to learn from."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId, Arms, arm_id
from neuralucb.online.compiled import power_of_two
from neuralucb.online.context_shape import array_shape, numbers_in
from neuralucb.online.journal import SYNCS
from neuralucb.policy import Policy, Slot
from neuralucb.runtime.errors import InputError
from neuralucb.schedules import read_schedule
from neuralucb.settings import check_integer

__all__ = [
    "Request",
    "RewardBounds",
    "check_policy",
    "feature_names",
    "is_number",
    "read_ids",
    "read_observations",
    "read_request",
    "read_rewards",
    "read_settings",
]

LEARNING = ("inline", "background", "process", "manual")
OUTSIDE = ("refuse", "clip")
LARGEST = float(np.finfo(np.float32).max)
"""Policies learn from rewards in float32."""
FIT_ROWS = 4096
"""Observations that `fit` records at once; other threads may decide in between."""


class Request(NamedTuple):
    """What to decide, as the compiled programs take it."""

    contexts: Any
    """[K, …], or [B, K, …]"""
    ids: tuple[ArmId, ...] | None
    available: np.ndarray
    """[K], or [B, K]: the arms that may be chosen"""

    def as_batch(self) -> "Request":
        """A request for one decision as one for a batch of it."""
        contexts = jax.tree.map(lambda leaf: leaf[None], self.contexts)
        return self._replace(contexts=contexts, available=self.available[None])

    @property
    def decisions(self) -> int:
        """How many decisions to make."""
        return 1 if self.available.ndim == 1 else len(self.available)

    @property
    def capacity(self) -> int:
        """How many arms to compile for: arms with ids are added and removed, so their number is padded."""
        arms = self.available.shape[-1]
        return arms if self.ids is None else power_of_two(arms)


class RewardBounds(NamedTuple):
    """Which rewards there can be, and whether others are clipped or refused."""

    low: float
    high: float
    clip: bool

    @classmethod
    def read(cls, settings: dict[str, Any]) -> "RewardBounds | None":
        """From a bandit's settings, which have been checked; None if they set no range."""
        if settings["reward_range"] is None:
            return None
        low, high = settings["reward_range"]
        return cls(low, high, settings["outside"] == "clip")

    def check(self, rewards: np.ndarray) -> None:
        """Refuse a reward outside, unless such are clipped."""
        outside = (rewards < self.low) | (rewards > self.high)
        if not self.clip and outside.any():
            raise InputError(
                f"reward must be from {self.low:g} to {self.high:g}, the reward_range, got {rewards[outside][0]:g}; "
                'correct it, let the decision expire, or set outside="clip".'
            )

    def apply(self, rewards: np.ndarray) -> tuple[np.ndarray, int]:
        """The rewards, and how many of them were clipped."""
        self.check(rewards)
        clipped = np.clip(rewards, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != rewards))


def check_policy(policy: Any, journal: Any) -> None:
    """Refuse what is not a policy, or not a path for its journal."""
    if not isinstance(policy, Policy):
        raise InputError(f"policy must be made by build, or be your own Policy, got {policy!r:.80}.")
    if journal is not None and (not isinstance(journal, str | PathLike) or not str(journal)):
        raise InputError(
            f'journal must be a folder\'s path, got {journal!r:.80}; "." is the current one, None keeps nothing.'
        )


def read_settings(
    *, seed: Any, schedule: Any, learning: Any, window: Any, normalize: Any, reward_range: Any, outside: Any,
    count_pending: Any, floor: Any, snapshot_every: Any, sync: Any,
) -> dict[str, Any]:  # fmt: skip
    """A bandit's settings, as they are stored with its state."""
    for name, value, known in (("learning", learning, LEARNING), ("sync", sync, SYNCS), ("outside", outside, OUTSIDE)):
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    for name, value in (("normalize", normalize), ("count_pending", count_pending)):
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {value!r}.")
    if any(phase.forgets for phase in read_schedule(schedule)):
        raise InputError(f"schedule must not forget (!) here, got {schedule!r}; set window instead.")
    if not is_number(floor) or not 0 <= floor <= 1:
        raise InputError(f"floor must be a probability, from 0 to 1, got {floor!r}; 0.02 explores one in fifty.")
    if reward_range is None and outside != "refuse":
        raise InputError(
            f"outside goes with reward_range, which is None, got {outside!r}; set reward_range=(low, high)."
        )
    return {
        "seed": check_integer("seed", seed, 0),
        "schedule": str(schedule),
        "learning": learning,
        "window": None if window is None else check_integer("window", window, 1),
        "normalize": bool(normalize),
        "reward_range": None if reward_range is None else _read_range(reward_range),
        "outside": outside,
        "count_pending": bool(count_pending),
        "floor": float(floor),
        "snapshot_every": check_integer("snapshot_every", snapshot_every, 1),
        "sync": sync,
    }


def is_number(value: Any) -> bool:
    """Whether it is a real number, of Python or NumPy."""
    return isinstance(value, int | float | np.integer | np.floating)


def read_request(arms: Arms, contexts: Any, named: Sequence[ArmId] | None, available: Any, axes: int) -> Request:
    """A request for one decision (`axes` = 1) or many (2) over the current arms."""
    per_arm, ids = _contexts_per_arm(arms, contexts, named, axes)
    read, lengths = arms.shape.read(per_arm, axes)
    _check_slots(arms, read)
    return Request(read, ids, _read_available(available, lengths))


def read_ids(decision_ids: Any) -> Sequence[str]:
    """A list of decisions' ids; the ledger checks each of them."""
    if isinstance(decision_ids, np.ndarray) and decision_ids.ndim == 1:
        decision_ids = decision_ids.tolist()
    if isinstance(decision_ids, str) or not isinstance(decision_ids, Sequence):
        raise InputError(f"decision_ids must be a list of ids, got {decision_ids!r:.80}.")
    return decision_ids


def read_rewards(rewards: Any, bounds: RewardBounds | None, count: int | None = None) -> tuple[np.ndarray, int]:
    """Finite numbers within the bounds, `count` of them if that is given, and how many were clipped."""
    try:
        values = np.asarray(numbers_in(rewards), np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"rewards must be numbers, got {rewards!r:.80}.") from None
    if count is None and values.ndim == 1:
        count = len(values)
    if values.shape != (count,):
        expected = "a list of numbers" if count is None else f"{count} numbers, one per decision"
        raise InputError(f"rewards must be {expected}, got shape {values.shape}.")
    bad = ~np.isfinite(values) if bounds is not None else ~(np.abs(values) <= LARGEST)
    if bad.any():
        raise InputError(
            f"reward must be a finite number, got {values[bad][0]}; if it is unknown, let the decision expire."
        )
    return (values, 0) if bounds is None else bounds.apply(values)


def read_observations(
    arms: Arms, contexts: Any, choices: Any, rewards: Any, bounds: RewardBounds | None
) -> Iterator[tuple[Any, np.ndarray, int]]:
    """The contexts of the arms played, their rewards and how many were clipped, in batches; all are checked first."""
    if hasattr(contexts, "chunks"):
        if choices is not None or rewards is not None:
            raise InputError("arms and rewards must be None when contexts is a log, which contains them.")
        yield from _read_log(arms, contexts, bounds)
        return
    if rewards is None:
        raise InputError("rewards must be numbers, one per context, got None.")
    values, clipped = read_rewards(rewards, bounds)
    rows = _played_contexts(arms, contexts, choices, len(values))
    for first in range(0, len(values), FIT_ROWS):
        batch = jax.tree.map(lambda leaf, first=first: leaf[first : first + FIT_ROWS], (rows, values))
        yield *batch, clipped if first == 0 else 0


def feature_names(contexts: Any, known: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
    """The names of a log's features, in the order of a context; those already known for other inputs."""
    if not hasattr(contexts, "chunks"):
        return known
    names = {"shared": list(contexts.names.shared), "own": list(contexts.names.own)}
    if known is not None and known != names:
        raise InputError(f"{contexts.path} has the features {names}, but the bandit has learned from {known}.")
    return names


def _read_range(reward_range: Any) -> list[float]:
    """The lowest and the highest reward, as they are stored in JSON."""
    try:
        low, high = (float(number) for number in numbers_in(reward_range))
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not -LARGEST <= low < high <= LARGEST:
        raise InputError(
            f"reward_range must be two finite numbers, the lower first, got {reward_range!r:.80}; for clicks, (0, 1)."
        )
    return [low, high]


def _contexts_per_arm(
    arms: Arms, contexts: Any, named: Sequence[ArmId] | None, axes: int
) -> tuple[Any, tuple[ArmId, ...] | None]:
    """Contexts with an axis of arms, and the arms' ids if they have any."""
    shape = arms.shape
    shared = contexts is None or _count_axes(contexts) == axes
    if named is not None or (arms.slots and shared):
        ids = arms.check(named)
        return arms.contexts(contexts, ids), ids
    if shared and shape.is_slot and contexts is not None and arms.capacity is not None:
        x = np.asarray(contexts)
        spread = np.broadcast_to(x[..., None, :], (*x.shape[:-1], arms.capacity, x.shape[-1]))
        slots = np.broadcast_to(np.arange(arms.capacity, dtype=np.int32), spread.shape[:-1])
        return Slot._make((spread, slots)), None
    if contexts is None:
        raise InputError(f"contexts must be {shape.describe(axes)}, got None; to omit them, add arms first.")
    if shared and shape.is_vector and len(shape.leaves[0][0]) == 1:
        got = np.shape(contexts)
        raise InputError(f"contexts must be {shape.describe(axes)}, got shape {got}; if arms share it, add arms first.")
    return contexts, None


def _count_axes(contexts: Any) -> int | None:
    """How many axes an array or nested lists have; None for other trees, and for rows of different lengths."""
    if type(contexts) not in (list, tuple) and not hasattr(contexts, "shape"):
        return None
    shape = array_shape(contexts)
    return None if shape is None else len(shape)


def _check_slots(arms: Arms, contexts: Any) -> None:
    if isinstance(contexts, Slot) and arms.capacity is not None:
        slots = np.asarray(contexts.arm)
        if slots.min() < 0 or slots.max() >= arms.capacity:
            raise InputError(f"arm must be from 0 to {arms.capacity - 1}, got {slots.min()} to {slots.max()}.")


def _read_available(available: Any, lengths: tuple[int, ...]) -> np.ndarray:
    """Booleans, one per arm; at least one arm must be available."""
    if available is None:
        return np.ones(lengths, bool)
    expected = f"available must be booleans of shape {lengths}, one per arm"
    try:
        read = np.asarray(available)
    except (TypeError, ValueError):  # rows of different lengths
        raise InputError(f"{expected}, got {available!r:.80}.") from None
    if read.shape != lengths or read.dtype != bool:
        raise InputError(f"{expected}, got {read.dtype} of shape {read.shape}.")
    if not read.any(-1).all():
        raise InputError("available must allow at least one arm, got none.")
    return read


def _played_contexts(arms: Arms, contexts: Any, choices: Any, count: int) -> Any:
    """The contexts of the arms that were played, one row each, from a log's columns."""
    if choices is None:
        rows, (found,) = arms.shape.read(contexts, 1)
        _check_slots(arms, rows)
        if found != count:
            raise InputError(f"rewards must be {found} numbers, one per context, got {count}.")
        return rows
    if array_shape(choices) != (count,):
        raise InputError(f"arms must be as many as rewards, {count}, got {choices!r:.80}.")
    if arms.slots:
        ids = tuple(arm_id(arm) for arm in choices)
        arms.check(dict.fromkeys(ids))
        return arms.shape.read(arms.played_contexts(contexts, ids), 1)[0]
    per_arm, _ = _contexts_per_arm(arms, contexts, None, 2)
    per_arm, (found, number) = arms.shape.read(per_arm, 2)
    if found != count:
        raise InputError(f"contexts must be {count} sets, one per reward, got {found}.")
    index = np.asarray(choices)
    if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= number:
        raise InputError(f"arms must be whole numbers from 0 to {number - 1}, got {choices!r:.80}.")
    return jax.tree.map(lambda leaf: leaf[np.arange(count), index], per_arm)


def _read_log(arms: Arms, log: Any, bounds: RewardBounds | None) -> Iterator[tuple[Any, np.ndarray, int]]:
    from neuralucb.logs.batches import batches
    from neuralucb.logs.warm_start import chosen

    for chunk in log.chunks():  # once to the end: nothing is learned from a log with a bad line
        if bounds is not None:
            bounds.check(chunk.reward)
    found = 0
    for batch in batches(log):
        use = batch.valid & ~np.isnan(batch.reward)
        rows = jax.tree.map(lambda leaf, use=use: np.asarray(leaf)[use], chosen(batch))
        found += int(use.sum())
        if use.any():
            yield from read_observations(arms, rows, None, batch.reward[use], bounds)
    if not found:
        raise InputError(f"{log.path} has no reward to learn from.")
