"""Events in SQL: decisions written in groups, rewards joined with them, and what is known about one of them."""

import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.service.postgres.choosing import Chosen
from neuralucb.service.postgres.schema import is_storable
from neuralucb.service.shown import in_json
from neuralucb.service.store import Activated, Answer, Explained, Request, Reward, Rewarded, Settings

__all__ = ["Stored", "Work", "activations", "explained", "insertion", "rewarding"]

Work = Callable[[Any], Any]
"""What to do in a transaction, given its cursor; it may be done twice."""

AGAIN = "again "
"""What a reward begins with that was counted before: its commit got no answer."""

INSERT = """
    WITH decided AS (
        INSERT INTO decisions (number, event_id, digest, user_key, model, replica, arms, arm, position, preferred,
                               greedy, imposed, exploration, propensities, score, mean, width, context, contexts,
                               features)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::float8[], %s::float8[], %s::float8[],
                %s::float8[], %s, %s, %s)
        ON CONFLICT (event_id) DO NOTHING RETURNING number
    )
    INSERT INTO outcomes (number, status, due_at)
    SELECT number, %s, now() + make_interval(secs => %s) FROM decided RETURNING number
"""

STORED = """
    SELECT number, event_id, digest, arms, d.position, propensities, score, preferred, model,
           extract(epoch FROM made_at)::float8, mean, width, exploration, status, reward, features, user_key
    FROM decisions d JOIN outcomes USING (number) WHERE event_id = ANY(%s)
"""


class Stored(NamedTuple):
    """A decision as the database has it."""

    number: int
    event_id: str
    digest: bytes
    arms: list[str]
    position: int
    propensities: list[float]
    score: list[float]
    preferred: int
    model: int
    time: float
    mean: list[float]
    width: list[float]
    exploration: float
    status: Any
    reward: float | None
    features: bytes | None
    user: str | None

    def answer(self, *, repeated: bool) -> Answer:
        """As the caller gets it."""
        shares, score = (np.asarray(each, np.float64) for each in (self.propensities, self.score))
        return Answer(
            self.event_id,
            tuple(self.arms),
            self.position,
            shares,
            score,
            self.preferred,
            self.model,
            self.time,
            repeated,
        )


def insertion(
    requests: Sequence[Request], chosen: Sequence[Chosen], *, model: int, replica: str, wait: float | None
) -> Work:
    """Write decisions; the work returns the time, and the stored ones by event id if any event existed already."""
    order = sorted(range(len(requests)), key=lambda index: requests[index].event_id)  # the same for all: no deadlock
    rows = [_row(requests[index], chosen[index], model, replica, wait) for index in order]
    events = [requests[index].event_id for index in order]
    explored = {
        each.number
        for each, request in zip(chosen, requests, strict=True)
        if each.position != each.greedy and request.imposed is None
    }

    def work(cursor: Any) -> tuple[float, dict[str, Stored]]:
        cursor.executemany(INSERT, rows)
        made, stored, new = cursor.rowcount, {}, explored
        if made < len(rows):
            cursor.execute(STORED, (events,), binary=True)
            stored = {row[1]: Stored(*row) for row in cursor.fetchall()}
            new = explored & {each.number for each in stored.values()}
        if made:  # not if it is done again after a commit whose answer was lost
            _count(cursor, replica, {"decisions": made, "explored": len(new)})
        cursor.execute("SELECT extract(epoch FROM now())::float8")
        return cursor.fetchone()[0], stored

    return work


def rewarding(rewards: Sequence[Reward], *, replica: str, settings: Settings) -> Work:
    """Join rewards with their events; the work returns what became of each."""
    keys = [
        f"id:{_storable(each.reward_id) or ascii(each.reward_id)}"
        if each.reward_id is not None
        else f"call:{uuid.uuid4().hex}"
        for each in rewards
    ]
    order = sorted(range(len(rewards)), key=lambda index: rewards[index].event_id)  # stable: one event's stay in order

    def work(cursor: Any) -> list[Rewarded]:
        calls = [
            (_storable(rewards[index].event_id), float(rewards[index].value), keys[index], settings.aggregation)
            for index in order
        ]
        fates = _each(cursor, "SELECT give_reward(%s, %s, %s, %s)", calls)
        _count(cursor, replica, Counter(fate for fate in fates if not fate.startswith(AGAIN)))
        return _in_order(order, [fate.removeprefix(AGAIN) for fate in fates])

    return work


def activations(event_ids: Sequence[str], *, settings: Settings) -> Work:
    """Activate events; the work returns what became of each."""
    order = sorted(range(len(event_ids)), key=lambda index: event_ids[index])

    def work(cursor: Any) -> list[Activated]:
        calls = [(_storable(event_ids[index]), settings.aggregation, settings.wait_seconds) for index in order]
        return _in_order(order, _each(cursor, "SELECT activate_event(%s, %s, %s)", calls))

    return work


def explained(cursor: Any, event_id: str) -> Explained | None:
    """Everything about one event."""
    cursor.execute(STORED, ([event_id],), binary=True)
    row = cursor.fetchone()
    if row is None:
        return None
    stored = Stored(*row)
    return Explained(
        stored.answer(repeated=False),
        np.asarray(stored.mean, np.float64),
        np.asarray(stored.width, np.float64),
        stored.exploration,
        stored.status,
        stored.reward,
        None if stored.features is None else bytes(stored.features),
        stored.user,
    )


def _row(request: Request, chosen: Chosen, model: int, replica: str, wait: float | None) -> tuple[Any, ...]:
    contexts = np.ascontiguousarray(request.contexts, np.float32)
    return (
        chosen.number, request.event_id, request.digest, request.user, model, replica, list(request.arms),
        request.arms[chosen.position], chosen.position, chosen.preferred, chosen.greedy, request.imposed is not None,
        chosen.exploration, chosen.propensities.tolist(), chosen.score.tolist(), chosen.mean.tolist(),
        chosen.width.tolist(), contexts[chosen.position].tobytes(), zlib.compress(contexts.tobytes(), 1),
        in_json(request.features), "inactive" if request.deferred else "waiting", wait,
    )  # fmt: skip


def _each(cursor: Any, statement: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """A statement with one result for each row of values, sent together."""
    cursor.executemany(statement, rows, returning=True)
    results = []
    while True:
        results.append(cursor.fetchone()[0])
        if not cursor.nextset():
            return results


def _storable(text: str) -> str | None:
    """The text; None, which no event has, if PostgreSQL cannot hold it."""
    return text if is_storable(text) else None


def _in_order(order: Sequence[int], results: Sequence[Any]) -> list[Any]:
    ordered = [None] * len(order)
    for index, result in zip(order, results, strict=True):
        ordered[index] = result
    return ordered


def _count(cursor: Any, replica: str, found: Mapping[str, int]) -> None:
    """Add to the counters of this process, in the transaction that does what they count."""
    names = [name for name, count in found.items() if count]
    if names:
        sets = ", ".join(f"{name} = {name} + %s" for name in names)
        cursor.execute(
            f"UPDATE processes SET {sets}, seen_at = now() WHERE name = %s",
            (*(found[name] for name in names), replica),
        )
