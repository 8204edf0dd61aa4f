"""Data that must go: of one person, by key, or of a period that was poisoned. The model learns again without it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from neuralucb.service.postgres.address import read_address
from neuralucb.service.postgres.link import Link
from neuralucb.service.store import UnknownEventError

__all__ = ["Removed", "delete_user", "exclude_period", "exclusion"]

PATIENCE = 600.0
"""Seconds that deleting may take."""


class Removed(NamedTuple):
    """What was removed."""

    decisions: int
    learned: int
    """of them, so many that the model had learned from, or was about to"""


def delete_user(address: str, user: str) -> Removed:
    """Delete all decisions and rewards of one person.

    The rows are gone when this returns; a service that learns does so again without them at once, in a lesson of its
    own, and deletes the snapshots that had learned from them, pinned ones too.

    Args:
        address: Of the store, `postgresql://…`.
        user: The key that decisions were made with.

    Returns:
        How many decisions there were, and how many of them were learned from; (0, 0) for a key that is not known.

    Raises:
        StorageError: The database cannot be reached.
    """
    return _remove(
        address,
        "a user's data was deleted",
        "DELETE FROM decisions d USING outcomes o WHERE d.number = o.number AND user_key = %s RETURNING o.position",
        user,
    )


def exclude_period(address: str, since: datetime, until: datetime) -> Removed:
    """Learn no more from the decisions of a period, `since` included, `until` not; they stay in the log.

    Args:
        address: Of the store.
        since: With a time zone.
        until: With a time zone.

    Returns:
        How many decisions are excluded, and how many of them were learned from.

    Raises:
        StorageError: The database cannot be reached.
    """
    return _remove(
        address,
        f"learning from {since.isoformat()} to {until.isoformat()} was undone",
        """
        UPDATE outcomes o SET forgotten = 0, status = CASE WHEN o.position IS NULL THEN 'expired' ELSE status END
        FROM decisions d WHERE d.number = o.number AND made_at >= %s AND made_at < %s AND forgotten IS NULL
        RETURNING o.position
        """,
        since,
        until,
    )


def exclusion(
    event_ids: Sequence[str] | None, since: float | None, until: float | None, arm: str | None
) -> Callable[[Any], Removed]:
    """Learn no more from these events, or from a period in seconds since 1970, of an arm if one is given.

    Raises UnknownEventError, in its transaction, for an event that is not known.
    """
    what = "of events" if event_ids is not None else f"from {since} to {until}" + (f" of arm {arm}" if arm else "")
    statement = """
        UPDATE outcomes o SET forgotten = 0, status = CASE WHEN o.position IS NULL THEN 'expired' ELSE status END
        FROM decisions d WHERE d.number = o.number AND forgotten IS NULL AND status <> 'expired'
          AND (%(events)s::text[] IS NULL OR event_id = ANY(%(events)s))
          AND (%(since)s::float8 IS NULL OR made_at >= to_timestamp(%(since)s))
          AND (%(until)s::float8 IS NULL OR made_at < to_timestamp(%(until)s))
          AND (%(arm)s::text IS NULL OR arm = %(arm)s)
        RETURNING o.position
    """
    events = None if event_ids is None else list(dict.fromkeys(event_ids))
    values = {"events": events, "since": since, "until": until, "arm": arm}
    remove = _removal(f"learning {what} was undone", statement, values)

    def work(cursor: Any) -> Removed:
        if events is not None:
            cursor.execute("SELECT event_id FROM decisions WHERE event_id = ANY(%s)", (events,))
            known = {event for (event,) in cursor.fetchall()}
            for event in events:
                if event not in known:
                    raise UnknownEventError(f"there is no event {event!r:.80}.")
        return remove(cursor)

    return work


def _remove(address: str, reason: str, statement: str, *values: Any) -> Removed:
    link = Link(read_address(address), "deletion", patience=PATIENCE)
    try:
        return link.run(_removal(reason, statement, values))
    finally:
        link.close()


def _removal(reason: str, statement: str, values: Any) -> Callable[[Any], Removed]:
    def work(cursor: Any) -> Removed:
        # first, as a learner does: so that deletions and what it claims have one order
        cursor.execute("SELECT 1 FROM learner FOR UPDATE")
        cursor.execute(statement, values)
        found = [position for (position,) in cursor.fetchall()]
        learned = [position for position in found if position is not None]
        if found:
            cursor.execute(
                "INSERT INTO deletions (reason, decisions, learned, unchanged, relearned_at) "
                "VALUES (%s, %s, %s, %s, CASE WHEN %s THEN NULL ELSE now() END)",
                (reason, len(found), len(learned), min(learned, default=1) - 1, bool(learned)),
            )
        return Removed(len(found), len(learned))

    return work
