"""The Open Bandit Dataset's CSV: one row per recommendation, words as user features, one affinity per item."""

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TextIO

import numpy as np

from neuralucb.logs.chunk import Bad, Chunk, Names, as_integers, blank_times, clean, take
from neuralucb.runtime.errors import InputError

__all__ = ["read_csv", "write_csv"]

BATCH = 4096

USER, AFFINITY = "user_feature_", "user-item_affinity_"

FIXED = ("timestamp", "item_id", "position", "click", "propensity_score")


def read_csv(path: Path, bad: Bad) -> Iterator[Chunk]:
    """The decisions of a file. Items are arms, each with its affinity; a user feature is one-hot by its word."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            ends = _Ends(file)
            reader = csv.reader(ends)
            head = next(reader, [])
            layout = _Layout(head, path)
            rows: list[list[str]] = []
            lines: list[int] = []
            for row in reader:
                if not row:
                    continue
                if not ends.is_complete:
                    bad(reader.line_num, "the last line is incomplete: it has no newline at its end")
                    continue
                if len(row) != len(head):
                    bad(reader.line_num, f"it has {len(row)} values, the first line has {len(head)}")
                    continue
                rows.append(row)
                lines.append(reader.line_num)
                if len(rows) == BATCH:
                    yield clean(layout.chunk(rows, lines, bad), bad)
                    rows, lines = [], []
            if rows:
                yield clean(layout.chunk(rows, lines, bad), bad)
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{path} cannot be read: it is not text in UTF-8 ({problem}); save it as UTF-8.") from None
    except csv.Error as problem:
        raise InputError(f"{path} line {reader.line_num}: {problem}; mend that line.") from None


def write_csv(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write the decisions; returns how many. The log must have this form: words about users, one affinity per item."""
    written = 0
    parts = iter(chunks)
    first = next(parts, None)
    if first is None:
        raise InputError("the log has no decision; the file must have at least one.")
    items = int(first.arms.max(initial=-1)) + 1
    users = sorted({name.partition("=")[0] for name in first.names.shared})
    _refuse_other_forms(first.names)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["", *FIXED, *users, *(f"{AFFINITY}{item}" for item in range(items))])
        for chunk in chain([first], parts):
            for row in _rows(chunk, users, items, written):
                writer.writerow(row)
            written += len(chunk.line)
    return written


