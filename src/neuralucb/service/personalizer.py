"""Personalizer's own interface: a client that is deployed only changes its endpoint.

Any version in the path is accepted. A reward for an event that is not known is accepted and counted in the metrics: a
deployed client must not fail on events that were ranked before the move.
"""

from typing import Any

from neuralucb.service.bodies import read_event_id, read_rank, read_reward_value
from neuralucb.service.engine import Made
from neuralucb.service.errors import ServiceError, error_body
from neuralucb.service.http import Call, Reply, Route, json_reply
from neuralucb.service.store import Reward

__all__ = ["ROUTES"]

BASE = "/personalizer/{version}"

NAMES = {
    "unauthorized": "Unauthorized",
    "forbidden": "OperationNotAllowed",
    "conflict": "Conflict",
    "overloaded": "TooManyRequests",
    "unavailable": "ServiceUnavailable",
    "fault": "InternalServerError",
}
"""Codes in the original's style for ours; all others are the request's own."""


async def rank(call: Call) -> Reply:
    """Which action to use: 201, with all actions ranked."""
    ask = read_rank(call.body, call.engine.config.limits)
    (made,) = await call.engine.decide([ask])
    if isinstance(made, Exception):
        raise made
    answer = made.answer
    if call.engine.store.settings().mode == "apprentice":
        call.metrics.matched["true" if answer.preferred == answer.position else "false"] += 1
    chances = (answer.propensities / answer.propensities.sum()).tolist()  # of the policy they are rounded
    ranking = [{"id": answer.arms[place], "probability": chances[place]} for place in ranked(made)]
    body = {"ranking": ranking, "eventId": answer.event_id, "rewardActionId": answer.arms[answer.position]}
    return json_reply(body, 201)


async def reward(call: Call) -> Reply:
    """How good the action was: 204."""
    value = call.body.get("value") if isinstance(call.body, dict) else None
    number = read_reward_value(value, call.engine.store.settings(), "value")
    (result,) = await call.engine.reward([Reward(read_event_id(call.parts["event"], "eventId"), number)])
    if isinstance(result, Exception):
        raise result
    return Reply(204)


async def activate(call: Call) -> Reply:
    """Let a deferred event count: 204."""
    event_id = read_event_id(call.parts["event"], "eventId")
    result = await call.engine.activate(event_id)
    if result == "unknown":
        raise ServiceError("unknown_event", f"there is no event {event_id!r:.80}, or it is too long ago.", "eventId")
    return Reply(204)


def ranked(made: Made) -> list[int]:
    """Positions in the order of the ranking: the chosen action, then by score; an excluded one keeps its place.

    What an operator has excluded since, and an event chose before, counts as allowed: each action is named once.
    """
    score, chosen = made.answer.score, made.answer.position
    allowed = [bool(each) or place == chosen for place, each in enumerate(made.allowed)]
    others = [place for place in range(len(score)) if allowed[place] and place != chosen]
    order = iter([chosen, *sorted(others, key=lambda place: -score[place])])
    return [next(order) if each else place for place, each in enumerate(allowed)]


def describe_rank_error(problem: ServiceError) -> dict[str, Any]:
    """The body of an error of `rank`."""
    return error_body(problem, NAMES.get(problem.code, "InvalidRankRequest"))


def describe_reward_error(problem: ServiceError) -> dict[str, Any]:
    """The body of an error of `reward`."""
    return error_body(problem, NAMES.get(problem.code, "InvalidRewardRequest"))


def describe_activation_error(problem: ServiceError) -> dict[str, Any]:
    """The body of an error of `activate`."""
    return error_body(problem, NAMES.get(problem.code, "InvalidEventIdToActivate"))


ROUTES = (
    Route("POST", f"{BASE}/rank", "decide", rank, body=True, describe_error=describe_rank_error),
    Route("POST", f"{BASE}/events/{{event}}/reward", "reward", reward, body=True, describe_error=describe_reward_error),
    Route("POST", f"{BASE}/events/{{event}}/activate", "reward", activate, describe_error=describe_activation_error),
)
"""Personalizer's paths below its endpoint."""
