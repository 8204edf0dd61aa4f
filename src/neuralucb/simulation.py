"""Whole runs, compiled: a loop over the segments between trainings, and inside it one over rounds. No Python runs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.designs import has_drifted
from neuralucb.history import History, append, empty
from neuralucb.policy import Belief, Policy, remember
from neuralucb.problems.problem import Problem, Round, check_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.records import brief
from neuralucb.schedules import Schedule, learning_rounds, read_schedule, remembered, segment_ends

__all__ = [
    "Detail",
    "Outcome",
    "Simulation",
    "State",
    "Trace",
    "draw_round",
    "draw_rounds",
    "draw_world",
    "prepare",
    "simulate",
]


class Detail(NamedTuple):
    """What else happened, round by round; kept on request.

    Example:
        >>> import jax, neuralucb
        >>> policy, problem = neuralucb.build("lin-ucb", dim=3), neuralucb.synthetic("h1", dim=3)
        >>> outcome = neuralucb.simulate(jax.random.key(0), policy, problem, rounds=20, schedule="10", detailed=True)
        >>> outcome.trace.detail.reward.shape
        (20,)
    """

    reward: jax.Array
    """[T] reward observed, noise included"""
    propensity: jax.Array
    """[T] how likely the arm played was, before the key was drawn"""
    loss: jax.Array
    """[T] training loss after the training that followed the round; NaN where none did"""


@brief
class Trace(NamedTuple):
    """What happened, round by round.

    Example:
        >>> import jax, neuralucb
        >>> policy, problem = neuralucb.build("lin-ucb", dim=3), neuralucb.synthetic("h1", dim=3)
        >>> outcome = neuralucb.simulate(jax.random.key(0), policy, problem, rounds=20, schedule="10")
        >>> outcome.trace.arm.shape, int(outcome.trace.diverged_at)
        ((20,), 0)
    """

    arm: jax.Array
    """[T] arm played"""
    regret: jax.Array
    """[T] expected reward of the best arm minus that of the arm played"""
    diverged_at: jax.Array
    """the first round, from 1, by which a score was not finite, training diverged or Z⁻¹ was lost; 0 if none was"""
    loss: jax.Array
    """training loss after the last training; NaN if none"""
    detail: Detail | None = None
    """rewards, propensities and losses; None unless they were asked for"""


@brief
class Outcome(NamedTuple):
    """A whole run: what happened, and what is believed at the end.

    Example:
        >>> import jax, neuralucb
        >>> policy, problem = neuralucb.build("lin-ucb", dim=3), neuralucb.synthetic("h1", dim=3)
        >>> outcome = neuralucb.simulate(jax.random.key(0), policy, problem, rounds=20, schedule="10")
        >>> contexts = jax.numpy.ones((4, 3), "float32")
        >>> choice = policy.select(jax.random.key(1), outcome.belief, contexts)  # go on from there
    """

    trace: Trace
    belief: Belief


@brief
class State(NamedTuple):
    """A run between two segments: all it takes to continue."""

    world: Any
    belief: Belief
    contexts: Any
    rewards: jax.Array
    trace: Trace


@brief
class Simulation(NamedTuple):
    """A run in pieces, for callers that show progress between them."""

    begin: Callable[[jax.Array, Any], State]
    """key, the problem's data -> State"""
    advance: Callable[[jax.Array, Any, State, Any, Any], State]
    """key, data, state, first segment, last (exclusive) -> State; all lanes of a `vmap` share data and segments"""
    ends: tuple[int, ...]
    """the last round of each segment"""


