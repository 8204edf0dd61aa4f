"""The description of the interface, in OpenAPI 3.1: what clients are generated from and tests are made of."""

from functools import lru_cache
from typing import Any

import orjson

from neuralucb import __version__
from neuralucb.service.errors import CODES
from neuralucb.service.http import Call, Reply, Route

__all__ = ["ROUTES", "document"]


async def show(call: Call) -> Reply:
    """This document."""
    return Reply(200, _text(call.application.config.tokens.required))


ROUTES = (Route("GET", "/openapi.json", "anyone", show),)


def document(*, tokens: bool = False) -> dict[str, Any]:
    """The whole description.

    tokens  whether requests need one
    """
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "neuralucb",
            "version": __version__,
            "description": "Decisions by a neural contextual bandit: features in, decisions out, rewards later.",
        },
        "paths": _paths(),
        "components": {"schemas": _SCHEMAS, "securitySchemes": schemes},
        **({"security": [{"bearer": []}, {"key": []}]} if tokens else {}),
    }


@lru_cache
def _text(tokens: bool) -> bytes:
    return orjson.dumps(document(tokens=tokens))


def _paths() -> dict[str, Any]:
    base, personal = "/personalizer/{version}", [_in_path("version"), _in_path("event")]
    return {
        "/v1/decide": {"post": _operation("decide", "Decide", "Decide", {"200": "Decision"}, 409, 429)},
        "/v1/decide/batch": {
            "post": _operation("decideBatch", "Decide many", "DecideBatch", {"200": "DecisionBatch"}, 429)
        },
        "/v1/reward": {"post": _operation("reward", "Reward", "Reward", {"200": "EventStatus"}, 404, 429)},
        "/v1/reward/batch": {
            "post": _operation("rewardBatch", "Reward many", "RewardBatch", {"200": "RewardBatchResult"}, 429)
        },
        "/v1/activate": {
            "post": _operation("activate", "Activate a deferred event", "Activate", {"200": "EventStatus"}, 404)
        },
        "/v1/decisions/{event}": {
            "parameters": [_in_path("event")],
            "get": _operation("explain", "Why a decision was made", None, {"200": "Explanation"}, 404),
        },
        "/v1/arms": {"get": _operation("listArms", "Registered arms", None, {"200": "Arms"})},
        "/v1/arms/{arm}": {
            "parameters": [_in_path("arm")],
            "put": _operation("putArm", "Register an arm", "ArmFeatures", {"200": "Arm", "201": "Arm"}),
            "delete": _operation("removeArm", "Remove an arm", None, {"204": None}, 404),
        },
        "/v1/settings": {
            "get": _operation("getSettings", "What an operator may change", None, {"200": "Settings"}),
            "patch": _operation("patchSettings", "Change some of it", "SettingsChange", {"200": "Settings"}),
        },
        "/v1/snapshots": {
            "get": _operation("listSnapshots", "Snapshots, oldest first", None, {"200": "Snapshots"}),
            "post": _operation("makeSnapshot", "Make a snapshot", None, {"201": "Snapshot"}),
        },
        "/v1/snapshots/{number}": {
            "parameters": [_in_path("number")],
            "patch": _operation("pinSnapshot", "Pin a snapshot, or no longer", "Pin", {"200": "Snapshot"}, 404),
        },
        "/v1/rollback": {"post": _operation("rollback", "Return to a snapshot", "Rollback", {"200": "Snapshot"}, 404)},
        "/v1/forget": {"post": _operation("forget", "Remove observations", "Forget", {"200": "Forgotten"}, 404)},
        "/v1/candidates": {
            "get": _operation("listCandidates", "What decides, and how others do", None, {"200": "Candidates"})
        },
        "/v1/candidates/{name}": {
            "parameters": [_in_path("name")],
            "put": _operation(
                "putCandidate", "Add a candidate", "Candidate", {"200": "NamedCandidate", "201": "NamedCandidate"}
            ),
            "delete": _operation("removeCandidate", "Remove a candidate", None, {"204": None}, 404),
        },
        "/v1/candidates/{name}/promote": {
            "parameters": [_in_path("name")],
            "post": _operation("promote", "Let a candidate decide", None, {"200": "Candidates"}, 404),
        },
        "/v1/status": {"get": _operation("status", "What an operator looks at", None, {"200": "Status"})},
        "/": {"get": _operation("dashboard", "The dashboard", None, {"200": "html"})},
        "/health": {"get": _operation("health", "Health in full", None, {"200": "Health"})},
        "/health/live": {"get": _operation("live", "Whether the process answers", None, {"200": "Words"})},
        "/health/ready": {"get": _operation("ready", "Whether decisions are accepted", None, {"200": "Words"})},
        "/metrics": {"get": _operation("metrics", "Metrics for Prometheus", None, {"200": "text"})},
        "/openapi.json": {"get": _operation("openapi", "This document", None, {"200": "Anything"})},
        f"{base}/rank": {
            "parameters": personal[:1],
            "post": _operation("rank", "Personalizer: rank", "Rank", {"201": "Ranking"}, 409, 429),
        },
        f"{base}/events/{{event}}/reward": {
            "parameters": personal,
            "post": _operation("rankReward", "Personalizer: reward", "RankReward", {"204": None}, 429),
        },
        f"{base}/events/{{event}}/activate": {
            "parameters": personal,
            "post": _operation("rankActivate", "Personalizer: activate", None, {"204": None}, 404),
        },
    }


