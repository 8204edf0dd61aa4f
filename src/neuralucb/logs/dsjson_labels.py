"""What dsjson events say besides features, as arrays (label, ranking, time), and what can be wrong with it."""

import re
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from neuralucb.logs.chunk import blank_times

__all__ = ["Columns", "Labels", "Ranking", "ids_of", "labels_of", "problems_of", "ranking_of"]

PLAIN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}(?:[0-9]{3,4})?Z").fullmatch
"""A time as .NET and we write it, in UTC: NumPy reads many of these at once."""


class Columns(NamedTuple):
    """Events without their features, as JSON gave them: one value per event."""

    line: Sequence[int]
    id: Sequence[Any]
    time: Sequence[Any]
    cost: Sequence[Any]
    """None where no reward was seen"""
    probability: Sequence[Any]
    action: Sequence[Any]
    """of the label, from 1"""
    dropped: Sequence[Any]
    """pdrop, the share of decisions left out of the log"""
    actions: Sequence[int]
    """how many there were"""
    has_probabilities: Sequence[bool]
    """whether `p` was given"""


class Labels(NamedTuple):
    """The columns as arrays [n]; NaN or NaT where a value is missing, or is not what it should be."""

    time: np.ndarray
    cost: np.ndarray
    probability: np.ndarray
    action: np.ndarray
    dropped: np.ndarray


class Ranking(NamedTuple):
    """`a` of every event."""

    place: np.ndarray
    """[N] the index of each ranked action among the actions of all events"""
    first: np.ndarray
    """[n] the action ranked first, from 1"""
    wrong: np.ndarray
    """[n] events that do not rank each of their actions once"""


def labels_of(columns: Columns) -> Labels:
    """The columns as arrays."""
    cost, probability, action, dropped = (
        _numbers(values) for values in (columns.cost, columns.probability, columns.action, columns.dropped)
    )
    return Labels(_times(columns.time), cost, probability, action, dropped)


def ranking_of(ranks: np.ndarray, counts: np.ndarray) -> Ranking:
    """The ranking from `a` of all events, concatenated [N], and the number of actions per event [n]."""
    begins, owner = np.cumsum(counts) - counts, np.repeat(np.arange(len(counts)), counts)
    wrong = np.zeros(len(counts), dtype=bool)
    wrong[owner[(ranks < 1) | (ranks > counts[owner])]] = True
    place = begins[owner] + np.where(wrong[owner], 1, ranks) - 1
    not_once = np.bincount(place, minlength=len(owner)) != 1
    wrong[owner[not_once]] = True
    return Ranking(place, ranks[begins], wrong)


def problems_of(columns: Columns, labels: Labels, ranking: Ranking) -> list[tuple[np.ndarray, str]]:
    """What can be wrong, and which events [n] have it; the first of an event's problems is the one to report."""
    action, dropped = labels.action, labels.dropped
    return [
        (ranking.wrong, "a must rank every action of c once, from 1"),
        (np.isnan(labels.probability), "_label_probability is not a number"),
        (action != np.round(action), "_label_Action is not a whole number"),
        ((action < 1) | (action > np.asarray(columns.actions)), "_label_Action is not among the actions of c"),
        (action != ranking.first, "the action of the label is not the first in a"),
        (_given(columns.cost) & np.isnan(labels.cost), "_label_cost is not a number"),
        (~((dropped >= 0) & (dropped < 1)), "pdrop must be at least 0 and below 1"),
        (_given(columns.time) & np.isnat(labels.time), "Timestamp is not a time"),
    ]


def ids_of(values: Sequence[Any]) -> np.ndarray:
    """[n] str or None; a number becomes its text."""
    ids = np.full(len(values), None, dtype=object)
    ids[:] = [value if value is None or type(value) is str else str(value) for value in values]
    return ids


def _given(values: Sequence[Any]) -> np.ndarray:
    return np.asarray([value is not None for value in values], dtype=bool)


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """The values as numbers; anything else, true and false included, is NaN."""
    try:
        return np.asarray(array("d", values)) if bool not in set(map(type, values)) else _one_by_one(values)
    except (TypeError, OverflowError):
        return _one_by_one(values)


def _one_by_one(values: Sequence[Any]) -> np.ndarray:
    return np.asarray([float(v) if type(v) in (int, float) else np.nan for v in values], np.float64)


def _times(values: Sequence[Any]) -> np.ndarray:
    """Times in UTC to the microsecond; .NET writes seven digits. Anything else is NaT."""
    if all(value is None for value in values):
        return blank_times(len(values))
    if all(type(value) is str and PLAIN_TIME(value) for value in values):
        try:
            return np.asarray([value[:26].rstrip("Z") for value in values], dtype="datetime64[us]")
        except ValueError:
            pass
    return np.asarray([_time(value) for value in values], dtype="datetime64[us]")


def _time(value: Any) -> Any:
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    except (TypeError, ValueError, OverflowError):
        return np.datetime64("NaT")
