"""Our own interface: decide, reward, activate, arms, decisions, settings, snapshots, health and metrics."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson

from neuralucb.runtime.errors import InputError
from neuralucb.service.bodies import (
    Ask,
    read_arm,
    read_batch,
    read_decide,
    read_event_id,
    read_reward,
    refuse_unknown,
    with_numbers,
)
from neuralucb.service.config import Limits, check_settings, is_real
from neuralucb.service.engine import Made
from neuralucb.service.errors import ServiceError, as_service_error, error_body
from neuralucb.service.http import Call, Reply, Route, json_reply
from neuralucb.service.store import CandidateReport, SnapshotRecord, Status, Store

__all__ = ["ROUTES"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

ENDED: dict[Status, str] = {
    "inactive": "waits for its activation",
    "waiting": "waits for its reward",
    "observed": "has its reward",
    "defaulted": "got the default reward, since none came in time",
    "expired": "was never activated",
}


async def decide(call: Call) -> Reply:
    """One decision."""
    ask = _read_decide(call.body, call.engine.config.limits)
    call.body.clear()  # its objects need not wait for the answer
    (made,) = await call.engine.decide([ask])
    return json_reply(_decision(call, _or_raise(made)))


async def decide_batch(call: Call) -> Reply:
    """Many decisions; each is answered or refused for itself."""
    limits = call.engine.config.limits
    items = read_batch(call.body, "requests", limits)
    read = []
    for index, each in enumerate(items):
        read.append(_try(partial(_read_decide, each, limits)))
        items[index] = None  # its objects need not wait for the answer
    made = await _in_order(read, call.engine.decide)
    return json_reply({"decisions": [_or_error(each, lambda one: _decision(call, one)) for each in made]})


async def reward(call: Call) -> Reply:
    """One reward."""
    given = read_reward(call.body, call.engine.store.settings())
    (result,) = await call.engine.reward([given])
    if isinstance(result, Exception):
        raise result
    if result == "unknown":
        raise _unknown(given.event_id)
    return json_reply({"event_id": given.event_id, "status": result})


async def reward_batch(call: Call) -> Reply:
    """Many rewards; each is recorded or refused for itself."""
    settings, limits = call.engine.store.settings(), call.engine.config.limits
    read = [_try(partial(read_reward, each, settings)) for each in read_batch(call.body, "rewards", limits)]
    results = await _in_order(read, call.engine.reward)
    return json_reply({"rewards": [_or_error(each, lambda status: {"status": status}) for each in results]})


async def activate(call: Call) -> Reply:
    """Let a deferred event count."""
    if not isinstance(call.body, dict):
        raise ServiceError("invalid_request", f"the body must be a JSON object, got {call.body!r:.80}.")
    refuse_unknown(call.body, ("event_id",))
    event_id = read_event_id(call.body.get("event_id"))
    result = await call.engine.activate(event_id)
    if result == "unknown":
        raise _unknown(event_id)
    return json_reply({"event_id": event_id, "status": result})


async def explain(call: Call) -> Reply:
    """Why a decision was made, and what became of it."""
    event_id = call.parts["event"]
    found = await call.engine.call(lambda: call.engine.store.explain(event_id))
    if found is None:
        raise _unknown(event_id)
    answer = found.answer
    columns = zip(answer.arms, found.mean, found.width, answer.score, answer.propensities, strict=True)
    arms = [dict(zip(("id", "mean", "width", "score", "propensity"), each, strict=True)) for each in columns]
    chosen = answer.arms[answer.position]
    return json_reply(
        {
            "event_id": answer.event_id,
            "arm": chosen,
            "position": answer.position,
            "preferred": answer.arms[answer.preferred],
            "why": _why(answer.position, answer.preferred, float(answer.propensities[answer.position])),
            "status": found.status,
            "words": ENDED[found.status],
            "reward": found.reward,
            "version": answer.version,
            "time": answer.time,
            "exploration": found.exploration,
            "user": found.user,
            "arms": arms,
            "features": None if found.features is None else orjson.loads(found.features),
        }
    )


async def list_arms(call: Call) -> Reply:
    """Registered arms."""
    arms = await call.engine.call(call.engine.store.arms)
    return json_reply({"arms": [arm._asdict() for arm in arms]})


async def put_arm(call: Call) -> Reply:
    """Register an arm, or replace its features."""
    arm = read_arm(call.parts["arm"], call.body)
    most = call.engine.config.limits.arms
    if len(call.engine.store.arms()) >= most and arm.id not in {each.id for each in call.engine.store.arms()}:
        raise ServiceError("invalid_request", f"at most {most} arms can be registered; remove one first.", "arm")
    is_new = await call.engine.call(lambda: call.engine.store.put_arm(arm))
    return json_reply(arm._asdict(), 201 if is_new else 200)


async def remove_arm(call: Call) -> Reply:
    """Remove a registered arm; rewards of its decisions are still accepted."""
    if not await call.engine.call(lambda: call.engine.store.remove_arm(call.parts["arm"])):
        raise ServiceError("not_found", f"there is no arm {call.parts['arm']!r:.80}.", "arm")
    return Reply(204)


async def get_settings(call: Call) -> Reply:
    """What an operator may change."""
    return json_reply(call.engine.store.settings()._asdict())


async def patch_settings(call: Call) -> Reply:
    """Change some of it."""
    if not isinstance(call.body, dict):
        raise ServiceError("invalid_request", f"the body must be a JSON object, got {call.body!r:.80}.")
    body = call.body
    settings = await call.engine.call(
        lambda: call.engine.store.amend(lambda before: check_settings({**before._asdict(), **body}))
    )
    return json_reply(settings._asdict())


async def list_snapshots(call: Call) -> Reply:
    """Snapshots, oldest first."""
    found = await call.engine.call(call.engine.store.snapshots)
    return json_reply({"snapshots": [each._asdict() for each in found]})


async def make_snapshot(call: Call) -> Reply:
    """Make a snapshot now."""
    made: SnapshotRecord = await call.engine.call(call.engine.store.snapshot)
    return json_reply(made._asdict(), 201)


async def rollback(call: Call) -> Reply:
    """Return to a snapshot: that of a number, or the last one before a moment."""
    fields = call.body if isinstance(call.body, dict) and len(call.body) == 1 else {}
    number, moment = fields.get("snapshot"), fields.get("time")
    if type(number) is not int and not is_real(moment):
        raise ServiceError(
            "invalid_request", 'the body must be {"snapshot": NUMBER}, or {"time": SECONDS SINCE 1970}.', "snapshot"
        )
    try:
        record = await call.engine.call(lambda: _roll_back(call.engine.store, number, moment))
    except InputError as problem:
        raise ServiceError("not_found", str(problem), "snapshot") from None
    return json_reply(record._asdict())


async def health(call: Call) -> Reply:
    """All that is known about the health of the service."""
    found = await call.engine.call(call.engine.store.health)
    failure = "; ".join(filter(None, (found.failure, call.engine.problem))) or None
    status = "stopping" if call.application.stopping else "failing" if failure else "healthy"
    return json_reply({"status": status, **found._asdict(), "failure": failure, **_queues(call)})


async def live(call: Call) -> Reply:
    """Whether the process answers."""
    return json_reply({"status": "live"})


async def ready(call: Call) -> Reply:
    """Whether decisions are accepted."""
    if call.application.stopping:
        raise ServiceError("unavailable", "the service is stopping.")
    found = await call.engine.call(call.engine.store.health)
    if not found.writable:  # why is for those who may read /health: it names the database, say
        raise ServiceError("unavailable", "the store cannot be written; /health says why.")
    return json_reply({"status": "ready"})


async def show_metrics(call: Call) -> Reply:
    """Metrics in Prometheus' text format."""
    found = await call.engine.call(call.engine.store.health)
    counts = call.engine.encoder.counts
    encoder = {"features_named": counts.named, "features_hashed": counts.hashed, "features_missing": counts.missing}
    batches = {"batches": call.engine.deciding.batches, "decisions_batched": call.engine.deciding.handled}
    gauges = {**found.gauges, **_queues(call), "failing": float(found.failure is not None)}
    reports = await call.engine.call(call.engine.store.candidates)
    candidates = {each.name: _gauges(each) for each in reports}
    text = call.metrics.text({**found.counters, **encoder, **batches}, gauges, candidates)
    return Reply(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")


ROUTES = (
    Route("POST", "/v1/decide", "decide", decide, body=True),
    Route("POST", "/v1/decide/batch", "decide", decide_batch, body=True),
    Route("POST", "/v1/reward", "reward", reward, body=True),
    Route("POST", "/v1/reward/batch", "reward", reward_batch, body=True),
    Route("POST", "/v1/activate", "reward", activate, body=True),
    Route("GET", "/v1/decisions/{event}", "admin", explain),
    Route("GET", "/v1/arms", "decide", list_arms),
    Route("PUT", "/v1/arms/{arm}", "admin", put_arm, body=True),
    Route("DELETE", "/v1/arms/{arm}", "admin", remove_arm),
    Route("GET", "/v1/settings", "admin", get_settings),
    Route("PATCH", "/v1/settings", "admin", patch_settings, body=True),
    Route("GET", "/v1/snapshots", "admin", list_snapshots),
    Route("POST", "/v1/snapshots", "admin", make_snapshot),
    Route("POST", "/v1/rollback", "admin", rollback, body=True),
    Route("GET", "/health", "read", health),
    Route("GET", "/health/live", "anyone", live),
    Route("GET", "/health/ready", "anyone", ready),
    Route("GET", "/metrics", "read", show_metrics),
)
"""Which token a request needs, and what answers it."""


def _read_decide(body: Any, limits: Limits) -> Ask:
    return with_numbers(read_decide(body, limits))


def _roll_back(store: Store, number: int | None, moment: float | None) -> SnapshotRecord:
    if number is None:
        assert moment is not None
        earlier = [each for each in store.snapshots() if each.time <= moment]
        if not earlier:
            raise InputError("time must not be before the oldest snapshot; GET /v1/snapshots lists them.")
        number = max(earlier, key=lambda each: each.time).number
    return store.rollback(number)


def _decision(call: Call, made: Made) -> dict[str, Any]:
    answer = made.answer
    if call.engine.store.settings().mode == "apprentice":
        call.metrics.matched["true" if answer.preferred == answer.position else "false"] += 1
    score, propensities = answer.score.tolist(), answer.propensities.tolist()
    columns = zip(answer.arms, propensities, score, strict=True)
    return {
        "event_id": answer.event_id,
        "arm": answer.arms[answer.position],
        "position": answer.position,
        "propensity": propensities[answer.position],
        "version": answer.version,
        "time": answer.time,
        "repeated": answer.repeated,
        "arms": [{"id": arm, "propensity": chance, "score": value} for arm, chance, value in columns],
    }


def _why(position: int, preferred: int, propensity: float) -> str:
    if position == preferred:
        return "it has the highest score of those that were allowed"
    if propensity == 1:
        return "it was the application's own choice"
    return "a share of decisions is made at random, so that other arms stay known"


def _gauges(report: CandidateReport) -> dict[str, float]:
    """A candidate in numbers; those that are not known are left out."""
    found: dict[str, float] = {
        "observations": report.observations, "lessons": report.lessons, "decisions": report.decisions,
        "failing": float(report.failure is not None),
    }  # fmt: skip
    for name, field in (("value", "candidate"), ("difference", "difference")):
        value = report.values[field]
        numbers = {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        found |= {each: number for each, number in numbers.items() if number is not None and number == number}
    return found


def _queues(call: Call) -> dict[str, float]:
    return {"decide_queue": call.engine.deciding.waiting, "reward_queue": call.engine.rewarding.waiting}


def _unknown(event_id: str) -> ServiceError:
    return ServiceError("unknown_event", f"there is no event {event_id!r:.80}, or it is too long ago.", "event_id")


def _or_raise(made: Made | Exception) -> Made:
    if isinstance(made, Exception):
        raise made
    return made


def _try(read: Callable[[], Item]) -> Item | Exception:
    try:
        return read()
    except ServiceError as problem:
        return problem


async def _in_order(read: Sequence[Item | Exception], work: Callable[[Sequence[Item]], Any]) -> list[Any]:
    """Results of work on what could be read, and the problems of the rest, in their order."""
    good = [each for each in read if not isinstance(each, Exception)]
    results = iter(await work(good) if good else ())
    return [each if isinstance(each, Exception) else next(results) for each in read]


def _or_error(result: Any, show: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    return error_body(as_service_error(result)) if isinstance(result, Exception) else show(result)