def _operation(
    name: str, summary: str, body: str | None, answers: dict[str, str | None], *errors: int
) -> dict[str, Any]:
    """One method of a path; every one may answer the errors of tokens, limits and a store that is not available."""
    responses: dict[str, Any] = {}
    for status, schema in answers.items():
        kind = {"text": "text/plain", "html": "text/html"}.get(str(schema), "application/json")
        shape = _ref(str(schema)) if kind == "application/json" else {"type": "string"}
        responses[status] = {"description": summary} | (
            {} if schema is None else {"content": {kind: {"schema": shape}}}
        )
    known = sorted({401, 403, 503, *errors, *((400, 408, 413, 415) if body else ()), *((400,) if errors else ())})
    for status in known:
        meanings = "; ".join(f"{code}: {words}" for code, (each, words) in CODES.items() if each == status)
        responses[str(status)] = {"description": meanings, "content": {"application/json": {"schema": _ref("Error")}}}
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": responses}
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(body)}}}
    return operation


def _in_path(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 256},
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: str, /, *, closed: bool = True, **properties: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "object", "properties": properties, "required": required.split()}
    return {**shape, "additionalProperties": False} if closed else shape


def _list(items: dict[str, Any], **more: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _or_null(shape: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [shape, {"type": "null"}]}


_ID = {"type": "string", "minLength": 1, "maxLength": 256}
_NUMBER = {"type": "number"}
_WORD = {"type": "string"}
_COUNT = {"type": "integer"}
_REWARD = {"type": "number", "minimum": -1e30, "maximum": 1e30}
_CHANCE = {"type": "number", "minimum": 0, "maximum": 1.000001}
_FEATURES = {
    "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}, {"type": "null"}],
    "description": "numbers, strings, booleans, lists of numbers, and namespaces of these",
}
_SETTINGS: dict[str, Any] = {
    "mode": {"enum": ["online", "apprentice"]},
    "default_reward": _REWARD,
    "wait_seconds": _or_null({"type": "number", "minimum": 0, "maximum": 1e9}),
    "aggregation": {"enum": ["earliest", "sum"]},
    "learning": {"type": "boolean"},
    "reward_range": _or_null(_list(_REWARD, minItems=2, maxItems=2)),
    "excluded": _list(_ID, maxItems=1000),
    "pinned": _or_null(_ID),
    "floor": _or_null({"type": "number", "minimum": 0, "maximum": 1}),
    "schedule": _or_null({"type": "string", "maxLength": 256}),
    "rate": _or_null({"type": "number", "exclusiveMinimum": 0, "maximum": 1e6}),
}
_CANDIDATE: dict[str, Any] = {
    "algorithm": _WORD,
    "options": {"type": "object"},
    "floor": _SETTINGS["floor"],
    "schedule": _SETTINGS["schedule"],
}
_ALARM = _object("level words", level={"enum": ["bad", "warning", "note"]}, words=_WORD)
_ERROR = _object("code message", closed=False, code=_WORD, message=_WORD, target=_WORD)
_SCHEMAS: dict[str, Any] = {
    "Anything": {"type": "object"},
    "Words": _object("status", status=_WORD),
    "Error": _object("error", error=_ERROR),
    "Arm": _object("id", id=_ID, features=_FEATURES),
    "ArmFeatures": _object("", features=_FEATURES),
    "Arms": _object("arms", arms=_list(_ref("Arm"))),
    "Decide": _object(
        "",
        event_id=_or_null(_ID),
        context=_FEATURES,
        arms=_or_null(_list({"anyOf": [_ID, _ref("Arm")]}, minItems=1)),
        excluded=_or_null(_list(_ID)),
        deferred=_or_null({"type": "boolean"}),
        user=_or_null(_ID),
    ),
    "DecideBatch": _object("requests", requests=_list(_ref("Decide"), minItems=1)),
    "Decision": _object(
        "event_id arm position propensity arms",
        event_id=_ID,
        arm=_ID,
        position=_COUNT,
        propensity=_CHANCE,
        version=_COUNT,
        time=_NUMBER,
        repeated={"type": "boolean"},
        arms=_list(_object("id propensity score", id=_ID, propensity=_CHANCE, score=_NUMBER)),
    ),
    "DecisionBatch": _object("decisions", decisions=_list({"anyOf": [_ref("Decision"), _ref("Error")]})),
    "Reward": _object("event_id reward", event_id=_ID, reward=_REWARD, reward_id=_or_null(_ID)),
    "RewardBatch": _object("rewards", rewards=_list(_ref("Reward"), minItems=1)),
    "RewardBatchResult": _object("rewards", rewards=_list({"anyOf": [_object("status", status=_WORD), _ref("Error")]})),
    "Activate": _object("event_id", event_id=_ID),
    "EventStatus": _object("event_id status", event_id=_ID, status=_WORD),
    "Explanation": _object("event_id arm status arms", closed=False, event_id=_ID, arm=_ID, status=_WORD),
    "Settings": _object(" ".join(_SETTINGS), **_SETTINGS),
    "SettingsChange": _object("", **_SETTINGS),
    "Snapshot": _object("number time observations", closed=False, number=_COUNT, time=_NUMBER, observations=_COUNT),
    "Snapshots": _object("snapshots", snapshots=_list(_ref("Snapshot"))),
    "Pin": _object("pinned", pinned={"type": "boolean"}),
    "Forget": {
        "anyOf": [
            _object("event_ids", event_ids=_list(_ID, minItems=1)),
            _object("since", since=_NUMBER, until=_or_null(_NUMBER), arm=_or_null(_ID)),
            _object("until", since=_or_null(_NUMBER), until=_NUMBER, arm=_or_null(_ID)),
        ]
    },
    "Forgotten": _object("observations pending", observations=_COUNT, pending=_COUNT),
    "Candidate": _object("", **_CANDIDATE),
    "NamedCandidate": _object("name", name=_WORD, **_CANDIDATE),
    "Candidates": _object(
        "deciding candidates",
        deciding=_object("name algorithm options", name=_WORD, algorithm=_WORD, options={"type": "object"}),
        candidates=_list(_object("name candidate values", closed=False, name=_WORD, values={"type": "object"})),
    ),
    "Rollback": {"anyOf": [_object("snapshot", snapshot=_COUNT), _object("time", time=_NUMBER)]},
    "Status": _object(
        "time alarms values", closed=False, time=_NUMBER, alarms=_list(_ALARM), values={"type": "object"}
    ),
    "Health": _object("status", closed=False, status=_WORD),
    "Rank": _object(
        "actions",
        closed=False,
        contextFeatures=_or_null(_list({"type": "object"})),
        actions=_list(
            _object("id", closed=False, id=_ID, features=_or_null(_list({"type": "object"}))), minItems=1, maxItems=50
        ),
        excludedActions=_or_null(_list(_ID)),
        eventId=_or_null(_ID),
        deferActivation=_or_null({"type": "boolean"}),
    ),
    "Ranking": _object(
        "ranking eventId rewardActionId",
        ranking=_list(_object("id probability", id=_ID, probability=_CHANCE)),
        eventId=_ID,
        rewardActionId=_ID,
    ),
    "RankReward": _object("value", closed=False, value=_REWARD),
}
