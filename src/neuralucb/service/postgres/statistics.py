"""Counters and gauges of a store, for `/metrics` and for a person on call; remembered while the database is away."""

import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from neuralucb.runtime.errors import StorageError
from neuralucb.service.postgres.link import Link

__all__ = ["Found", "Statistics"]

FRESH = 1.0
"""Seconds for which what was found is answered again."""

GONE = 15.0
"""Seconds without a sign of life after which it is said that nobody learns."""

COUNTERS = {
    "decisions": "sum(decisions)",
    "explored": "sum(explored)",
    "observed": "sum(learned + settled)",
    "defaulted": "sum(defaulted)",
    "expired": "sum(expired)",
    "late": "sum(late)",
    "repeated": "sum(repeated)",
    "unknown": "sum(unknown)",
}

GAUGES = {
    "pending": "SELECT count(*) FROM outcomes WHERE status IN ('inactive', 'waiting')",
    "unlearned": "SELECT count(*) FROM outcomes WHERE status IN ('observed', 'defaulted') AND position IS NULL",
    "vocabulary": "SELECT count(*) FROM vocabulary",
    "processes": "SELECT count(*) FROM processes WHERE seen_at > now() - interval '15 seconds'",
    "epoch": "SELECT epoch FROM learner",
    "learner_unseen_seconds": "SELECT extract(epoch FROM now() - seen_at) FROM learner",
    "snapshots": "SELECT count(*) FROM snapshots",
    "relearning": "SELECT count(*) FROM deletions WHERE relearned_at IS NULL",
}

LESSONS = """
    SELECT count(*) FILTER (WHERE promoted), count(*) FILTER (WHERE NOT promoted) FROM lessons
"""

LAST_LESSON = """
    SELECT promoted, failure, loss, observations, extract(epoch FROM now() - ended_at)
    FROM lessons ORDER BY number DESC LIMIT 1
"""


class Found(NamedTuple):
    """What was found."""

    is_reachable: bool = False
    counters: Mapping[str, float] = MappingProxyType({})
    gauges: Mapping[str, float] = MappingProxyType({})
    learning: str = "not known yet"
    problems: tuple[str, ...] = ()
    at: float = float("-inf")
    """when, by the monotonic clock"""


class Statistics:
    """Reads them, at most once per second."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._found = Found()

    def read(self) -> Found:
        """The newest; the last known ones while the database cannot be reached."""
        with self._lock:
            if time.monotonic() < self._found.at + FRESH:
                return self._found
            try:
                found = self._link.run(_find)
                self._found = found._replace(at=time.monotonic())
            except StorageError as problem:
                known = self._found
                self._found = known._replace(is_reachable=False, problems=(str(problem),), at=time.monotonic())
            return self._found


def _find(cursor: Any) -> Found:
    cursor.execute(f"SELECT {', '.join(f'coalesce({each}, 0)::float8' for each in COUNTERS.values())} FROM processes")
    counters = dict(zip(COUNTERS, cursor.fetchone(), strict=True))
    cursor.execute(LESSONS)
    counters["lessons"], counters["lessons_failed"] = map(float, cursor.fetchone())
    cursor.execute(f"SELECT {', '.join(f'({each})::float8' for each in GAUGES.values())}")
    gauges = {name: value for name, value in zip(GAUGES, cursor.fetchone(), strict=True) if value is not None}
    problems = []
    unseen = gauges.get("learner_unseen_seconds")
    if unseen is None or unseen > GONE:
        since = "since the beginning" if unseen is None else f"for {unseen:.0f} s"
        problems.append(f"nobody has learned {since}; start a process with role learn or all")
    cursor.execute(LAST_LESSON)
    last, words = cursor.fetchone(), "none yet"
    if last is not None:
        promoted, failure, loss, observations, ago = last
        words = f"last lesson {float(ago):.0f} s ago, from {observations} observations"
        if loss is not None:
            gauges["loss"] = loss
        if not promoted:
            words += f"; it failed: {failure}"
            problems.append(f"the last lesson failed: {failure}")
    return Found(True, counters, gauges, words, tuple(problems))
