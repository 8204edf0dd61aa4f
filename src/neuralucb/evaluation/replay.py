"""Replay: a policy that learns along the log, from the decisions where it takes the logged arm (Li et al. 2011)."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.evaluation.decisions import Decisions, Part, decisions_of, propensities
from neuralucb.evaluation.records import Estimate, Evaluation, check_level, with_interval
from neuralucb.history import History, append, empty
from neuralucb.logs.batches import contexts_of, one_context
from neuralucb.logs.formats import Log
from neuralucb.policy import Belief, Noted, Policy
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.records import brief
from neuralucb.schedules import Schedule, learning_rounds, read_schedule

__all__ = ["Replay", "replay", "with_replay"]


@brief
class Replay(NamedTuple):
    """The estimate by replay, and how much of the log it used.

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> replayed = replay(jax.random.key(0), policy, log, schedule="100")
        >>> replayed.estimate.method
        'replay'
    """

    estimate: Estimate
    accepted: int
    decisions: int
    """with a reward, in the part of the log that was replayed"""
    deterministic: int
    """left out with `skip_deterministic`: they have a reward, but the choice was deterministic"""
    belief: Belief
    """what the policy believes at the end"""


class _Survey(NamedTuple):
    """What must be known of a log before it is replayed."""

    lowest: float
    """the smallest p/s"""
    decisions: int
    stand_for: float
    """how many decisions those in use stand for"""
    deterministic: int
    context: Any
    """the shapes and types of one context"""


class _State(NamedTuple):
    belief: Belief
    contexts: Any
    rewards: jax.Array
    accepted: jax.Array
    """int32"""
    total: jax.Array
    squares: jax.Array
    unsound_at: jax.Array
    """int32, decisions accepted when training first diverged or a score was first not finite, plus 1; 0 if never"""


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
    schedule: str | Schedule,
    level: float = 0.95,
    begin: int = 0,
    end: int | None = None,
    skip_deterministic: bool = False,
) -> Replay:
    """Estimate the reward per decision of a policy while it learns, from the decisions where it takes the logged arm.

    Li et al. need arms logged uniformly. Where they were not, a decision that agrees is accepted with probability
    c s/p, s the decisions that it stands for and c the smallest p/s (Dudík et al. 2012). Every decision then has the
    same chance c to be accepted for each it stands for, whatever the policy: unbiased, but costly where c is small.

    Args:
        key: Randomness of the policy's start, choices and training, and of what is accepted.
        policy: The policy to value; it starts knowing nothing.
        log: The log of another policy.
        schedule: When the policy learns, in accepted decisions, such as "100"; see `read_schedule`.
        level: The level of the interval.
        begin: The first decision to use, counted from 0.
        end: The first decision to leave out; None for none.
        skip_deterministic: Leave deterministic decisions out, instead of refusing the log.

    Returns:
        The estimate, how many decisions were accepted, and what the policy believes at the end.

    Raises:
        InputError: `level` is out of range, the schedule cannot be read, a decision is deterministic, fewer than two
            decisions are accepted, or so many that the propensities must be wrong.
        UnsoundError: Training diverged, or a score of the policy is not finite.

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> replayed = replay(jax.random.key(0), policy, log, schedule="100")
        >>> 0 < replayed.accepted < replayed.decisions
        True
    """
    check_level(level)
    phases = read_schedule(schedule)
    part = Part(log, begin, end, True, skip_deterministic)
    key_init, key_rounds = random.split(key)
    survey = _survey(part)
    expected = survey.stand_for * survey.lowest
    # six standard deviations above what is expected: a log with true propensities does not get there
    capacity = int(expected + 6 * np.sqrt(expected) + 10)
    learns = np.zeros(capacity + 1, dtype=bool)
    learns[learning_rounds(phases, rounds=capacity)] = True
    history = empty(survey.context, capacity=capacity + 1)
    zero: Any = np.zeros((), np.float64)
    state = _State(policy.init(key_init), history.contexts, history.rewards, jnp.int32(0), zero, zero, jnp.int32(0))
    for number, decisions in enumerate(decisions_of(part)):
        key_batch = random.fold_in(key_rounds, number)
        state = _walk(policy, key_batch, state, np.float32(survey.lowest), learns, _rows(decisions))
    count = int(state.accepted)
    if state.unsound_at:
        raise UnsoundError(
            f"{log.path}: replay: after {int(state.unsound_at) - 1} accepted decisions training diverged, or a score "
            "was not finite, so that there is no estimate; try a smaller step_size, or an algorithm that learns the "
            "units of contexts and rewards, such as neural-mix."
        )
    if count == capacity:
        raise InputError(
            f"{log.path}: replay accepted more than its propensities allow, {expected:.0f} of {survey.decisions} "
            "decisions: they are wrong; log the probabilities that the policy really had."
        )
    if count < 2:
        raise InputError(
            f"{log.path}: replay accepted {count} of {survey.decisions} decisions, too few for an estimate; the "
            f"smallest propensity over weight is {survey.lowest:g}, and every decision is accepted with that "
            "probability."
        )
    mean = float(state.total) / count
    error = float(np.sqrt(max(float(state.squares) / count - mean**2, 0.0) / (count - 1)))
    estimate = with_interval("replay", mean, error, count, level=level)
    return Replay(estimate, count, survey.decisions, survey.deterministic, state.belief)


def with_replay(evaluation: Evaluation, replayed: Replay) -> Evaluation:
    """Add the estimate by replay to an evaluation, with a note, since it is about a policy that learns.

    Args:
        evaluation: The estimates for the frozen policy.
        replayed: What `replay` returned for the same policy and log.

    Returns:
        The evaluation with one more estimate and one more note.

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> from neuralucb.evaluation import evaluate
        >>> key = jax.random.key(0)
        >>> made = evaluate(policy, policy.init(key), log, methods=["ips"])
        >>> [each.method for each in with_replay(made, replay(key, policy, log, schedule="100")).estimates]
        ['ips', 'replay']
    """
    note = (
        f"replay learned along the whole log, starting from nothing, and accepted {replayed.accepted} of "
        f"{replayed.decisions} decisions"
    )
    if replayed.deterministic:
        note += f"; {replayed.deterministic} deterministic decisions were left out"
    return evaluation._replace(estimates=(*evaluation.estimates, replayed.estimate), notes=(*evaluation.notes, note))


@exact
@partial(jax.jit, static_argnums=0)
def _walk(policy: Policy, key: jax.Array, state: _State, lowest: jax.Array, learns: jax.Array, rows: _Rows) -> _State:
    """Walk through one batch, decision by decision."""

    def one(state: _State, at: tuple[jax.Array, _Rows]) -> tuple[_State, None]:
        key_row, row = at
        key_select, key_accept, key_learn = random.split(key_row, 3)
        contexts = contexts_of(row.shared, row.own)
        choice = policy.select(key_select, state.belief, contexts, row.available)
        lucky = random.uniform(key_accept, dtype=jnp.float32) * row.ratio <= lowest
        accept = row.use & (choice.arm == row.arm) & lucky & (state.accepted + 1 < len(learns))
        context = one_context(row.shared, row.own, row.arm)
        history = append(History(state.contexts, state.rewards, state.accepted, state.accepted), context, row.reward)
        accepted = state.accepted + accept.astype(jnp.int32)

        def observe(belief: Belief) -> Belief:
            if policy.note is None:
                return policy.observe(belief, context, row.reward)
            # accepted decisions are those in which the policy chose the arm of the log
            note = policy.note.take(belief, contexts, row.available, choice)
            return policy.observe(belief, Noted(context, note), row.reward)

        def learn(belief: Belief) -> tuple[Belief, jax.Array]:
            seen = History(history.contexts, history.rewards, accepted, accepted)
            trained, info = policy.learn(key_learn, belief, seen)
            return trained, info.diverged

        def skip(belief: Belief) -> tuple[Belief, jax.Array]:
            return belief, jnp.zeros((), bool)

        belief = lax.cond(accept, observe, lambda belief: belief, state.belief)
        belief, diverged = lax.cond(accept & learns[accepted], learn, skip, belief)
        unsound = diverged | (row.use & (~jnp.isfinite(choice.score) & row.available).any())
        unsound_at = jnp.where((state.unsound_at == 0) & unsound, accepted + 1, state.unsound_at)
        kept = jnp.where(accept, row.reward, 0).astype(state.total.dtype)
        total, squares = state.total + kept, state.squares + kept**2
        return _State(belief, history.contexts, history.rewards, accepted, total, squares, unsound_at), None

    return lax.scan(one, state, (random.split(key, len(rows.arm)), rows))[0]


def _survey(part: Part) -> _Survey:
    """A first pass: everything that must be known before the walk."""
    lowest, used, stand_for, context, without_reward, deterministic = np.inf, 0, 0.0, None, 0, 0
    for decisions in decisions_of(part):
        batch, use = decisions.batch, decisions.use
        without_reward += decisions.without_reward
        deterministic += decisions.deterministic
        lowest = min(lowest, _ratios(decisions).min(initial=np.inf))
        used, stand_for = used + int(use.sum()), stand_for + float(batch.weight[use].sum())
        if context is None:
            context = jax.eval_shape(one_context, batch.shared[0], batch.own[0], batch.arm[0])
    if not used:
        raise InputError(
            f"{part.log.path} has no decision to replay in this part: {without_reward} have no reward, "
            f"{deterministic} were deterministic."
        )
    return _Survey(float(lowest), used, stand_for, deterministic, context)


def _ratios(decisions: Decisions) -> np.ndarray:
    """p/s of the decisions in use."""
    return propensities(decisions.batch)[decisions.use] / decisions.batch.weight[decisions.use]


def _rows(decisions: Decisions) -> _Rows:
    batch, use = decisions.batch, decisions.use
    reward, ratios = np.zeros(len(use), np.float32), np.ones(len(use), np.float32)
    reward[use], ratios[use] = batch.reward[use], _ratios(decisions)
    return _Rows._make((batch.shared, batch.own, batch.available, batch.arm, reward, ratios, use))
