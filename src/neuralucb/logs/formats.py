"""Logs by the ending of their file's name: read, write, convert."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from neuralucb.logs.chunk import Bad, Chunk, Names, Summary, clean
from neuralucb.logs.dsjson_read import read_dsjson
from neuralucb.logs.dsjson_write import write_dsjson
from neuralucb.logs.obp import read_npz, write_npz
from neuralucb.logs.open_bandit import read_csv, write_csv
from neuralucb.logs.parquet import read_parquet, summarize_parquet, write_parquet
from neuralucb.logs.spill import Spill
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_whole

__all__ = ["Log", "Skipped", "convert", "open_log", "read_chunks", "write_log"]


class _Format(NamedTuple):
    read: Callable[[Path, Bad], Iterator[Chunk]]
    write: Callable[[Path, Iterable[Chunk]], int]
    unit: str
    """what its lines are called"""
    is_text: bool = False
    """whether reading is mostly parsing, which is worth doing once"""


PARQUET = _Format(read_parquet, write_parquet, "row")
DSJSON = _Format(read_dsjson, write_dsjson, "line", is_text=True)
FORMATS = {
    ".parquet": PARQUET,
    ".dsjson": DSJSON,
    ".json": DSJSON,
    ".jsonl": DSJSON,
    ".npz": _Format(read_npz, write_npz, "round"),
    ".csv": _Format(read_csv, write_csv, "line", is_text=True),
}


class Log(NamedTuple):
    """A log that can be read again and again, in chunks of bounded size."""

    path: Path
    names: Names
    """all features it has"""
    arms: int
    """K, one more than the highest arm"""
    decisions: int
    """how many, at most: those that cannot be used are only found by reading"""
    chunks: Callable[[], Iterator[Chunk]]
    """a fresh pass over the decisions"""


class Skipped:
    """A `bad` that counts and goes on, and keeps the first few reasons."""

    MOST = 20

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[int, str]] = []

    def __call__(self, line: int, reason: str) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < self.MOST:
            self.first.append((line, reason))


class _Once:
    """A `bad` that is told of every line once, however many passes are made and however far they go."""

    def __init__(self, bad: Bad) -> None:
        self.bad = bad
        self.told = self.highest = 0

    def __call__(self, line: int, reason: str) -> None:
        if line > self.told:
            self.highest = max(self.highest, line)
            self.bad(line, reason)

    def finish_chunk(self) -> None:
        """Lines come in any order within a chunk, but never after those of a later one."""
        self.told = self.highest


def open_log(path: Path, bad: Bad | None = None) -> Log:
    """The log, with all that must be known before its first chunk. Formats that do not say are read through once.

    Text is parsed only then: later passes read a temporary file, which is gone when the log is no longer used.
    """
    form = _format(path)
    once = None if bad is None else _Once(bad)
    chunks: Callable[[], Iterator[Chunk]] = partial(_read_once, path, once)
    if form is PARQUET:
        summary = summarize_parquet(path)
    elif form.is_text:
        spill = Spill()
        summary = _summarize(spill.keep(chunks()))
        chunks = spill.chunks if spill.is_complete else chunks
    else:
        summary = _summarize(chunks())
    if not summary.decisions or not summary.arms:
        raise InputError(f"{path} has no decision that can be used.")
    return Log(path, summary.names, summary.arms, summary.decisions, chunks)


def read_chunks(path: Path, bad: Bad | None = None) -> Iterator[Chunk]:
    """One pass over a log, features as they are found; a decision that cannot be used raises, or goes to `bad`."""
    form = _format(path)
    return form.read(path, bad or _refuse(path, form.unit))


def write_log(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write the decisions, whole or not at all, in the format of the file's ending; returns how many.

    What could not be read back is refused: each decision is checked as the readers do.
    """

    def refuse(line: int, reason: str) -> None:
        raise InputError(f"decision {line} cannot be written to {path}: {reason}.")

    checked = (clean(chunk, refuse) for chunk in chunks)
    return _write(path, _some(checked, f"there is no decision to write to {path}."))


def convert(source: Path, target: Path, bad: Bad | None = None) -> int:
    """The log in another format; returns how many decisions. Memory does not grow with the log, but for .npz."""
    _format(target)
    if source.resolve() == target.resolve():
        raise InputError(f"{source} cannot be converted into itself; name another file.")
    return _write(target, _some(read_chunks(source, bad), f"{source} has no decision that can be used."))


def _write(path: Path, chunks: Iterable[Chunk]) -> int:
    form, count = _format(path), 0

    def write(temporary: Path) -> None:
        nonlocal count
        count = form.write(temporary, chunks)

    try:
        write_whole(path, write)
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror}); name another file.") from None
    return count


def _read_once(path: Path, once: _Once | None) -> Iterator[Chunk]:
    for chunk in read_chunks(path, once):
        if once is not None:
            once.finish_chunk()
        yield chunk
    if once is not None:
        once.finish_chunk()


def _summarize(chunks: Iterable[Chunk]) -> Summary:
    """What is found by reading through."""
    summary = Summary(Names((), ()), 0, 0)
    for chunk in chunks:
        arms = max(summary.arms, int(chunk.arms.max(initial=-1)) + 1)
        summary = Summary(chunk.names, arms, summary.decisions + len(chunk.line))
    return summary


def _some(chunks: Iterable[Chunk], otherwise: str) -> Iterator[Chunk]:
    """The chunks that are not empty; ValueError if there is none, since no format has a use for an empty log."""
    any_at_all = False
    for chunk in chunks:
        if len(chunk.line):
            any_at_all = True
            yield chunk
    if not any_at_all:
        raise InputError(otherwise)


def _format(path: Path) -> _Format:
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a log must end in {', '.join(FORMATS)}, got {path}; the ending says what is in it.")
    return FORMATS[path.suffix.lower()]


def _refuse(path: Path, unit: str) -> Bad:
    def refuse(line: int, reason: str) -> None:
        raise InputError(f"{path} {unit} {line}: {reason}; --skip-bad leaves such decisions out, and counts them.")

    return refuse
