"""Vowpal Wabbit's dsjson, read: one JSON object per line, keys in any order, checked where VW checks nothing."""

from array import array
from collections.abc import Iterator
from itertools import chain, islice, repeat
from operator import itemgetter
from pathlib import Path
from struct import error, pack
from typing import Any

import numpy as np

from neuralucb.logs.chunk import MOST_ARMS, Bad, Chunk, Names, clean, take
from neuralucb.logs.dsjson_labels import Columns, ids_of, labels_of, problems_of, ranking_of
from neuralucb.logs.json_features import Features
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory

__all__ = ["ARM", "NUMBERS", "EventError", "Events", "read_dsjson"]

ARM = "arm"
"""The namespace in which an action has the number of its arm."""
LABEL = ("_label_cost", "_label_probability", "_label_Action", "_labelIndex")
BATCH = 4096
"""Decisions per chunk."""
NUMBERS = 1 << 21
"""Features per chunk, about: with many columns or arms it has fewer decisions."""
BYTES_PER_NUMBER = 16
"""Memory per feature of a chunk: itself, and a copy of those that can be used."""
GROUP = 24
"""Lines that are read at once while they are all alike.

A group's objects should stay in the cache, and below the number at which Python looks for cycles among them.
"""
LONGEST = 1 << 24
"""Bytes of a line, at most: as objects of Python it takes up to 30 times as much."""
BUFFER = 1 << 20
"""Bytes read from the disk at once."""


class EventError(ValueError):
    """What is wrong with an event."""


