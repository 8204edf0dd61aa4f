"""Events of dsjson in columns: regular ones many at a time, the others one by one, each checked."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np

from neuralucb.logs.columns import Bad, Chunk, Names, blank_times, take
from neuralucb.logs.features import Features

__all__ = ["EventError", "Events"]

LABEL = ("_label_cost", "_label_probability", "_label_Action", "_labelIndex")


class EventError(ValueError):
    """What is wrong with an event."""


class Events:
    """Events as they are read, and the columns of features known so far."""

    def __init__(self) -> None:
        self.shared, self.own = Features(), Features()
        self.reset()

    def reset(self) -> None:
        """No events; features keep their places."""
        self.events: list[tuple[Any, ...]] = []
        """line, id, time, cost, probability, action, pdrop, number of actions, whether there is a p"""
        self.ranks = array("q")
        self.probabilities = array("d")

    def add(self, line: int, event: Any) -> None:
        """One event; raises EventError with the reason, and may leave half of it behind."""
        try:
            context, ranking = event["c"], event["a"]
            arms = context["_multi"]
            count = len(arms)
            self.ranks.extend(ranking)
            given = event.get("p")
            if given is not None:
                self.probabilities.extend(given)
            if len(ranking) != count or (given is not None and len(given) != count):
                raise EventError(
                    f"c has {count} actions, a ranks {len(ranking)}"
                    + ("" if given is None else f", p has {len(given)} probabilities")
                )
            if not count:
                raise EventError("there is no arm to choose from")
            self.shared.add(context)
            for arm in arms:
                self.own.add(arm)
            action, index = event.get("_label_Action"), event.get("_labelIndex")
            if action is None and index is not None:
                action = index + 1
            if index is not None and index != action - 1:
                raise EventError(f"_label_Action {action} and _labelIndex {index} name different actions")
        except KeyError as missing:
            raise EventError(_without(event, str(missing.args[0]))) from None
        except (TypeError, AttributeError, OverflowError):
            raise EventError(_shape(event)) from None
        except ValueError as problem:
            raise EventError(str(problem)) from None
        if event.get("_skipLearn") is True:
            self.forget_half()
            return
        cost, probability = event.get("_label_cost"), event.get("_label_probability")
        if cost is not None and (action is None or probability is None):
            raise EventError(f"_label_{'Action' if action is None else 'probability'} is missing beside _label_cost")
        if probability is None:
            if given is None:
                raise EventError("it has neither _label_probability nor p")
            probability = given[0]
        chosen = ranking[0] if action is None else action
        drop, one, time = event.get("pdrop", 0.0), event.get("EventId"), event.get("Timestamp")
        self.events.append((line, one, time, cost, probability, chosen, drop, count, given is not None))

    def add_alike(self, before: int, events: list[dict[str, Any]]) -> bool:
        """Events that all have the usual keys and the features of the last one, at once; or none, and False."""
        contexts, rankings, given = (list(map(itemgetter(key), events)) for key in ("c", "a", "p"))
        actions = list(map(itemgetter("_multi"), contexts))
        counts = list(map(len, actions))
        costs, chances, chosen, indices = zip(*map(itemgetter(*LABEL), events), strict=True)
        if (
            list(map(len, rankings)) != counts
            or list(map(len, given)) != counts
            or not all(counts)
            or None in costs
            or None in chances
            or [index + 1 for index in indices] != list(chosen)
            or any("_skipLearn" in event for event in events)
            or not self.shared.add_alike(contexts, reserved=1)
            or not self.own.add_alike(list(chain.from_iterable(actions)), reserved=0)
        ):
            self.forget_half()
            return False
        self.ranks.extend(chain.from_iterable(rankings))
        self.probabilities.extend(chain.from_iterable(given))
        ids, times = ([event.get(key) for event in events] for key in ("EventId", "Timestamp"))
        drops = [event.get("pdrop", 0.0) for event in events]
        lines = range(before + 1, before + 1 + len(events))
        self.events.extend(zip(lines, ids, times, costs, chances, chosen, drops, counts, repeat(True), strict=False))
        return True

    def forget_half(self) -> None:
        """Back to the last whole event."""
        arms = sum(event[7] for event in self.events)
        del self.ranks[arms:]
        del self.probabilities[sum(event[7] for event in self.events if event[8]) :]
        self.shared.keep(len(self.events))
        self.own.keep(arms)

    def chunk(self, bad: Bad) -> Chunk:
        """The events in columns, and a new beginning. Features keep their places."""
        lines, names, moments, costs, *labels, sizes, has_p = zip(*self.events, strict=True)
        n, counts, line = len(lines), np.asarray(sizes, np.int64), np.asarray(lines, np.int64)
        owner, begins = np.repeat(np.arange(n), counts), np.cumsum(counts) - counts
        ranks = np.asarray(self.ranks, np.int64)
        wrong = np.zeros(n, dtype=bool)
        wrong[owner[(ranks < 1) | (ranks > counts[owner])]] = True
        place = begins[owner] + np.where(wrong[owner], 1, ranks) - 1
        missed = np.bincount(place, minlength=len(owner)) != 1
        wrong[owner[missed]] = True
        cost, probability, action, drop = (_numbers(values) for values in (costs, *labels))
        first = ranks[np.minimum(begins, max(len(ranks) - 1, 0))] if len(ranks) else np.zeros(n)
        probabilities = np.full(len(owner), np.nan)
        has = np.asarray(has_p, dtype=bool)
        probabilities[place[has[owner]]] = np.asarray(self.probabilities, np.float64)
        times = _times(moments)
        problems = [
            (wrong, "a must rank every action of c once, from 1"),
            (np.isnan(probability), "_label_probability is not a number"),
            (
                ~np.isnan(action) & (action != np.round(action)) | np.isnan(action),
                "_label_Action is not a whole number",
            ),
            ((action < 1) | (action > counts), "_label_Action is not among the actions of c"),
            (action != first, "the action of the label is not the first in a"),
            (np.asarray([one is not None for one in costs]) & np.isnan(cost), "_label_cost is not a number"),
            (~((drop >= 0) & (drop < 1)), "pdrop must be at least 0 and below 1"),
            (np.isnat(times) & np.asarray([one is not None for one in moments]), "Timestamp is not a time"),
        ]
        keep = np.ones(n, dtype=bool)
        for mask, reason in problems:
            for row in np.flatnonzero(mask & keep):
                bad(int(line[row]), reason)
            keep &= ~mask
        ids = np.full(n, None, dtype=object)
        ids[:] = [one if one is None or type(one) is str else str(one) for one in names]
        arms = np.arange(len(owner)) - begins[owner]
        chunk = Chunk(
            Names(self.shared.names, self.own.names),
            line,
            ids,
            times,
            counts,
            arms.astype(np.int32),
            self.shared.rows(),
            self.own.rows(),
            np.where(keep, action - 1, 0).astype(np.int32),
            np.where(cost == 0, 0.0, -cost),
            probability,
            1 / (1 - np.where(keep, drop, 0.0)),
            probabilities if has.any() else None,
        )
        self.reset()
        self.shared.keep(0)
        self.own.keep(0)
        return take(chunk, keep)


def _without(event: Any, key: str) -> str:
    if isinstance(event, dict) and "c" not in event and ({"RewardValue", "_label_cost", "Observations"} & set(event)):
        return "a reward without a decision"
    if isinstance(event, dict) and isinstance(event.get("c"), dict) and "_slots" in event["c"]:
        return "c has _slots: several decisions in one event are not supported"
    return f"{key} is missing"


def _shape(event: Any) -> str:
    if not isinstance(event, dict):
        return "the line is not a JSON object"
    if not isinstance(event["c"], dict) or not isinstance(event["c"].get("_multi", []), list):
        return "c must be an object, and _multi in it a list of actions"
    return "a must be a list of whole numbers, p of numbers, _multi of objects, and the label's action a whole number"


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Numbers; whatever is none, true and false included, is NaN."""
    try:
        return np.asarray(array("d", values)) if bool not in set(map(type, values)) else _one_by_one(values)
    except (TypeError, OverflowError):
        return _one_by_one(values)


def _one_by_one(values: Sequence[Any]) -> np.ndarray:
    return np.asarray([float(v) if type(v) in (int, float) else np.nan for v in values], np.float64)


def _times(values: Sequence[Any]) -> np.ndarray:
    """Times in UTC to the microsecond; .NET writes seven digits. What is no time is NaT."""
    if all(value is None for value in values):
        return blank_times(len(values))
    if all(type(value) is str and value.endswith("Z") and len(value) in (24, 27, 28) for value in values):
        try:
            return np.asarray([value[:26].rstrip("Z") for value in values], dtype="datetime64[us]")
        except ValueError:
            pass
    return np.asarray([_time(value) for value in values], dtype="datetime64[us]")


def _time(value: Any) -> Any:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return np.datetime64("NaT")
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
