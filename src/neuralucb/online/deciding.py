"""Deciding: a choice is made from the belief of the moment, kept, and only then answered."""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from neuralucb.online.arms import ArmId
from neuralucb.online.compiled import each_leaf, power_of_two
from neuralucb.online.ledger import Decision, column
from neuralucb.online.state import Event, Moments

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["decide", "decide_many"]

Ids = tuple[ArmId, ...] | None


def decide(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> Decision:
    """One decision over contexts [K, …]."""
    if bandit.settings["count_pending"]:
        one = jax.tree.map(lambda leaf: leaf[None], contexts)
        (decision,) = _in_turn(bandit, one, ids, available[None], power_of_two(len(available)))
        return decision
    with bandit._lock:
        now = _Moment(bandit._give(1), bandit._state.version, bandit._state.moments)
        belief = bandit._state.belief
    made = bandit._programs.choose(now.first, belief, contexts, available)
    arm = int(column(made, "chosen")[0])
    picked = each_leaf(lambda leaf: leaf[arm : arm + 1].copy(), contexts)  # the caller may use the array again
    (decision,) = _keep(bandit, now, ids, made, picked)
    return decision


def decide_many(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> list[Decision]:
    """Decisions over contexts [B, K, …]; K is padded where arms have ids, and may come and go."""
    arms = available.shape[1]
    room = arms if ids is None else power_of_two(arms)
    if bandit.settings["count_pending"]:
        return _in_turn(bandit, contexts, ids, available, room)
    with bandit._lock:
        now = _Moment(bandit._give(len(available)), bandit._state.version, bandit._state.moments)
        belief = bandit._state.belief
    made = bandit._programs.choose_many(now.first, belief, contexts, available, room=room)
    return _keep(bandit, now, ids, made, _picked(contexts, made))


class _Moment(NamedTuple):
    """When a choice is made: the number of its first decision, the belief's version, the scale of rewards."""

    first: int
    version: int
    moments: Moments


def _in_turn(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray, room: int) -> list[Decision]:
    """Each knows of those before it, and of all that wait: so nobody else may decide meanwhile."""
    with bandit._lock:
        now = _Moment(bandit._give(len(available)), bandit._state.version, bandit._state.moments)
        supposed = bandit._state.supposed()
        made = bandit._programs.choose_in_turn(now.first, supposed, contexts, available, room=room)
        return _keep(bandit, now, ids, made, _picked(contexts, made))


def _keep(bandit: "OnlineBandit", now: _Moment, ids: Ids, made: np.ndarray, picked: Any) -> list[Decision]:
    """Make decisions durable, then known."""
    state = bandit._state
    if state.normalize:
        _put_in_your_scale(now.moments, made)
    fields = {"first": now.first, "version": now.version, "time": time.time(), "arms": ids}
    arrays = {"rows": made, **state.context_arrays(picked)}
    for array in arrays.values():
        array.flags.writeable = False  # decisions show the ledger's own
    with bandit._lock:
        bandit._do(Event("decide", fields, arrays))
        asked = state.ledger.pending[now.first]
    return asked.decisions(bandit.name)


def _put_in_your_scale(moments: Moments, made: np.ndarray) -> None:
    """Choices in the caller's scale of rewards, in place of the network's."""
    for name, shift in (("mean", moments.mean), ("width", 0.0), ("score", moments.mean)):
        numbers = column(made, name)
        numbers[:] = numbers * moments.deviation + shift


def _picked(contexts: Any, made: np.ndarray) -> Any:
    """The contexts of the arms chosen."""
    arms = column(made, "chosen").astype(np.intp)
    return jax.tree.map(lambda leaf: leaf[np.arange(len(arms)), arms], contexts)
