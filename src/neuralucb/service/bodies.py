"""What clients send, read from JSON and checked: decisions, rewards, arms; ours and Personalizer's."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from neuralucb.features import Encoder
from neuralucb.features.flatten import Alike, read_alike
from neuralucb.runtime.errors import InputError
from neuralucb.service.config import LARGEST_REWARD, LONGEST_ID, Limits, is_real
from neuralucb.service.errors import ServiceError
from neuralucb.service.store import Arm, Reward, Settings

__all__ = [
    "Ask",
    "read_arm",
    "read_batch",
    "read_decide",
    "read_event_id",
    "read_rank",
    "read_reward",
    "read_reward_value",
    "refuse_unknown",
    "with_numbers",
]

SMALLEST = 4
"""Slots of an encoder that only checks."""

RANK_ACTIONS = 50
"""Personalizer's limit."""

FIELDS = itemgetter("id", "features")
"""What an arm of a request has."""


class Ask(NamedTuple):
    """A decision that a client asks for, before its features are encoded."""

    event_id: str | None
    """None: one is made"""
    context: Any
    ids: tuple[str, ...] | None
    """of the arms; None: those that are registered"""
    features: tuple[Any, ...]
    """of each arm that is named; None where registered ones count"""
    excluded: tuple[str, ...]
    deferred: bool
    user: str | None
    alike: Alike | None = None
    """in the place of `features`, if they are alike"""


def read_decide(body: Any, limits: Limits) -> Ask:
    """A request to `/v1/decide`."""
    fields = _object(body, ("event_id", "context", "arms", "excluded", "deferred", "user"))
    event_id = fields.get("event_id")
    ids, features = (None, ()) if fields.get("arms") is None else _read_arms(_list(fields["arms"], "arms", limits.arms))
    user = fields.get("user")
    return Ask(
        None if event_id is None else read_event_id(event_id),
        fields.get("context"),
        ids,
        features,
        _excluded(fields.get("excluded"), "excluded", limits),
        _boolean(fields.get("deferred"), "deferred"),
        None if user is None else _id(user, "user"),
    )


def with_numbers(ask: Ask) -> Ask:
    """The same, with its features as one array if they are alike.

    So the objects that were parsed can be freed by the thread that made them, while they are in its cache: reading them
    in another, on another core, takes twice as long.
    """
    alike = read_alike(ask.features, from_json=True)
    return ask if alike is None else ask._replace(features=(), alike=alike)


def read_rank(body: Any, limits: Limits) -> Ask:
    """A request to Personalizer's `rank`; fields that it does not know are ignored, as the original does."""
    fields = _object(body, None)
    event_id = fields.get("eventId")
    listed = _list(fields.get("actions"), "actions", min(RANK_ACTIONS, limits.arms))
    if not listed:
        raise ServiceError("invalid_request", "actions must have at least one action, got none.", "actions")
    ids, features = [], []
    for index, action in enumerate(listed):
        if not isinstance(action, Mapping):
            raise ServiceError(
                "invalid_request", f"actions[{index}] must be an object with id and features.", "actions"
            )
        ids.append(_id(action.get("id"), f"actions[{index}].id"))
        features.append(_objects(action.get("features"), index))
    _distinct(ids, "actions")
    context = fields.get("contextFeatures")
    if context is not None and not isinstance(context, list):
        raise ServiceError("invalid_request", "contextFeatures must be a list of objects.", "contextFeatures")
    excluded = _excluded(fields.get("excludedActions"), "excludedActions", limits)
    return Ask(
        None if event_id in (None, "") else read_event_id(event_id, "eventId"),
        context,
        tuple(ids),
        tuple(features),
        excluded,
        _boolean(fields.get("deferActivation"), "deferActivation"),
        None,
    )


def read_reward(body: Any, settings: Settings) -> Reward:
    """A request to `/v1/reward`."""
    fields = _object(body, ("event_id", "reward", "reward_id"))
    reward_id = fields.get("reward_id")
    return Reward(
        read_event_id(fields.get("event_id")),
        read_reward_value(fields.get("reward"), settings, "reward"),
        None if reward_id is None else _id(reward_id, "reward_id"),
    )


