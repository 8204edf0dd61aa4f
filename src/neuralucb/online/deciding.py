"""Deciding: a choice is made from the belief of the moment, kept, and only then answered."""

import time
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from neuralucb.online.arms import ArmId
from neuralucb.online.decisions import Decision
from neuralucb.online.state import Event, State
from neuralucb.policy import Choice

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["decide", "decide_many"]

Ids = tuple[ArmId, ...] | None


def decide(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> Decision:
    """One decision over contexts [K, …]."""
    if bandit.settings["count_pending"]:
        (decision,) = _in_turn(bandit, jax.tree.map(lambda leaf: leaf[None], contexts), ids, available[None])
        return decision
    with bandit._lock:
        number, belief, version = bandit._give(1), bandit._state.belief, bandit._state.version
    choice = bandit._programs.choose(number, belief, contexts, available)
    arm = int(choice.arm)
    picked = jax.tree.map(lambda leaf: leaf[arm : arm + 1].copy(), contexts)  # the caller may use the array again
    columns = Choice._make(np.asarray(leaf)[None] for leaf in choice)
    (decision,) = _keep(bandit, number, version, ids, columns, available[None], picked)
    return decision


def decide_many(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> list[Decision]:
    """Decisions over contexts [B, K, …]."""
    if bandit.settings["count_pending"]:
        return _in_turn(bandit, contexts, ids, available)
    with bandit._lock:
        first, belief, version = bandit._give(len(available)), bandit._state.belief, bandit._state.version
    choice = bandit._programs.choose_many(first, belief, contexts, available)
    return _keep(bandit, first, version, ids, choice, available, _rows(contexts, choice.arm))


def _in_turn(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> list[Decision]:
    """Each knows of those before it, and of all that wait: so nobody else may decide meanwhile."""
    with bandit._lock:
        first, version = bandit._give(len(available)), bandit._state.version
        supposed, choice = bandit._programs.choose_in_turn(first, bandit._state.supposed(), contexts, available)
        decisions = _keep(bandit, first, version, ids, choice, available, _rows(contexts, choice.arm))
        bandit._state.suppose(supposed)
        return decisions


def _keep(
    bandit: "OnlineBandit", first: int, version: int, ids: Ids, choice: Choice, available: np.ndarray, picked: Any
) -> list[Decision]:
    """Make decisions durable, then known."""
    state = bandit._state
    choice = _in_your_scale(state, choice)
    greedy = np.where(available, choice.mean, -np.inf).argmax(-1).astype(np.int32)
    fields = {"first": first, "version": version, "time": time.time(), "arms": ids}
    arrays = {
        "chosen": choice.arm, "greedy": greedy, "mean": choice.mean, "width": choice.width, "score": choice.score,
        "exploration": choice.exploration, **state.context_arrays(picked),
    }  # fmt: skip
    for array in arrays.values():
        array.flags.writeable = False  # decisions show the ledger's own
    with bandit._lock:
        bandit._do(Event("decide", fields, arrays))
        asked = state.ledger.pending[first].asked
    return [asked.decision(row, bandit.name) for row in range(len(available))]


def _in_your_scale(state: State, choice: Choice) -> Choice:
    """A choice in the caller's scale of rewards."""
    if not state.normalize:
        return choice
    shift, scale = state.moments.mean, state.moments.deviation
    kind = choice.mean.dtype
    return choice._replace(
        mean=(choice.mean * scale + shift).astype(kind),
        width=(choice.width * scale).astype(kind),
        score=(choice.score * scale + shift).astype(kind),
    )


def _rows(contexts: Any, arms: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[np.arange(len(arms)), arms], contexts)
