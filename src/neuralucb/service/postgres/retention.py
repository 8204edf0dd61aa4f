"""What is kept how long: decisions by age, snapshots by number, and one per day for a month."""

from typing import Any, NamedTuple

__all__ = ["Retention", "tidy"]

ROWS = 5000
"""Decisions deleted at a time."""

OLD_DECISIONS = """
    DELETE FROM decisions WHERE number IN (
        SELECT number FROM decisions JOIN outcomes USING (number)
        WHERE made_at < now() - make_interval(secs => %s) AND (status = 'expired' OR outcomes.position IS NOT NULL)
        ORDER BY made_at LIMIT %s)
"""

OLD_SNAPSHOTS = """
    DELETE FROM models WHERE kind = 'snapshot' AND NOT pinned
      AND number NOT IN (SELECT number FROM models WHERE kind = 'snapshot' ORDER BY number DESC LIMIT %s)
      AND number NOT IN (
          SELECT max(number) FROM models WHERE kind = 'snapshot' AND made_at > now() - make_interval(days => %s)
          GROUP BY date_trunc('day', made_at))
"""


class Retention(NamedTuple):
    """How long what is kept."""

    decisions: float | None = None
    """seconds; None: for ever. Those that are pending, or not learned yet, stay."""
    snapshots: int = 24
    """the last so many"""
    days: int = 30
    """and the last one of each of so many days"""
    every: float = 60.0
    """seconds between two times of tidying up"""


def tidy(cursor: Any, retention: Retention) -> int:
    """Delete what is too old; returns how many decisions that was."""
    cursor.execute(OLD_SNAPSHOTS, (retention.snapshots, retention.days))
    if retention.decisions is None:
        return 0
    cursor.execute(OLD_DECISIONS, (retention.decisions, ROWS))
    return int(cursor.rowcount)