def read_reward_value(value: Any, settings: Settings, target: str) -> float:
    """A reward: finite, and within the range."""
    if not is_real(value) or abs(value) > LARGEST_REWARD:
        raise ServiceError(
            "invalid_request",
            f"{target} must be a finite number of at most {LARGEST_REWARD:g}, got {value!r:.80}.",
            target,
        )
    bounds = settings.reward_range
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise ServiceError(
            "invalid_request",
            f"{target} must be from {bounds[0]:g} to {bounds[1]:g}, the reward_range, got {value}.",
            target,
        )
    return float(value)


def read_batch(body: Any, name: str, limits: Limits) -> list[Any]:
    """The items of a request for many."""
    items = _list(_object(body, (name,)).get(name), name, limits.batch)
    if not items:
        raise ServiceError("invalid_request", f"{name} must have at least one item, got none.", name)
    return items


def read_arm(arm_id: str, body: Any) -> Arm:
    """An arm to register."""
    features = _object(body, ("features",)).get("features")
    _check_features(features, "features")
    return Arm(_id(arm_id, "arm"), features)


def read_event_id(value: Any, target: str = "event_id") -> str:
    """An event's id."""
    return _id(value, target)


def refuse_unknown(fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a field that means nothing here: it may be misspelt."""
    for name in fields:
        if name not in known:
            raise ServiceError(
                "invalid_request", f"{name!r:.80} is not a field here; known are {', '.join(known)}.", f"{name:.80}"
            )


def _object(body: Any, known: Sequence[str] | None) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ServiceError("invalid_request", f"the body must be a JSON object, got {body!r:.80}.")
    if known is not None:
        refuse_unknown(body, known)
    return body


def _list(value: Any, target: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise ServiceError("invalid_request", f"{target} must be a list, got {value!r:.80}.", target)
    if len(value) > most:
        raise ServiceError("invalid_request", f"{target} must have at most {most} items, got {len(value)}.", target)
    return value


def _id(value: Any, target: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID:
        raise ServiceError(
            "invalid_request", f"{target} must be a string of 1 to {LONGEST_ID} characters, got {value!r:.80}.", target
        )
    return value


def _distinct(ids: Sequence[str], target: str) -> None:
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise ServiceError("invalid_request", f"{target} must have distinct ids, got {twice!r:.80} twice.", target)


def _boolean(value: Any, target: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise ServiceError("invalid_request", f"{target} must be true or false, got {value!r:.80}.", target)
    return bool(value)


def _excluded(value: Any, target: str, limits: Limits) -> tuple[str, ...]:
    return () if value is None else tuple(_id(each, target) for each in _list(value, target, limits.arms))


def _read_arms(listed: list[Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Ids and features of a request's arms."""
    if not listed:
        raise ServiceError("invalid_request", "arms must have at least one arm, got none.", "arms")
    try:  # the usual kind, objects with both, all at once
        ids, features = zip(*map(FIELDS, listed), strict=True)
        is_usual = set(map(len, listed)) == {2} and set(map(type, ids)) == {str}
        is_usual = is_usual and min(map(len, ids)) >= 1 and max(map(len, ids)) <= LONGEST_ID
    except (KeyError, TypeError):
        is_usual = False
    if not is_usual:
        ids, features = zip(*(_read_listed(arm, index) for index, arm in enumerate(listed)), strict=True)
    _distinct(ids, "arms")
    return ids, features


def _read_listed(arm: Any, index: int) -> tuple[str, Any]:
    """An arm of a request: its id, or an object with id and features. Without features, registered ones count."""
    if isinstance(arm, str):
        return _id(arm, f"arms[{index}]"), None
    if not isinstance(arm, dict):
        raise ServiceError("invalid_request", f"arms[{index}] must be an id or an object, got {arm!r:.80}.", "arms")
    refuse_unknown(arm, ("id", "features"))
    return _id(arm.get("id"), f"arms[{index}].id"), arm.get("features")


def _objects(features: Any, index: int) -> Any:
    if features is not None and not isinstance(features, list):
        target = f"actions[{index}].features"
        raise ServiceError("invalid_request", f"{target} must be a list of objects, got {features!r:.80}.", target)
    return features


def _check_features(features: Any, target: str) -> None:
    try:
        Encoder(SMALLEST).encode(None, [features])  # with names of its own: those of the service stay as they are
    except InputError as problem:
        raise ServiceError("invalid_features", str(problem), target) from None
