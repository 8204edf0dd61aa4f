"""Recent decisions with their outcomes, and recent lessons, for the dashboard: read from the tables, in bounded number.

The sample goes back at least twice as far as events wait for rewards. Where that is more than fits, every second,
fourth, … decision is taken, by a hash of its number, so that all replicas show the same.
"""

from collections.abc import Sequence
from typing import Any

from neuralucb.service.store import Activity, LessonReport, Outcome, Status

__all__ = ["recent_activity"]

MOST = 4096
LESSONS = 50
REACH = 2.0
"""In times that events wait."""

COUNT = "SELECT count(*) FROM decisions WHERE made_at > now() - make_interval(secs => %s)"

OUTCOMES = """
    SELECT extract(epoch FROM made_at)::double precision, arms, d.position, greedy, imposed, propensities, status,
           reward, extract(epoch FROM due_at)::double precision
    FROM decisions d JOIN outcomes o USING (number)
    WHERE hashint8(number) %% %s = 0
    ORDER BY made_at DESC, number DESC LIMIT %s
"""

REPORTS = """
    SELECT extract(epoch FROM ended_at)::double precision, observations, promoted, loss, failure, seconds
    FROM lessons ORDER BY number DESC LIMIT %s
"""


def recent_activity(cursor: Any, wait: float | None) -> Activity:
    """What happened lately.

    wait  seconds that events wait for rewards; None for ever
    """
    stride, limit = 1, MOST
    if wait is not None:
        cursor.execute(COUNT, (REACH * wait,))
        (count,) = cursor.fetchone()
        while count > stride * MOST:
            stride *= 2
        limit = MOST if stride == 1 else -(-count // stride)
    cursor.execute(OUTCOMES, (stride, limit))
    rows = list(reversed(cursor.fetchall()))
    cursor.execute(REPORTS, (LESSONS,))
    lessons = [LessonReport(*row) for row in reversed(cursor.fetchall())]
    return Activity([_outcome(number, stride, *row) for number, row in enumerate(rows)], lessons)


def _outcome(
    number: int,
    stride: int,
    time: float,
    arms: Sequence[str],
    position: int,
    greedy: int,
    imposed: bool,
    propensities: Sequence[float],
    status: Status,
    reward: float | None,
    due: float | None,
) -> Outcome:
    """Arms that were excluded have no propensity, but where the choice was deterministic others have none either."""
    is_random = propensities[position] < 1
    allowed = [place for place, chance in enumerate(propensities) if chance > 0 or not is_random]
    return Outcome(
        number, time, arms[position], propensities[position], position == allowed[0], propensities[allowed[0]],
        min(propensities[place] for place in allowed), len(allowed), not imposed and position != greedy, status, reward,
        due, stride,
    )  # fmt: skip