def simulate(
    key: jax.Array,
    policy: Policy,
    problem: Problem,
    *,
    rounds: int,
    schedule: str | Schedule,
    detailed: bool = False,
) -> Outcome:
    """Play one whole run. Pure; compile it with `jit`, batch it with `vmap`.

    Compiled by you, a policy with a float64 design needs `with jax.enable_x64(True):` around compiling and calling.

    Args:
        key: The seed of everything: the problem, its rounds, the policy's start, choices and trainings.
        policy: What plays; see `build`.
        problem: What is played; see `synthetic` and `labelled`.
        rounds: T, at least 1.
        schedule: After which rounds the policy learns, such as "50" or "10:500,50"; see `read_schedule`.
        detailed: Whether the trace also keeps every reward, propensity and training loss, as `trace.detail`.

    Returns:
        The trace of the run, and the final belief.

    Raises:
        InputError: If rounds is below 1, the schedule cannot be read, or the problem does not give the arms that it
            promises.

    Example:
        >>> import jax, neuralucb
        >>> policy, problem = neuralucb.build("lin-ucb", dim=4), neuralucb.synthetic("h1", dim=4, arms=3)
        >>> trace, belief = simulate(jax.random.key(0), policy, problem, rounds=20, schedule="10")
        >>> trace.regret.shape
        (20,)
    """

    check_problem(problem)

    def run(key: jax.Array) -> Outcome:
        parts = prepare(policy, problem, rounds=rounds, schedule=schedule, detailed=detailed)
        data = jax.device_put(problem.data)  # NumPy arrays cannot be indexed by traced rows
        end = parts.advance(key, data, parts.begin(key, data), 0, len(parts.ends))
        return Outcome(end.trace, end.belief)

    return exact(run)(key)


def draw_rounds(key: jax.Array, problem: Problem, *, rounds: int) -> Round:
    """All rounds that a run with this key meets, with a leading axis of rounds: contexts, expected rewards, noise."""
    _check_rounds(rounds)
    data = jax.device_put(problem.data)
    world = draw_world(key, problem, data)
    return jax.vmap(lambda t: draw_round(key, problem, data, world, t))(jnp.arange(rounds, dtype=jnp.int32))


def draw_world(key: jax.Array, problem: Problem, data: Any) -> Any:
    """The world that a run with this key meets."""
    return problem.init(_Keys(*random.split(key, 5)).world, data)


def draw_round(key: jax.Array, problem: Problem, data: Any, world: Any, t: jax.Array) -> Round:
    """Round t (from 0) that a run with this key meets in its world."""
    return problem.draw(random.fold_in(_Keys(*random.split(key, 5)).rounds, t), data, world, t)


