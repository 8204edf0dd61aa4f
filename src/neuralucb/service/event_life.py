"""The life of an event, as `store.py` draws it: what a reward or the end of time makes of it."""

from neuralucb.service.events import OPEN, Kept
from neuralucb.service.store import Reward, Rewarded, Settings

__all__ = ["due_at", "is_up", "rewarded", "settled"]


def rewarded(event: Kept | None, reward: Reward, settings: Settings, now: float) -> tuple[Rewarded, Kept | None]:
    """What becomes of a reward, and of its event if it changes."""
    if event is None:
        return "unknown", None
    if reward.reward_id is not None and reward.reward_id in event.reward_ids:
        return "repeated", None  # also when time is up: it has counted, and is not late
    if event.status not in OPEN or is_up(event, now):
        is_repeat = event.status == "observed" and not is_up(event, now)
        return ("repeated" if is_repeat else "late"), None
    if settings.aggregation == "earliest":
        if event.value is not None:
            return "repeated", None
        if event.status == "waiting":
            return "learned", event._replace(value=reward.value, status="observed")
        return "kept", event._replace(value=reward.value)
    ids = event.reward_ids if reward.reward_id is None else (*event.reward_ids, reward.reward_id)
    return "kept", event._replace(value=(event.value or 0.0) + reward.value, reward_ids=ids)


def settled(event: Kept, default: float) -> Kept:
    """An event whose time is up."""
    if event.status == "inactive":
        return event._replace(status="expired")
    if event.value is None:
        return event._replace(status="defaulted", value=default)
    return event._replace(status="observed")


def is_up(event: Kept, now: float) -> bool:
    """Whether its time is up."""
    return event.due is not None and now >= event.due


def due_at(settings: Settings, now: float) -> float | None:
    """When the time of an event is up that begins now."""
    return None if settings.wait_seconds is None else now + settings.wait_seconds
