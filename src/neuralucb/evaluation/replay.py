"""Replay: a policy that learns along the log, from the decisions where it would have done the same (Li et al. 2011)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.evaluation.off_policy import Usable, propensities, usable
from neuralucb.evaluation.records import Estimate, Evaluation, with_interval
from neuralucb.history import History, append, empty
from neuralucb.logs.batches import Batch, batches, contexts_of, one_context
from neuralucb.logs.formats import Log
from neuralucb.policy import Belief, Policy
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.schedules import Schedule, learning_rounds

__all__ = ["Replay", "replay", "with_replay"]


class Replay(NamedTuple):
    """What came of it: the estimate, and how much of the log was used."""

    estimate: Estimate
    accepted: int
    decisions: int
    """with a reward, in the part of the log that was replayed"""
    deterministic: int
    """left out, where that was asked for: they had a reward, but no chance in them"""
    belief: Belief
    """what the policy believes at the end"""


class _State(NamedTuple):
    belief: Belief
    contexts: Any
    rewards: jax.Array
    accepted: jax.Array
    """int32"""
    total: jax.Array
    squares: jax.Array


class _Rows(NamedTuple):
    shared: jax.Array
    own: jax.Array
    available: jax.Array
    arm: jax.Array
    reward: jax.Array
    ratio: jax.Array
    """p/s, propensity over the decisions it stands for"""
    use: jax.Array


def replay(
    key: jax.Array,
    policy: Policy,
    log: Log,
    *,
    schedule: Schedule,
    level: float = 0.95,
    begin: int = 0,
    end: int | None = None,
    skip_deterministic: bool = False,
) -> Replay:
    """The reward a decision of the policy while it learns: decisions count where it agrees with the log.

    Li et al. need arms logged uniformly. Where they were not, a decision that agrees is accepted with probability
    c s/p, s the decisions that it stands for and c the smallest p/s (Dudík et al. 2012), so that every decision has
    the same chance c to be accepted for each it stands for, whatever the policy: unbiased, and costly where c is small.

    skip_deterministic  leave decisions without chance out, instead of refusing the log
    """
    which = partial(usable, log, divides=True, skip_deterministic=skip_deterministic)
    key_init, key_rounds = random.split(key)
    lowest, decisions, stand_for, sure, one = _survey(log, begin, end, which)
    # six standard deviations above what is expected: a log with true propensities does not get there
    capacity = int(stand_for * lowest + 6 * np.sqrt(stand_for * lowest) + 10)
    learns = np.zeros(capacity + 1, dtype=bool)
    learns[learning_rounds(schedule, rounds=capacity)] = True
    belief = policy.init(key_init)
    room = empty(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), one), capacity=capacity + 1)
    zero: Any = np.zeros((), np.float64)
    state = _State(belief, room.contexts, room.rewards, jnp.int32(0), zero, zero)
    for number, batch in enumerate(batches(log, begin=begin, end=end)):
        key_batch = random.fold_in(key_rounds, number)
        state = _walk(policy, key_batch, state, np.float32(lowest), learns, _rows(batch, which(batch).use))
    count = int(state.accepted)
    if count == capacity:
        raise InputError(
            f"{log.path}: replay accepted more than its propensities allow, {stand_for * lowest:.0f} of {decisions} "
            "decisions: they are wrong; write what the policy that logged really had."
        )
    if count < 2:
        raise InputError(
            f"{log.path}: replay accepted {count} of {decisions} decisions, too few for an estimate; the smallest "
            f"propensity over weight is {lowest:g}, and every decision is accepted with that probability."
        )
    mean = float(state.total) / count
    error = float(np.sqrt(max(float(state.squares) / count - mean**2, 0.0) / (count - 1)))
    return Replay(with_interval("replay", mean, error, count, level=level), count, decisions, sure, state.belief)


def with_replay(made: Evaluation, along: Replay) -> Evaluation:
    """The evaluation with what replay says, and what that is about: not what the other methods are."""
    note = (
        f"replay learned along the whole log from nothing, and accepted {along.accepted} of {along.decisions} decisions"
    )
    if along.deterministic:
        note += f"; {along.deterministic} deterministic ones were left out"
    return made._replace(estimates=(*made.estimates, along.estimate), notes=(*made.notes, note))


@exact
@partial(jax.jit, static_argnums=0)
def _walk(policy: Policy, key: jax.Array, state: _State, lowest: jax.Array, learns: jax.Array, rows: _Rows) -> _State:
    """One batch, decision by decision."""

    def one(state: _State, at: tuple[jax.Array, _Rows]) -> tuple[_State, None]:
        key_row, row = at
        key_select, key_accept, key_learn = random.split(key_row, 3)
        choice = policy.select(key_select, state.belief, contexts_of(row.shared, row.own), row.available)
        lucky = random.uniform(key_accept, dtype=jnp.float32) * row.ratio <= lowest
        accept = row.use & (choice.arm == row.arm) & lucky & (state.accepted + 1 < len(learns))
        context = one_context(row.shared, row.own, row.arm)
        history = append(History(state.contexts, state.rewards, state.accepted, state.accepted), context, row.reward)
        accepted = state.accepted + accept.astype(jnp.int32)

        def observe(belief: Belief) -> Belief:
            return policy.observe(belief, context, row.reward)

        def learn(belief: Belief) -> Belief:
            seen = History(history.contexts, history.rewards, accepted, accepted)
            return policy.learn(key_learn, belief, seen)[0]

        belief = lax.cond(accept, observe, lambda belief: belief, state.belief)
        belief = lax.cond(accept & learns[accepted], learn, lambda belief: belief, belief)
        kept = jnp.where(accept, row.reward, 0).astype(state.total.dtype)
        total, squares = state.total + kept, state.squares + kept**2
        return _State(belief, history.contexts, history.rewards, accepted, total, squares), None

    return lax.scan(one, state, (random.split(key, len(rows.arm)), rows))[0]


def _survey(
    log: Log, begin: int, end: int | None, which: Callable[[Batch], Usable]
) -> tuple[float, int, float, int, Any]:
    """The smallest p/s, the decisions used, how many they stand for, the deterministic ones left out, one context."""
    lowest, decisions, stand_for, one, unseen, sure = np.inf, 0, 0.0, None, 0, 0
    for batch in batches(log, begin=begin, end=end):
        use, *left = which(batch)
        unseen, sure = unseen + left[0], sure + left[1]
        lowest = min(lowest, _ratio(batch, use).min(initial=np.inf))
        decisions, stand_for = decisions + int(use.sum()), stand_for + float(batch.weight[use].sum())
        one = jax.eval_shape(one_context, batch.shared[0], batch.own[0], batch.arm[0]) if one is None else one
    if not decisions:
        raise InputError(
            f"{log.path} has no decision to replay in this part: {unseen} have no reward, {sure} had no chance."
        )
    return float(lowest), decisions, stand_for, sure, one


def _ratio(batch: Batch, use: np.ndarray) -> np.ndarray:
    """p/s of the decisions used."""
    return propensities(batch)[use] / batch.weight[use]


def _rows(batch: Batch, use: np.ndarray) -> _Rows:
    reward, ratios = np.zeros(len(use), np.float32), np.ones(len(use), np.float32)
    reward[use], ratios[use] = batch.reward[use], _ratio(batch, use)
    return _Rows._make((batch.shared, batch.own, batch.available, batch.arm, reward, ratios, use))
