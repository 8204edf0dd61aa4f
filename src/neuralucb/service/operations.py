"""What an operator does beside changing settings: candidates, their promotion, removing observations, and pins."""

from typing import Any

from neuralucb.runtime.errors import InputError
from neuralucb.service.bodies import read_event_id, refuse_unknown
from neuralucb.service.config import check_candidate, is_real
from neuralucb.service.errors import ServiceError
from neuralucb.service.http import Call, Reply, Route, json_reply
from neuralucb.service.store import Candidate, CandidateReport, Store, UnknownEventError

__all__ = ["ROUTES", "candidate_json", "candidates_json"]


async def list_candidates(call: Call) -> Reply:
    """The policy that decides, and how the others do."""
    return json_reply(await call.engine.call(lambda: candidates_json(call.engine.store)))


async def put_candidate(call: Call) -> Reply:
    """Add a candidate, or replace it by another."""
    name, store = call.parts["name"], call.engine.store
    candidate = check_candidate(name, call.body)
    is_new = await call.engine.call(lambda: store.put_candidate(name, candidate))
    return json_reply({"name": name, **_plain(candidate)}, 201 if is_new else 200)


async def remove_candidate(call: Call) -> Reply:
    """Follow a candidate no longer."""
    if not await call.engine.call(lambda: call.engine.store.remove_candidate(call.parts["name"])):
        raise _no_candidate(call)
    return Reply(204)


async def promote(call: Call) -> Reply:
    """Let a candidate decide; what decided becomes a candidate."""
    name, store = call.parts["name"], call.engine.store
    reports = await call.engine.call(store.candidates)
    if name not in {each.name for each in reports}:
        raise _no_candidate(call)
    await call.engine.call(lambda: store.promote(name))
    return json_reply(await call.engine.call(lambda: candidates_json(store)))


async def pin(call: Call) -> Reply:
    """Keep a snapshot whatever the retention says, or no longer."""
    fields = call.body if isinstance(call.body, dict) else {}
    pinned, number = fields.get("pinned"), call.parts["number"]
    if not isinstance(pinned, bool) or len(fields) != 1:
        raise ServiceError("invalid_request", 'the body must be {"pinned": true}, or false.', "pinned")
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise ServiceError("not_found", f"there is no snapshot {number!r:.40}.", "number")
    try:
        record = await call.engine.call(lambda: call.engine.store.pin(int(number), pinned=pinned))
    except InputError as problem:
        raise ServiceError("not_found", str(problem), "number") from None
    return json_reply(record._asdict())


async def forget(call: Call) -> Reply:
    """Remove observations, of events or of a period; the model is learned again from the rest."""
    fields = call.body if isinstance(call.body, dict) else {}
    refuse_unknown(fields, ("event_ids", "since", "until", "arm"))
    events, since, until, arm = (fields.get(name) for name in ("event_ids", "since", "until", "arm"))
    if (events is None) == (since is None and until is None):
        raise ServiceError(
            "invalid_request",
            'the body must be {"event_ids": […]}, or {"since": …, "until": …, "arm": …}.',
            "event_ids",
        )
    if events is not None:
        most = call.engine.config.limits.batch
        if not isinstance(events, list) or not 1 <= len(events) <= most:
            raise ServiceError("invalid_request", f"event_ids must be a list of 1 to {most} ids.", "event_ids")
        events = [read_event_id(each, "event_ids") for each in events]
    if arm is not None:
        arm = read_event_id(arm, "arm")
        if events is not None:
            raise ServiceError("invalid_request", "arm goes with since and until, not with event_ids.", "arm")
    for name, value in (("since", since), ("until", until)):
        if value is not None and not is_real(value):
            raise ServiceError("invalid_request", f"{name} must be seconds since 1970, got {value!r:.80}.", name)
    try:
        found = await call.engine.call(lambda: call.engine.store.forget(events, since, until, arm))
    except UnknownEventError as problem:
        raise ServiceError("unknown_event", str(problem), "event_ids") from None
    return json_reply(found._asdict())


ROUTES = (
    Route("PATCH", "/v1/snapshots/{number}", "admin", pin, body=True),
    Route("POST", "/v1/forget", "admin", forget, body=True),
    Route("GET", "/v1/candidates", "read", list_candidates),
    Route("PUT", "/v1/candidates/{name}", "admin", put_candidate, body=True),
    Route("DELETE", "/v1/candidates/{name}", "admin", remove_candidate),
    Route("POST", "/v1/candidates/{name}/promote", "admin", promote),
)


def candidates_json(store: Store) -> dict[str, Any]:
    """What decides, and how others do."""
    name, what = store.deciding()
    return {
        "deciding": {"name": name, "algorithm": what.algorithm, "options": dict(what.options)},
        "candidates": [candidate_json(each) for each in store.candidates()],
    }


def candidate_json(report: CandidateReport) -> dict[str, Any]:
    """One candidate."""
    values = {name: value._asdict() for name, value in report.values.items()}
    return {**report._asdict(), "candidate": _plain(report.candidate), "values": values}


def _plain(candidate: Candidate) -> dict[str, Any]:
    return {**candidate._asdict(), "options": dict(candidate.options)}


def _no_candidate(call: Call) -> ServiceError:
    return ServiceError("not_found", f"there is no candidate {call.parts['name']!r:.60}.", "name")
