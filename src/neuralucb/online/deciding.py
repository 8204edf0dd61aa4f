"""Deciding: a choice is made from the belief of the moment, kept, and only then answered."""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from neuralucb.exploring import deterministic
from neuralucb.online.arms import ArmId
from neuralucb.online.decisions import Decision
from neuralucb.online.programs import each_leaf, pad_arms
from neuralucb.online.rewards import Moments
from neuralucb.online.state import Event
from neuralucb.policy import Choice

if TYPE_CHECKING:
    from neuralucb.online.bandit import OnlineBandit

__all__ = ["decide", "decide_many"]

Ids = tuple[ArmId, ...] | None


def decide(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> Decision:
    """One decision over contexts [K, …]."""
    if bandit.settings["count_pending"]:
        one = jax.tree.map(lambda leaf: leaf[None], contexts)
        (decision,) = _in_turn(bandit, *pad_arms(one, available[None]), ids, len(available))
        return decision
    with bandit._lock:
        now = _Moment(bandit._give(1), bandit._state.version, bandit._state.moments)
        belief = bandit._state.belief
    choice = bandit._programs.choose(now.first, belief, contexts, available)
    arm = int(choice.arm)
    picked = each_leaf(lambda leaf: leaf[arm : arm + 1].copy(), contexts)  # the caller may use the array again
    columns = Choice._make(np.asarray(leaf)[None] for leaf in choice)
    (decision,) = _keep(bandit, now, ids, columns, available[None], picked)
    return decision


def decide_many(bandit: "OnlineBandit", contexts: Any, ids: Ids, available: np.ndarray) -> list[Decision]:
    """Decisions over contexts [B, K, …]; K is padded where arms have ids, and may come and go."""
    arms = available.shape[1]
    if ids is not None:
        contexts, available = pad_arms(contexts, available)
    if bandit.settings["count_pending"]:
        return _in_turn(bandit, contexts, available, ids, arms)
    with bandit._lock:
        now = _Moment(bandit._give(len(available)), bandit._state.version, bandit._state.moments)
        belief = bandit._state.belief
    choice = bandit._programs.choose_many(now.first, belief, contexts, available)
    return _keep(bandit, now, ids, _cut(choice, arms), available[:, :arms], _rows(contexts, choice.arm))


class _Moment(NamedTuple):
    """When a choice is made: the number of its first decision, the belief's version, the scale of rewards."""

    first: int
    version: int
    moments: Moments


def _in_turn(bandit: "OnlineBandit", contexts: Any, available: np.ndarray, ids: Ids, arms: int) -> list[Decision]:
    """Each knows of those before it, and of all that wait: so nobody else may decide meanwhile."""
    with bandit._lock:
        now = _Moment(bandit._give(len(available)), bandit._state.version, bandit._state.moments)
        supposed, choice = bandit._programs.choose_in_turn(now.first, bandit._state.supposed(), contexts, available)
        picked = _rows(contexts, choice.arm)
        decisions = _keep(bandit, now, ids, _cut(choice, arms), available[:, :arms], picked)
        bandit._state.suppose(supposed)
        return decisions


def _keep(
    bandit: "OnlineBandit", now: _Moment, ids: Ids, choice: Any, available: np.ndarray, picked: Any
) -> list[Decision]:
    """Make decisions durable, then known."""
    state = bandit._state
    if state.normalize:
        choice = _in_your_scale(now.moments, choice)
    mean = np.where(available, choice.mean, -np.inf)
    greedy, rows = mean.argmax(-1).astype(np.int32), np.arange(len(mean))
    greedy = np.where(mean[rows, choice.arm] == mean[rows, greedy], choice.arm, greedy)  # a tie is no exploration
    chance = choice.propensity[rows, choice.arm].astype(np.float64)
    chance = np.where(deterministic(chance, available.sum(-1)), np.nan, chance)
    fields = {"first": now.first, "version": now.version, "time": time.time(), "arms": ids}
    arrays: dict[str, np.ndarray] = {
        "chosen": choice.arm, "greedy": greedy, "mean": choice.mean, "width": choice.width, "score": choice.score,
        "exploration": choice.exploration, "propensity": chance, "propensities": choice.propensity,
        **state.context_arrays(picked),
    }  # fmt: skip
    for array in arrays.values():
        array.flags.writeable = False  # decisions show the ledger's own
    with bandit._lock:
        bandit._do(Event("decide", fields, arrays))
        asked = state.ledger.pending[now.first].asked
    return [asked.decision(row, bandit.name) for row in range(len(available))]


def _in_your_scale(moments: Moments, choice: Choice) -> Choice:
    """A choice in the caller's scale of rewards."""
    kind, scale = choice.mean.dtype, moments.deviation
    return choice._replace(
        mean=(choice.mean * scale + moments.mean).astype(kind),
        width=(choice.width * scale).astype(kind),
        score=(choice.score * scale + moments.mean).astype(kind),
    )


def _cut(choice: Choice, arms: int) -> Choice:
    """Without the arms that padding added."""
    by_arm = {name: getattr(choice, name)[:, :arms] for name in ("mean", "width", "score", "propensity")}
    return choice._replace(**by_arm)


def _rows(contexts: Any, arms: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[np.arange(len(arms)), arms], contexts)
