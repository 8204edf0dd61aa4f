"""The arguments of an `OnlineBandit`, checked."""

from os import PathLike
from typing import Any

import numpy as np

from neuralucb.online.journal import SYNCS
from neuralucb.policy import Policy
from neuralucb.schedules import read_schedule
from neuralucb.settings import whole

__all__ = ["check_policy", "is_number", "read_arguments"]

LEARNING = ("inline", "background", "manual")


def check_policy(policy: Any, journal: Any) -> None:
    """A policy, and a path for its journal if any."""
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be one that build made, or your own Policy, got {policy!r:.80}.")
    if journal is not None and not isinstance(journal, str | PathLike):
        raise ValueError(f"journal must be a folder's path, got {journal!r:.80}.")


def read_arguments(
    *, seed: Any, schedule: Any, learning: Any, window: Any, normalize: Any, count_pending: Any, floor: Any,
    snapshot_every: Any, sync: Any,
) -> dict[str, Any]:  # fmt: skip
    """What a bandit is made with, as it is kept beside its state."""
    for name, value, known in (("learning", learning, LEARNING), ("sync", sync, SYNCS)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    for name, value in (("normalize", normalize), ("count_pending", count_pending)):
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}.")
    if any(phase.forgets for phase in read_schedule(schedule)):
        raise ValueError(f"schedule must not forget (!) here, got {schedule!r}; take window.")
    if not is_number(floor) or not 0 <= floor <= 1:
        raise ValueError(f"floor must be a probability, from 0 to 1, got {floor!r}; 0.02 explores one in fifty.")
    return {
        "seed": whole("seed", seed, 0),
        "schedule": str(schedule),
        "learning": learning,
        "window": None if window is None else whole("window", window, 1),
        "normalize": bool(normalize),
        "count_pending": bool(count_pending),
        "floor": float(floor),
        "snapshot_every": whole("snapshot_every", snapshot_every, 1),
        "sync": sync,
    }


def is_number(value: Any) -> bool:
    """Whether it is a real number, also one of NumPy's."""
    return isinstance(value, int | float | np.integer | np.floating)
