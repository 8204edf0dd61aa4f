"""Removing observations, of single decisions or of a period: the belief is then learned again from the rest."""

import math
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from neuralucb.online.annex import with_memo
from neuralucb.online.arms import ArmId
from neuralucb.online.decision_ids import DecisionIds
from neuralucb.online.inputs import is_number, read_ids
from neuralucb.online.state import Event, State
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = ["Removal", "check_period", "read_removal", "removal_event"]


@brief
class Removal(NamedTuple):
    """What `OnlineBandit.forget` removed.

    Example:
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2))
        >>> decision = bandit.select([[0.0, 1.0], [1.0, 0.0]])
        >>> bandit.observe(decision.id, 1.0)
        >>> bandit.forget([decision.id])
        Removal(observations=1, pending=0)
    """

    observations: int
    """that the belief had learned from"""
    pending: int
    """decisions that waited for a reward, and have expired now"""


class _Which(NamedTuple):
    """What to remove."""

    numbers: list[int] | None
    """of single decisions"""
    period: tuple[float, float] | None
    """in seconds since 1970"""


def check_period(since: float | None, until: float | None) -> tuple[float, float]:
    """A period in seconds since 1970, `since` included and `until` not; refuses one that is empty, or to come."""
    now = time.time()
    for name, value in (("since", since), ("until", until)):
        if value is not None and (not is_number(value) or not math.isfinite(value)):
            raise InputError(f"{name} must be seconds since 1970, got {value!r:.80}.")
        if value is not None and value > now:
            raise InputError(f"{name} must not be in the future, got {value}; now is {now:.0f}.")
    first, last = -math.inf if since is None else float(since), math.inf if until is None else float(until)
    if first >= last:
        raise InputError(f"since must be before until, got {since} and {until}.")
    return first, last


def read_removal(
    ids: DecisionIds, decision_ids: Sequence[str] | None, since: float | None, until: float | None
) -> _Which:
    """What to remove: single decisions, or a period. Raises InputError where neither is given."""
    if decision_ids is None and since is None and until is None:
        raise InputError("decision_ids, since or until must be given, got none: nothing says what to remove.")
    period = None if since is None and until is None else check_period(since, until)
    return _Which(None if decision_ids is None else [ids.number_of(each) for each in read_ids(decision_ids)], period)


def removal_event(
    state: State,
    which: _Which,
    arm: ArmId | None,
    missing: Literal["refuse", "ignore"],
    *,
    barrier: int,
    memo: Any,
) -> tuple[Event, Removal]:
    """The event that removes decisions of these numbers, or of a period, and of this arm if one is given.

    missing  what becomes of numbers that have nothing to remove
    barrier  the last snapshot that knows them
    """
    numbers, period = which
    about = state.observations.about()
    chosen, waiting = about[:, 0] >= 0, list(state.ledger.pending)
    if numbers is not None:
        chosen &= np.isin(about[:, 0], np.asarray(numbers, np.float64))
        asked = set(numbers)
        waiting = [number for number in waiting if number in asked]
        unknown = asked - set(about[chosen, 0].astype(np.int64).tolist()) - set(waiting)
        if unknown and missing == "refuse":
            raise InputError(
                f"decision number {min(unknown)} has no observation to remove: it has expired, or has left the window."
            )
    if period is not None:
        chosen &= (about[:, 1] >= period[0]) & (about[:, 1] < period[1])
        waiting = [number for number in waiting if period[0] <= state.ledger.pending[number].time < period[1]]
    if arm is not None:
        chosen &= about[:, 2] == state.labels.get(arm, math.inf)
        waiting = [number for number in waiting if state.ledger.origins([number])[1] == [arm]]
    arrays = {"numbers": about[chosen, 0].astype(np.int64), "expired": np.asarray(waiting, np.int64)}
    event = Event("forget", with_memo({"barrier": barrier}, memo), arrays)
    return event, Removal(int(chosen.sum()), len(waiting))