class _Ends:
    """Lines of a file, and whether the last one read was complete."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.is_complete = file, True

    def __iter__(self) -> Iterator[str]:
        for text in self.file:
            self.is_complete = text.endswith(("\n", "\r"))
            yield text


class _Layout:
    """What each column holds, and the words seen so far."""

    def __init__(self, head: list[str], path: Path) -> None:
        missing = [name for name in FIXED if name not in head]
        self.affinities = sorted((name for name in head if name.startswith(AFFINITY)), key=_number)
        if missing or not self.affinities:
            wanted = ", ".join(missing) or f"{AFFINITY}0, …"
            raise InputError(
                f"{path} is not in the Open Bandit Dataset's form: it has no column {wanted}. "
                f"Its first line is: {', '.join(head)[:200] or 'empty'}."
            )
        if [_number(name) for name in self.affinities] != list(range(len(self.affinities))):
            raise InputError(
                f"{path} must have {AFFINITY}0 to {AFFINITY}{len(self.affinities) - 1}, one for each item."
            )
        twice = sorted({name for name in head if head.count(name) > 1})
        if twice:
            raise InputError(f"{path} has more than one column {', '.join(twice)}; each may occur once.")
        self.place = {name: column for column, name in enumerate(head)}
        self.users = sorted((name for name in head if name.startswith(USER)), key=_number)
        self.words: dict[str, int] = {}

    def chunk(self, rows: list[list[str]], lines: list[int], bad: Bad) -> Chunk:
        """These rows in columns."""
        n, items = len(rows), len(self.affinities)
        columns = dict(zip(self.place, zip(*rows, strict=True), strict=True))
        cells = _Cells(columns, np.asarray(lines, np.int64), bad)
        item, position = cells.integers("item_id", np.int32), cells.integers("position", np.int64)
        click, propensity = cells.numbers("click"), cells.numbers("propensity_score")
        times = cells.times("timestamp")
        affinities = np.stack([cells.numbers(name) for name in self.affinities], axis=1)
        shared = self._one_hot(columns, n)
        ids = np.full(n, None, dtype=object)
        if "" in columns:
            ids[:] = columns[""]
        chunk = Chunk(
            names=Names(tuple(self.words), ("affinity",)),
            line=cells.line,
            id=ids,
            time=times,
            counts=np.full(n, items, np.int64),
            arms=np.tile(np.arange(items, dtype=np.int32), n),
            shared=shared,
            own=affinities.reshape(n * items, 1),
            arm=item,
            reward=click,
            propensity=propensity,
            weight=np.ones(n),
            position=position,
        )
        return take(chunk, cells.usable)

    def _one_hot(self, columns: dict[str, tuple[str, ...]], n: int) -> np.ndarray:
        """[n, words] 1 for each word about the user; words not seen before are added to those known."""
        named = [[f"{name}={word}" for word in columns[name]] for name in self.users]
        for word in chain.from_iterable(named):
            self.words.setdefault(word, len(self.words))
        hot = np.zeros((n, len(self.words)))
        for column in named:
            hot[np.arange(n), [self.words[word] for word in column]] = 1
        return hot


class _Cells:
    """The texts of some rows, read column by column; a row that cannot be read goes to `bad`, once."""

    def __init__(self, columns: dict[str, tuple[str, ...]], line: np.ndarray, bad: Bad) -> None:
        self.columns, self.line, self.bad = columns, line, bad
        self.usable = np.ones(len(line), dtype=bool)

    def numbers(self, name: str) -> np.ndarray:
        """A column of finite numbers."""
        values = _floats(self.columns[name])
        wrong = ~np.isfinite(values)
        self._refuse(wrong, name, "a number")
        return np.where(wrong, 0, values)

    def integers(self, name: str, dtype: type[np.signedinteger]) -> np.ndarray:
        """A column of whole numbers."""
        values, wrong = as_integers(self.numbers(name), dtype)
        self._refuse(wrong, name, "a whole number")
        return values

    def times(self, name: str) -> np.ndarray:
        """A column of times; an empty text means that the time is not known."""
        times = _times(self.columns[name])
        self._refuse(np.isnat(times) & (np.asarray(self.columns[name]) != ""), name, "a time")
        return times

    def _refuse(self, wrong: np.ndarray, name: str, expected: str) -> None:
        for row in np.flatnonzero(wrong & self.usable):
            self.bad(int(self.line[row]), f"{name} must be {expected}, got {self.columns[name][row]!r}")
        self.usable &= ~wrong


def _floats(texts: tuple[str, ...]) -> np.ndarray:
    try:
        return np.asarray(texts, np.float64)
    except ValueError:
        return np.asarray([_float(text) for text in texts])


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _times(texts: tuple[str, ...]) -> np.ndarray:
    """Times such as 2019-11-24 00:00:34.831996+00:00, in UTC."""
    times = blank_times(len(texts))
    for row, text in enumerate(texts):
        try:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                moment = moment.astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            continue
        times[row] = np.datetime64(moment, "us")
    return times


def _number(name: str) -> int:
    digits = re.search(r"\d+$", name)
    return int(digits.group()) if digits else -1


def _refuse_other_forms(names: Names) -> None:
    if names.own != ("affinity",) or not all(re.fullmatch(rf"{USER}\d+=.*", name) for name in names.shared):
        raise InputError(
            f"a .csv is in the Open Bandit Dataset's form, with words {USER}0, … about users and an affinity for each "
            f"item; this log has {', '.join(names.shared[:4] + names.own[:4]) or 'no features'}. Write .parquet."
        )


def _rows(chunk: Chunk, users: list[str], items: int, first: int) -> Iterator[list[object]]:
    full = len(chunk.arms) == len(chunk.line) * items
    if not full or (chunk.arms != np.arange(len(chunk.arms)) % items).any():
        raise InputError(
            f"not all {items} items are available in every decision, which a .csv cannot express; write .parquet."
        )
    if np.isnan(chunk.propensity).any() or np.isnan(chunk.reward).any():
        raise InputError("a .csv must have a propensity and a reward for every decision; write .parquet.")
    if chunk.position is None or (chunk.position < 0).any():
        raise InputError("a .csv must have the position of every decision, and some are not known; write .parquet.")
    affinity = chunk.own.reshape(-1, items).tolist()
    times = np.datetime_as_string(chunk.time, unit="us").tolist()
    for row, time in enumerate(times):
        hot = dict(chunk.names.shared[column].split("=", 1) for column in np.flatnonzero(chunk.shared[row]))
        moment = "" if time == "NaT" else time.replace("T", " ") + "+00:00"
        reward = float(chunk.reward[row])
        click = int(reward) if reward.is_integer() else reward
        fixed = [moment, int(chunk.arm[row]), int(chunk.position[row]), click, chunk.propensity[row]]
        index = first + row if chunk.id[row] is None else chunk.id[row]
        yield [index, *fixed, *(hot.get(user, "") for user in users), *affinity[row]]
