"""Logs by file extension: open, read, write, convert. `FORMATS[".mine"] = Format(…)` adds a format."""

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
from neuralucb.runtime.extensions import import_modules
from neuralucb.runtime.files import write_whole
from neuralucb.runtime.records import brief

__all__ = ["FORMATS", "Format", "Log", "Skipped", "convert", "open_log", "read_chunks", "write_log"]


@brief
class Format(NamedTuple):
    """How logs of one kind are read and written.

    Example:
        >>> FORMATS[".json-lines"] = FORMATS[".dsjson"]
        >>> del FORMATS[".json-lines"]
    """

    read: Callable[[Path, Bad], Iterator[Chunk]]
    """path, bad -> chunks; `bad` is called with the line of an unusable decision and the reason, and may raise"""
    write: Callable[[Path, Iterable[Chunk]], int]
    """path, chunks -> how many decisions were written; the path is a temporary one, with any extension"""
    unit: str = "row"
    """what one of its decisions is called in messages"""
    is_text: bool = False
    """whether reading is mostly parsing, so that it pays to parse once"""


PARQUET = Format(read_parquet, write_parquet, "row")
DSJSON = Format(read_dsjson, write_dsjson, "line", is_text=True)
FORMATS: dict[str, Format] = {
    ".parquet": PARQUET,
    ".dsjson": DSJSON,
    ".json": DSJSON,
    ".jsonl": DSJSON,
    ".npz": Format(read_npz, write_npz, "round"),
    ".csv": Format(read_csv, write_csv, "line", is_text=True),
}
"""How logs are read and written, by the extension of the file; add one of yours.

Example:
    >>> FORMATS[".dsjson"].unit
    'line'
"""


@brief
class Log(NamedTuple):
    """A log that can be read any number of times, in chunks of bounded size.

    Example:
        >>> log = open_log(Path("log.parquet"))
        >>> log.arms, log.decisions
        (3, 40)
    """

    path: Path
    names: Names
    """of all its features"""
    arms: int
    """K, one more than the highest arm"""
    decisions: int
    """how many, at most: those that cannot be used are only found by reading"""
    chunks: Callable[[], Iterator[Chunk]]
    """starts a new pass over the decisions"""


class Skipped:
    """A `bad` that skips and counts unusable decisions, and keeps the first few reasons.

    Example:
        >>> skipped = Skipped()
        >>> log = open_log(Path("log.dsjson"), bad=skipped)
        >>> skipped.count
        0
    """

    MOST = 20

    def __init__(self) -> None:
        self.count: int = 0
        self.first: list[tuple[int, str]] = []

    def __call__(self, line: int, reason: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < self.MOST:
            self.first.append((line, reason))


class _Once:
    """A `bad` that passes every line on once, however many passes there are and wherever they stop."""

    def __init__(self, bad: Bad) -> None:
        self.bad = bad
        self.reported = self.highest = 0

    def __call__(self, line: int, reason: str) -> None:
        if line > self.reported:
            self.highest = max(self.highest, line)
            self.bad(line, reason)

    def finish_chunk(self) -> None:
        """Remember the lines reported so far: a later chunk has only later lines, though in any order."""
        self.reported = self.highest


def open_log(path: Path, bad: Bad | None = None) -> Log:
    """Open a log: its features, arms and number of decisions, and its chunks any number of times.

    Parquet has these numbers in its metadata; other formats are read through once. Text (dsjson, CSV) is parsed only
    in that pass: later passes read a temporary file, whose space is freed when the log is no longer used.

    Args:
        path: The log; its extension gives the format: .parquet, .dsjson (or .json, .jsonl), .npz, .csv.
        bad: Called once with the line of each unusable decision and the reason, such as `Skipped()`; by default such a
            decision raises.

    Returns:
        The log.

    Raises:
        InputError: The file cannot be read or is not a log, it has no usable decision, or a decision is unusable and
            `bad` is None. For Parquet the last may also happen while reading chunks.

    Example:
        >>> skipped = Skipped()
        >>> log = open_log(Path("log.dsjson"), skipped)
        >>> log.arms, log.decisions, skipped.count
        (3, 40, 0)
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
    """One pass over a log, without opening it first: a chunk has the features found so far.

    Args:
        path: The log; its extension gives the format.
        bad: Called with the line of each unusable decision and the reason; by default such a decision raises.

    Returns:
        An iterator over chunks; an empty one is possible.

    Raises:
        InputError: The extension is not known; and while iterating, the file cannot be read or is not a log, or a
            decision is unusable and `bad` is None.

    Example:
        >>> sum(len(chunk.line) for chunk in read_chunks(Path("log.dsjson")))
        40
    """
    form = _format(path)
    return form.read(path, bad or _refuse(path, form.unit))


def write_log(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write decisions to a log, all of them or none. Each is checked as it would be when it is read.

    Args:
        path: The file to write or replace; its extension gives the format.
        chunks: The decisions, as `recorded` or another log gives them.

    Returns:
        How many decisions were written.

    Raises:
        InputError: There is no decision, one that no log or not this format can hold, or the file cannot be written.

    Example:
        >>> from neuralucb.logs import recorded
        >>> contexts, propensities = np.ones((2, 3, 4)), np.full((2, 3), 1 / 3)
        >>> write_log(Path("mine.parquet"), [recorded(contexts, np.array([0, 2]), np.array([1.0, 0.5]), propensities)])
        2
    """

    def refuse(line: int, reason: str) -> None:
        raise InputError(f"decision {line} cannot be written to {path}: {reason}.")

    checked = (clean(chunk, refuse) for chunk in chunks)
    return _write(path, _some(checked, f"no decision to write to {path}."))


def convert(source: Path, target: Path, bad: Bad | None = None) -> int:
    """Convert a log to another format. Memory does not grow with the log, except for .npz.

    Args:
        source: The log to read.
        target: The file to write or replace; its extension gives the format.
        bad: Called with the line of each unusable decision and the reason; by default such a decision raises.

    Returns:
        How many decisions were written.

    Raises:
        InputError: A file cannot be read or written, a decision is unusable and `bad` is None, none is usable, or the
            target's format cannot hold one.

    Example:
        >>> convert(Path("log.dsjson"), Path("copy.parquet"))
        40
    """
    _format(target)
    if source.resolve() == target.resolve():
        raise InputError(f"{source} cannot be converted to itself; name another file.")
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
    """What reading through finds."""
    summary = Summary(Names((), ()), 0, 0)
    for chunk in chunks:
        arms = max(summary.arms, int(chunk.arms.max(initial=-1)) + 1)
        summary = Summary(chunk.names, arms, summary.decisions + len(chunk.line))
    return summary


def _some(chunks: Iterable[Chunk], otherwise: str) -> Iterator[Chunk]:
    """The chunks that are not empty; raises if all are, since no format can hold an empty log."""
    found = False
    for chunk in chunks:
        if len(chunk.line):
            found = True
            yield chunk
    if not found:
        raise InputError(otherwise)


def _format(path: Path) -> Format:
    import_modules()
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a log must end in {', '.join(FORMATS)}, got {path}; the extension gives the format.")
    return FORMATS[path.suffix.lower()]


def _refuse(path: Path, unit: str) -> Bad:
    def refuse(line: int, reason: str) -> None:
        raise InputError(
            f"{path} {unit} {line}: {reason}; --skip-bad (in Python, bad=Skipped()) skips and counts such decisions."
        )

    return refuse
