"""The log of a store as a file in our Parquet format, for `evaluate`, `train` and other tools."""

import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuralucb.features import Vocabulary
from neuralucb.logs import Chunk, Names, write_log
from neuralucb.rules import deterministic
from neuralucb.runtime.errors import InputError
from neuralucb.service.postgres.address import read_address
from neuralucb.service.postgres.link import Link

__all__ = ["Exported", "export_log"]

ROWS = 2000
"""Decisions per chunk."""

PATIENCE = 3600.0

ROWS_OF = """
    SELECT event_id, extract(epoch FROM made_at)::float8, arms, d.position, propensities,
           CASE WHEN status <> 'waiting' THEN reward END, contexts
    FROM decisions d JOIN outcomes USING (number)
    WHERE status IN ('observed', 'defaulted', 'waiting') AND contexts IS NOT NULL
      AND (%(since)s::timestamptz IS NULL OR made_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR made_at < %(until)s)
    ORDER BY made_at, number
"""


class Exported(NamedTuple):
    """What was written."""

    decisions: int
    arms: tuple[str, ...]
    """the ids of arms; the i-th is arm i of the file"""


def export_log(
    address: str, path: str | Path, *, since: datetime | None = None, until: datetime | None = None
) -> Exported:
    """Write the decisions of a store to a log, with the features that the policy saw and the rewards so far.

    Decisions that were never activated are left out; those that wait have no reward, nor a sum that is not complete.
    One moment of the database is written, however long it takes and whatever happens meanwhile.

    Args:
        address: Of the store.
        path: The file to write or replace; its extension gives the format, `.parquet` by preference.
        since: Only decisions from this time on.
        until: Only decisions before this time.

    Returns:
        How many decisions were written, and the arms' ids.

    Raises:
        InputError: There is no such decision, or the file cannot be written.
        StorageError: The database cannot be reached.
    """
    link = Link(read_address(address), "export", patience=PATIENCE)
    arms: dict[str, int] = {}
    try:
        with link.transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT (plan->>'slots')::int FROM bandit")
            (slots,) = cursor.fetchone()
            cursor.execute("SELECT name FROM vocabulary ORDER BY slot")
            names = Names((), tuple(Vocabulary(slots, [name for (name,) in cursor.fetchall()]).slot_names()))
            with cursor.connection.cursor("export", binary=True) as rows:
                rows.itersize = ROWS
                rows.execute(ROWS_OF, {"since": since, "until": until})
                count = write_log(Path(path), _chunks(rows, names, arms))
    finally:
        link.close()
    return Exported(count, tuple(arms))


def _chunks(rows: Any, names: Names, arms: dict[str, int]) -> Iterator[Chunk]:
    line = 1
    while batch := rows.fetchmany(ROWS):
        yield _chunk(batch, names, arms, line)
        line += len(batch)


def _chunk(batch: list[tuple[Any, ...]], names: Names, arms: dict[str, int], line: int) -> Chunk:
    events, times, offered, positions, shares, rewards, contexts = zip(*batch, strict=True)
    numbered = [[arms.setdefault(arm, len(arms)) for arm in each] for each in offered]
    counts = np.asarray([len(each) for each in numbered], np.int64)
    of_chosen = np.asarray([each[position] for each, position in zip(shares, positions, strict=True)], np.float64)
    data = b"".join(zlib.decompress(each) for each in contexts)
    if len(data) != 4 * len(names.own) * counts.sum():
        raise InputError(f"decisions from {events[0]!r} on have contexts of another size than the store's.")
    return Chunk(
        names=names,
        line=np.arange(line, line + len(batch), dtype=np.int64),
        id=np.asarray(events, object),
        time=(np.asarray(times) * 1e6).astype(np.int64).astype("datetime64[us]"),
        counts=counts,
        arms=np.asarray([arm for each in numbered for arm in each], np.int32),
        shared=np.zeros((len(batch), 0), np.float32),
        own=np.frombuffer(data, np.float32).reshape(-1, len(names.own)),
        arm=np.asarray([each[position] for each, position in zip(numbered, positions, strict=True)], np.int32),
        reward=np.asarray([np.nan if reward is None else reward for reward in rewards], np.float64),
        propensity=np.where(deterministic(of_chosen, counts), np.nan, of_chosen),
        weight=np.ones(len(batch)),
        probabilities=np.asarray([share for each in shares for share in each], np.float64),
    )