class Events:
    """Events as they are read, and the columns of features known so far."""

    def __init__(self) -> None:
        self.shared: Features = Features()
        self.own: Features = Features()
        self.numbered: bool | None = None
        """whether actions have no features but the number of their arm: the first event decides for all"""
        self.reset()

    def reset(self) -> None:
        """Drop the events; features keep their columns."""
        self.events: list[tuple[Any, ...]] = []
        """the fields of `dsjson_labels.Columns`, event by event"""
        self.ranks: array[int] = array("q")
        self.probabilities: array[float] = array("d")
        self.numbers: array[int] = array("q")
        self.shared.reset()
        self.own.reset()

    @property
    def size(self) -> int:
        """Numbers that the features of these events will take."""
        return len(self.events) * len(self.shared.columns) + len(self.ranks) * len(self.own.columns)

    def add(self, line: int, event: Any) -> None:
        """Add one event, or raise EventError with the reason and add nothing of it. One with _skipLearn is skipped."""
        mark = self._mark()
        try:
            if event.get("_skipLearn") is not True:
                self.append(line, event)
                if self._mark()[-1] != mark[-1]:
                    _check_alone(line, event)  # an event that cannot be used must not add columns
            return
        except KeyError as missing:
            reason = _without(event, str(missing.args[0]))
        except (TypeError, AttributeError, OverflowError):
            reason = _shape(event)
        except RecursionError:
            reason = "its features are nested too deeply"
        except ValueError as problem:
            reason = str(problem)
        self._rollback(mark)
        raise EventError(reason)

    def append(self, line: int, event: dict[str, Any]) -> None:
        """Add one event without a guard: if it raises, part of the event may have been added."""
        context, ranking, given = event["c"], event["a"], event.get("p")
        actions = context["_multi"]
        count = len(actions)
        if len(ranking) != count or (given is not None and len(given) != count):
            raise EventError(
                f"c has {count} actions, a ranks {len(ranking)}"
                + ("" if given is None else f", p has {len(given)} probabilities")
            )
        if not 0 < count <= MOST_ARMS:
            raise EventError(
                f"it has {count} actions, at most {MOST_ARMS} are read" if count else "no arm was available"
            )
        cost, probability, chosen = _label(event)
        self.ranks.extend(ranking)
        if given is not None:
            self.probabilities.extend(given)
        numbers = _arms_of(actions)
        numbered = numbers is not None
        if self.numbered not in (None, numbered):
            raise EventError(
                "it does not fit the lines before it: their actions are "
                + ("not only numbered" if numbered else f'only numbered, as {{"{ARM}":{{"0":1}}}}')
                + "; write two logs"
            )
        self.shared.add(context)
        if numbers is None:
            for action in actions:
                self.own.add(action)
        else:
            self.numbers.extend(numbers)
        self.numbered = numbered
        probability = given[0] if probability is None and given is not None else probability
        chosen = ranking[0] if chosen is None else chosen
        drop, event_id, time = event.get("pdrop", 0.0), event.get("EventId"), event.get("Timestamp")
        self.events.append((line, event_id, time, cost, probability, chosen, drop, count, given is not None))

    def add_alike(self, before: int, events: list[dict[str, Any]]) -> bool:
        """Add events at once, if all have VW's keys and the features of the last one; returns whether it did."""
        mark = self._mark()
        try:
            if self._add_alike(before, events):
                return True
        except (ValueError, KeyError, TypeError, AttributeError, error):
            pass
        self._rollback(mark)
        return False

    def _add_alike(self, before: int, events: list[dict[str, Any]]) -> bool:
        contexts, rankings, given = (list(map(itemgetter(key), events)) for key in ("c", "a", "p"))
        actions = list(map(itemgetter("_multi"), contexts))
        counts = list(map(len, actions))
        together = list(chain.from_iterable(actions))
        costs, probabilities, chosen, indices = zip(*map(itemgetter(*LABEL), events), strict=True)
        if (
            list(map(len, rankings)) != counts
            or list(map(len, given)) != counts
            or not all(counts)
            or max(counts) > MOST_ARMS
            or None in costs
            or None in probabilities
            or [index + 1 for index in indices] != list(chosen)
            or any("_skipLearn" in event for event in events)
            or not self.shared.add_alike(contexts, reserved=1)
            or not (self._number_alike(together) if self.numbered else self.own.add_alike(together, reserved=0))
        ):
            return False
        self.ranks.frombytes(pack(f"{len(together)}q", *chain.from_iterable(rankings)))
        self.probabilities.frombytes(pack(f"{len(together)}d", *chain.from_iterable(given)))
        ids, times = ([event.get(key) for event in events] for key in ("EventId", "Timestamp"))
        drops = [event.get("pdrop", 0.0) for event in events]
        lines = range(before + 1, before + 1 + len(events))
        self.events.extend(
            zip(lines, ids, times, costs, probabilities, chosen, drops, counts, repeat(True), strict=False)
        )
        return True

    def _number_alike(self, actions: list[dict[str, Any]]) -> bool:
        numbers = _arms_alike(actions)
        self.numbers.extend(numbers or ())
        return numbers is not None

    def _mark(self) -> tuple[Any, ...]:
        rows = len(self.ranks), len(self.probabilities), len(self.numbers), len(self.events)
        shape = self.numbered, len(self.shared.columns), len(self.own.columns)
        return rows, self.shared.mark(), self.own.mark(), shape

    def _rollback(self, mark: tuple[Any, ...]) -> None:
        """Return to the state at the mark, so that no part of an event stays."""
        (ranks, probabilities, numbers, events), shared, own, (self.numbered, *_) = mark
        del self.ranks[ranks:]
        del self.probabilities[probabilities:]
        del self.numbers[numbers:]
        del self.events[events:]
        self.shared.rollback(shared)
        self.own.rollback(own)

    def chunk(self, bad: Bad) -> Chunk:
        """The events in columns; those that cannot be used go to `bad`. Then start anew, with the same features."""
        columns = Columns(*zip(*self.events, strict=True))
        require_memory(
            BYTES_PER_NUMBER * self.size,
            what=f"the table of lines {columns.line[0]} to {columns.line[-1]}, an action or event per row,",
            cure="write fewer actions or features per event",
            host=True,
        )
        counts = np.asarray(columns.actions, np.int64)
        begins = np.cumsum(counts) - counts
        ranking, labels = ranking_of(np.asarray(self.ranks, np.int64), counts), labels_of(columns)
        line, keep = np.asarray(columns.line, np.int64), np.ones(len(counts), dtype=bool)
        for wrong, reason in problems_of(columns, labels, ranking):
            for row in np.flatnonzero(wrong & keep):
                bad(int(line[row]), reason)
            keep &= ~wrong
        arms = self._arms(counts)
        chunk = Chunk(
            names=Names(self.shared.names, () if self.numbered else self.own.names),
            line=line,
            id=ids_of(columns.id),
            time=labels.time,
            counts=counts,
            arms=arms,
            shared=self.shared.rows(),
            own=np.zeros((len(arms), 0)) if self.numbered else self.own.rows(),
            arm=arms[begins + np.where(keep, labels.action - 1, 0).astype(np.int64)],
            reward=np.where(labels.cost == 0, 0.0, -labels.cost),
            propensity=labels.probability,
            weight=1 / (1 - np.where(keep, labels.dropped, 0.0)),
            probabilities=self._by_arm(np.asarray(columns.has_probabilities, dtype=bool), counts, ranking.place),
        )
        self.reset()
        return take(chunk, keep)

    def _arms(self, counts: np.ndarray) -> np.ndarray:
        """[N] the arms: as the actions are numbered, or else their places among the actions of their event."""
        if self.numbered:
            return np.asarray(self.numbers, np.int32)
        begins = np.cumsum(counts) - counts
        return (np.arange(counts.sum()) - np.repeat(begins, counts)).astype(np.int32)

    def _by_arm(self, given: np.ndarray, counts: np.ndarray, place: np.ndarray) -> np.ndarray | None:
        """[N] `p`, which is in the order of the ranking, in the order of the arms; NaN for events without."""
        if not given.any():
            return None
        probabilities = np.full(len(place), np.nan)
        probabilities[place[np.repeat(given, counts)]] = np.asarray(self.probabilities, np.float64)
        return probabilities


