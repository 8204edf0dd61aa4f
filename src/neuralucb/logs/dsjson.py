"""Vowpal Wabbit's dsjson, read: one JSON object a line, keys in any order, checked where VW checks nothing."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.logs.columns import Bad, Chunk, Names, clean, spans
from neuralucb.logs.dsjson_events import EventError, Events
from neuralucb.logs.dsjson_writing import ARM

__all__ = ["read_dsjson"]

BATCH, GROUP = 4096, 32
"""Decisions in a chunk, and lines that are read at once while they are all alike."""


def read_dsjson(path: Path, bad: Bad) -> Iterator[Chunk]:
    """The decisions of a file, as its features are found; events with _skipLearn are left out, as VW does."""
    loads = _parser(path)
    batch, numbered = Events(), None
    try:
        file = path.open("rb")
    except OSError as problem:
        raise ValueError(f"{path} cannot be read: {problem.strerror}.") from None
    with file:
        number = 0
        while lines := list(islice(file, GROUP)):
            if not _add_alike(batch, loads, number, lines):
                _add_each(batch, loads, number, lines, bad)
            number += len(lines)
            if len(batch.events) >= BATCH:
                chunk = batch.chunk(bad)
                numbered = _is_numbered(chunk) if numbered is None else numbered
                yield clean(_number(chunk, path) if numbered else chunk, bad)
    if batch.events:
        chunk = batch.chunk(bad)
        yield clean(_number(chunk, path) if numbered or (numbered is None and _is_numbered(chunk)) else chunk, bad)


def _add_alike(batch: Events, loads: Any, before: int, lines: list[bytes]) -> bool:
    """All lines at once, if they are as regular as nearly every log; otherwise none."""
    try:
        return batch.add_alike(before, [loads(line) for line in lines])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        batch.forget_half()
        return False


def _add_each(batch: Events, loads: Any, before: int, lines: list[bytes], bad: Bad) -> None:
    for number, line in enumerate(lines, before + 1):
        if line.isspace():
            continue
        try:
            event = loads(line)
        except ValueError as problem:
            torn = not line.endswith(b"\n")
            bad(number, "the last line is torn" if torn else f"not JSON ({problem})")
            continue
        try:
            batch.add(number, event)
        except EventError as problem:
            batch.forget_half()
            bad(number, str(problem))


def _is_numbered(chunk: Chunk) -> bool:
    """Whether actions have no features but the number of their arm, as `write_dsjson` puts it."""
    return bool(chunk.names.own) and all(
        name.startswith(ARM) and name[len(ARM) :].isdigit() for name in chunk.names.own
    )


def _number(chunk: Chunk, path: Path) -> Chunk:
    """The same decisions, each action being the arm whose number it has."""
    if not _is_numbered(chunk) or not (chunk.own.sum(axis=1) == 1).all() or not np.isin(chunk.own, (0, 1)).all():
        raise ValueError(
            f"{path} mixes actions that are only numbered ({ARM}0, …) with others, near line {chunk.line[0]}; "
            "write two logs."
        )
    numbers = np.asarray([int(name[len(ARM) :]) for name in chunk.names.own], np.int32)
    arms = numbers[chunk.own.argmax(axis=1)]
    begins, _ = spans(chunk)
    own = np.zeros((len(arms), 0))
    return chunk._replace(names=Names(chunk.names.shared, ()), own=own, arms=arms, arm=arms[begins + chunk.arm])


def _parser(path: Path) -> Any:
    try:
        from orjson import loads
    except ImportError:
        raise ValueError(f"{path} needs orjson: pip install 'neuralucb[experiments]'.") from None
    return loads