def prepare(
    policy: Policy, problem: Problem, *, rounds: int, schedule: str | Schedule, detailed: bool = False
) -> Simulation:
    """The run as a beginning and a way to advance by segments, each of which ends with a training.

    The last segment ends without one if the schedule has none after the last round. `detailed` is static: without it
    the program is compiled as if it did not exist.
    """
    _check_rounds(rounds)
    phases = read_schedule(schedule)
    trainings, ends = learning_rounds(phases, rounds=rounds), segment_ends(phases, rounds=rounds)
    segments = _segments(ends, remembered(phases, ends))

    def begin(key: jax.Array, data: Any) -> State:
        keys = _Keys(*random.split(key, 5))
        world = problem.init(keys.world, data)
        example = jax.eval_shape(problem.draw, keys.rounds, data, world, jnp.int32(0)).contexts
        one_arm = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), example)
        room = empty(one_arm, capacity=rounds)
        return State(world, policy.init(keys.init), room.contexts, room.rewards, _empty_trace(rounds, detailed))

    def play(keys: "_Keys", data: Any, segment: "_Segments", t: jax.Array, state: State) -> State:
        now = problem.draw(random.fold_in(keys.rounds, t), data, state.world, t)  # Algorithm 1, line 5
        choice = policy.select(random.fold_in(keys.select, t), state.belief, now.contexts)
        context = jax.tree.map(lambda leaf: leaf[choice.arm], now.contexts)
        reward = now.expected[choice.arm] + now.noise  # Algorithm 1, line 10; Algorithm 3, line 6
        everything = jnp.ones(now.expected.shape, dtype=bool)
        kept = remember(policy, state.belief, now.contexts, everything, choice)
        belief = policy.observe(state.belief, kept, reward)
        # where rounds are forgotten, each is written over the one before
        row = jnp.minimum(segment.first_row + t - segment.start, segment.last_row)
        history = append(History(state.contexts, state.rewards, row, t), context, reward)
        regret = jnp.maximum(now.expected.max() - now.expected[choice.arm], 0)  # compiled apart they may round apart
        regret = regret if problem.unit == 1 else jnp.float32(problem.unit) * regret
        trace = state.trace._replace(  # expected rewards of a user's problem may be float64
            arm=state.trace.arm.at[t].set(choice.arm),
            regret=state.trace.regret.at[t].set(regret.astype(jnp.float32)),
        )
        if trace.detail is not None:
            rewards = trace.detail.reward.at[t].set(jnp.float32(problem.unit) * reward.astype(jnp.float32))
            propensities = trace.detail.propensity.at[t].set(choice.propensity[choice.arm].astype(jnp.float32))
            trace = trace._replace(detail=trace.detail._replace(reward=rewards, propensity=propensities))
        trace = _mark(trace, ~jnp.isfinite(choice.score).all(), t + 1)
        return State(state.world, belief, history.contexts, history.rewards, trace)

    def learn(keys: "_Keys", segment: "_Segments", state: State) -> State:
        t = segment.stop
        history = History(state.contexts, state.rewards, segment.last_row + 1, t)
        belief, info = policy.learn(random.fold_in(keys.learn, t), state.belief, history)
        trace = _mark(state.trace, info.diverged, t)._replace(loss=info.loss.astype(jnp.float32))
        if trace.detail is not None:
            losses = trace.detail.loss.at[t - 1].set(trace.loss)
            trace = trace._replace(detail=trace.detail._replace(loss=losses))
        return state._replace(belief=belief, trace=trace)

    def advance(key: jax.Array, data: Any, state: State, first: Any, last: Any) -> State:
        keys = _Keys(*random.split(key, 5))

        def play_segment(index: jax.Array, state: State) -> State:
            segment = jax.tree.map(lambda column: column[index], segments)
            # from Algorithm 1, line 4 to Algorithm 1, line 14 (Algorithm 3, line 4 to Algorithm 3, line 10): all rounds
            state = lax.fori_loop(
                segment.start, segment.stop, lambda t, inner: play(keys, data, segment, t, inner), state
            )
            state = state._replace(trace=_mark(state.trace, has_drifted(state.belief), segment.stop))
            if len(trainings) == len(ends):
                return learn(keys, segment, state)
            trains = index < len(trainings)
            return lax.cond(trains, lambda inner: learn(keys, segment, inner), lambda inner: inner, state)

        return lax.fori_loop(jnp.int32(first), jnp.int32(last), play_segment, state)

    return Simulation(begin, advance, tuple(ends))


class _Keys(NamedTuple):
    """One key per use. World and rounds depend on the seed alone: every algorithm meets the same problem."""

    world: jax.Array
    rounds: jax.Array
    init: jax.Array
    select: jax.Array
    learn: jax.Array


class _Segments(NamedTuple):
    """The rounds up to each training, and where the history keeps them: one entry per segment, or those of one."""

    start: jax.Array
    """its first round, from 0"""
    stop: jax.Array
    """the round after its last; as many rounds have then been played"""
    first_row: jax.Array
    """row of the history that its first round takes"""
    last_row: jax.Array
    """row that its last round takes"""


def _segments(ends: Sequence[int], kept: np.ndarray) -> _Segments:
    """Segments by their last rounds, and how many rounds of each are remembered."""
    rows = np.cumsum(kept)
    columns = ([0, *ends[:-1]], ends, rows - kept, rows - 1)
    return _Segments(*(jnp.asarray(column, dtype=jnp.int32) for column in columns))


def _check_rounds(rounds: int) -> None:
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}.")


def _empty_trace(rounds: int, detailed: bool) -> Trace:
    trace = Trace(
        jnp.zeros(rounds, jnp.int32), jnp.zeros(rounds, jnp.float32), jnp.int32(0), jnp.full((), jnp.nan, jnp.float32)
    )
    return trace._replace(detail=_empty_detail(rounds)) if detailed else trace


def _empty_detail(rounds: int) -> Detail:
    zeros = jnp.zeros(rounds, jnp.float32)
    return Detail(zeros, zeros, jnp.full(rounds, jnp.nan, jnp.float32))


def _mark(trace: Trace, diverged: jax.Array, t: jax.Array) -> Trace:
    return trace._replace(diverged_at=jnp.where((trace.diverged_at == 0) & diverged, t, trace.diverged_at))