def read_dsjson(path: Path, bad: Bad) -> Iterator[Chunk]:
    """The decisions of a file, with the features found so far; events with _skipLearn are skipped, as VW does."""
    loads, batch, before = _parser(path), Events(), 0
    for lines in _groups(path):
        _add(batch, loads, before, lines, bad)
        before += len(lines)
        if len(batch.events) >= BATCH or batch.size >= NUMBERS:
            yield clean(batch.chunk(bad), bad)
    if batch.events:
        yield clean(batch.chunk(bad), bad)


def _groups(path: Path) -> Iterator[list[bytes]]:
    """The lines of a file, a few at a time."""
    try:
        with path.open("rb", BUFFER) as file:
            before, rest = 0, iter(lambda: file.readline(LONGEST + 1), b"")
            while lines := list(islice(rest, GROUP)):
                if max(map(len, lines)) > LONGEST:
                    raise InputError(
                        f"{path} has more than {LONGEST >> 20} MiB in one of the lines {before + 1} to "
                        f"{before + len(lines)}; write one event per line, with fewer actions."
                    )
                yield lines
                before += len(lines)
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from None


def _add(batch: Events, loads: Any, before: int, lines: list[bytes], bad: Bad) -> None:
    """Add all lines at once if they are alike, as in nearly every log; otherwise one by one."""
    try:
        events = list(map(loads, lines))
    except ValueError:
        events = []
    if events and batch.add_alike(before, events):
        return
    for place, line in enumerate(lines):
        number = before + 1 + place
        if line.isspace():
            continue
        try:
            batch.add(number, events[place] if events else loads(line))
        except EventError as problem:
            bad(number, str(problem))
        except ValueError as problem:
            incomplete = not line.endswith(b"\n")
            bad(number, "the last line is incomplete" if incomplete else f"not JSON ({problem})")


def _parser(path: Path) -> Any:
    try:
        from orjson import loads
    except ImportError:
        raise InputError(f"{path} needs orjson: pip install 'neuralucb[experiments]'.") from None
    return loads


def _check_alone(line: int, event: dict[str, Any]) -> None:
    """Raise EventError with the reason, if this event cannot be used."""
    alone, reasons = Events(), list[str]()

    def note(line: int, reason: str) -> None:
        reasons.append(reason)

    alone.append(line, event)
    clean(alone.chunk(note), note)
    if reasons:
        raise EventError(reasons[0])


def _label(event: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Cost, probability and action (from 1) of the label; None where it does not say."""
    action: Any = event.get("_label_Action")
    index = event.get("_labelIndex")
    if action is None and index is not None:
        action = index + 1
    if index is not None and index != action - 1:
        raise EventError(f"_label_Action {action} and _labelIndex {index} name different actions")
    cost, probability = event.get("_label_cost"), event.get("_label_probability")
    if cost is not None and (action is None or probability is None):
        raise EventError(f"_label_{'Action' if action is None else 'probability'} is missing beside _label_cost")
    if probability is None and event.get("p") is None:
        raise EventError("it has neither _label_probability nor p")
    return cost, probability, action


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


def _arms_of(actions: list[dict[str, Any]]) -> list[int] | None:
    """The arms, if all actions are only numbered, else None. Keys that begin with _ are ignored, as in VW."""
    texts = []
    for action in actions:
        inner = action.get(ARM)
        if type(inner) is not dict or len(inner) != 1 or "_text" in action:
            return None
        ((text, value),) = inner.items()
        if value != 1 or not (text.isascii() and text.isdecimal()):
            return None
        if any(key != ARM and key[0:1] != "_" for key in action):
            return None
        texts.append(text)
    for text in texts:
        if len(text) > len(str(MOST_ARMS)) or int(text) >= MOST_ARMS:
            raise InputError(f"arm {text:.20} is not in 0 to {MOST_ARMS - 1}; number arms from 0")
    return list(map(int, texts))


def _arms_alike(actions: list[dict[str, Any]]) -> list[int] | None:
    """The same for many actions at once, or None if any of them has anything else."""
    inner = [action[ARM] for action in actions]
    texts = list(chain.from_iterable(inner))
    joined = "".join(texts)
    if (
        len(texts) != len(actions)
        or set(map(len, actions)) != {1}
        or set(map(len, inner)) != {1}
        or set(chain.from_iterable(map(dict.values, inner))) != {1}
        or not (joined.isascii() and joined.isdecimal())
        or max(map(len, texts)) > len(str(MOST_ARMS))
    ):
        return None
    numbers = list(map(int, texts))
    return numbers if max(numbers) < MOST_ARMS else None
