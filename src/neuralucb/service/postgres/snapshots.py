"""Snapshots as rows: taken from the newest model, pinned, and returned to. No learner is needed for any of it.

A rollback raises the epoch, so that what a learner is computing is refused, and it begins again from the database.
"""

import hashlib
import json
from typing import Any

from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.service.postgres import models
from neuralucb.service.store import SnapshotRecord

__all__ = ["listed", "pin", "restore", "take"]

RECORD = "number, extract(epoch FROM made_at)::float8, observations, version, bytes, pinned"


def listed(cursor: Any) -> list[SnapshotRecord]:
    """All of them, oldest first."""
    cursor.execute(f"SELECT {RECORD} FROM snapshots ORDER BY number")
    return [SnapshotRecord(*row) for row in cursor.fetchall()]


def take(cursor: Any) -> SnapshotRecord:
    """Keep the newest model."""
    model = models.newest(cursor)
    if model is None:
        raise StorageError("there is no model yet: no learner has been elected so far; start one.")
    return _record(cursor, models.keep(cursor, model, kind="snapshot"))


def pin(cursor: Any, number: int, *, pinned: bool) -> SnapshotRecord:
    """Keep one whatever the retention says, or no longer."""
    cursor.execute("UPDATE models SET pinned = %s WHERE number = %s AND kind = 'snapshot'", (pinned, number))
    return _record(cursor, number)


def restore(cursor: Any, number: int) -> SnapshotRecord:
    """Make the model of a snapshot the newest one; later observations are forgotten, but stay in the log."""
    cursor.execute("UPDATE learner SET epoch = epoch + 1 RETURNING epoch")
    (epoch,) = cursor.fetchone()
    cursor.execute("SELECT min(unchanged) FROM deletions WHERE relearned_at IS NULL")
    (unchanged,) = cursor.fetchone()
    record = _record(cursor, number)
    cursor.execute(f"SELECT {models.COLUMNS} FROM models WHERE number = %s", (number,), binary=True)
    model = models.Model(*cursor.fetchone())
    if not model.is_intact():
        raise StorageError(f"snapshot {number} does not match its SHA-256; choose another.")
    if unchanged is not None and model.position > unchanged:
        raise InputError(f"number must be of a snapshot without deleted data, got {number}; it is about to be deleted.")
    version = models.newest_version(cursor) + 1
    cursor.execute("SELECT coalesce(max(position), 0) FROM outcomes")
    (position,) = cursor.fetchone()
    cursor.execute(
        "UPDATE outcomes SET forgotten = NULL WHERE position <= %s AND forgotten > %s", (model.position, model.version)
    )
    cursor.execute(
        "UPDATE outcomes SET forgotten = %s WHERE position > %s AND forgotten IS NULL", (version, model.position)
    )
    fields = json.dumps({**json.loads(model.fields), "version": version}, allow_nan=False)
    sha256 = hashlib.sha256(model.arrays + fields.encode()).digest()
    back = model._replace(version=version, epoch=epoch, position=position, fields=fields, sha256=sha256)
    models.keep(cursor, back, kind="lesson")
    models.publish(cursor, back)
    return record


def _record(cursor: Any, number: int) -> SnapshotRecord:
    cursor.execute(f"SELECT {RECORD} FROM snapshots WHERE number = %s", (number,))
    row = cursor.fetchone()
    if row is None:
        cursor.execute("SELECT number FROM snapshots ORDER BY number DESC LIMIT 8")
        known = ", ".join(str(each) for (each,) in cursor.fetchall()) or "none"
        raise InputError(f"number must be that of a snapshot, got {number}; the newest are: {known}.")
    return SnapshotRecord(*row)
