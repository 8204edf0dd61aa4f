"""Vowpal Wabbit's dsjson, read: one JSON object a line, keys in any order, checked where VW checks nothing."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from neuralucb.logs.columns import Bad, Chunk, clean
from neuralucb.logs.dsjson_events import EventError, Events

__all__ = ["read_dsjson"]

BATCH, GROUP = 4096, 24
"""Decisions in a chunk, and lines that are read at once while they are all alike.

A group's objects should stay in the cache, and below the number at which Python looks for cycles among them.
"""
BUFFER = 1 << 20
"""Bytes read from the disk at once."""
NUMBERS = 1 << 21
"""Features in a chunk, about: with many columns or arms it has fewer decisions."""


def read_dsjson(path: Path, bad: Bad) -> Iterator[Chunk]:
    """The decisions of a file, as its features are found; events with _skipLearn are left out, as VW does."""
    loads = _parser(path)
    batch = Events()
    try:
        file = path.open("rb", BUFFER)
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}.") from None
    with file:
        number = 0
        while lines := list(islice(file, GROUP)):
            _add(batch, loads, number, lines, bad)
            number += len(lines)
            if len(batch.events) >= BATCH or batch.size >= NUMBERS:
                yield clean(batch.chunk(bad), bad)
    if batch.events:
        yield clean(batch.chunk(bad), bad)


def _add(batch: Events, loads: Any, before: int, lines: list[bytes], bad: Bad) -> None:
    """All lines at once, if they are as regular as nearly every log; otherwise each for itself."""
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
            torn = not line.endswith(b"\n")
            bad(number, "the last line is torn" if torn else f"not JSON ({problem})")


def _parser(path: Path) -> Any:
    try:
        from orjson import loads
    except ImportError:
        raise ValueError(f"{path} needs orjson: pip install 'neuralucb[experiments]'.") from None
    return loads
