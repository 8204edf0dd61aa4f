"""Whole runs, compiled: a loop over the segments between trainings, inside it one over rounds. No Python a round."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from neuralucb.history import History, append, empty
from neuralucb.policy import Belief, Policy
from neuralucb.problems.problem import Problem, Round
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.schedules import Schedule, learning_rounds, remembered

__all__ = ["Outcome", "Simulation", "State", "Trace", "draw_rounds", "prepare", "simulate"]


class Trace(NamedTuple):
    """What happened, round by round."""

    arm: jax.Array
    """[T] arm played"""
    regret: jax.Array
    """[T] expected reward of the best arm minus that of the arm played"""
    diverged_at: jax.Array
    """the first round, from 1, by which training or a score was not finite or the loss exploded; 0 if never"""
    loss: jax.Array
    """training loss after the last training; NaN if none"""


class Outcome(NamedTuple):
    """A whole run: what happened, and what is believed at the end."""

    trace: Trace
    belief: Belief


class State(NamedTuple):
    """A run between two segments: all it takes to go on."""

    world: Any
    belief: Belief
    contexts: Any
    rewards: jax.Array
    trace: Trace


class Simulation(NamedTuple):
    """A run in pieces, for those who want to see progress between them."""

    begin: Callable[[jax.Array, Any], State]
    """key, the problem's data -> State"""
    advance: Callable[[jax.Array, Any, State, Any, Any], State]
    """key, data, state, first segment, last (exclusive) -> State; all lanes of a `vmap` share data and segments"""
    ends: tuple[int, ...]
    """the last round of each segment"""


def simulate(key: jax.Array, policy: Policy, problem: Problem, *, rounds: int, schedule: Schedule) -> Outcome:
    """One whole run: its trace and its final belief. Pure; compile it with `jit`, batch it with `vmap`.

    Compiled by you, a policy with a float64 design needs `with jax.enable_x64(True):` around compiling and calling.
    """

    def whole(key: jax.Array) -> Outcome:
        run = prepare(policy, problem, rounds=rounds, schedule=schedule)
        data = jax.device_put(problem.data)  # NumPy arrays cannot be indexed by traced rows
        end = run.advance(key, data, run.begin(key, data), 0, len(run.ends))
        return Outcome(end.trace, end.belief)

    return exact(whole)(key)


def draw_rounds(key: jax.Array, problem: Problem, *, rounds: int) -> Round:
    """All rounds that a run with this key meets, with a leading axis of rounds: contexts, expected rewards, noise."""
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}.")
    keys, data = _Keys(*random.split(key, 5)), jax.device_put(problem.data)
    world = problem.init(keys.world, data)

    def draw(t: jax.Array) -> Round:
        return problem.draw(random.fold_in(keys.rounds, t), data, world, t)

    return jax.vmap(draw)(jnp.arange(rounds, dtype=jnp.int32))


def prepare(policy: Policy, problem: Problem, *, rounds: int, schedule: Schedule) -> Simulation:
    """The run as a beginning and a way to advance by segments."""
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}.")
    learns = learning_rounds(schedule, rounds=rounds)
    ends = [int(t) for t in learns]
    if not ends or ends[-1] < rounds:
        ends.append(rounds)
    starts = jnp.asarray([0, *ends[:-1]], dtype=jnp.int32)
    stops = jnp.asarray(ends, dtype=jnp.int32)
    kept = remembered(schedule, ends)
    rows = jnp.asarray(np.cumsum(kept) - kept, dtype=jnp.int32)  # of the history, at which each segment begins
    lasts = jnp.asarray(np.cumsum(kept) - 1, dtype=jnp.int32)

    def begin(key: jax.Array, data: Any) -> State:
        keys = _Keys(*random.split(key, 5))
        world = problem.init(keys.world, data)
        example = jax.eval_shape(problem.draw, keys.rounds, data, world, jnp.int32(0)).contexts
        one_arm = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), example)
        room = empty(one_arm, capacity=rounds)
        trace = Trace(
            jnp.zeros(rounds, jnp.int32),
            jnp.zeros(rounds, jnp.float32),
            jnp.int32(0),
            jnp.full((), jnp.nan, jnp.float32),
        )
        return State(world, policy.init(keys.init), room.contexts, room.rewards, trace)

    def play(keys: "_Keys", data: Any, index: jax.Array, t: jax.Array, state: State) -> State:
        now = problem.draw(random.fold_in(keys.rounds, t), data, state.world, t)
        choice = policy.select(random.fold_in(keys.select, t), state.belief, now.contexts)
        context = jax.tree.map(lambda leaf: leaf[choice.arm], now.contexts)
        reward = now.expected[choice.arm] + now.noise
        belief = policy.observe(state.belief, context, reward)
        row = jnp.minimum(rows[index] + t - starts[index], lasts[index])  # where rounds are forgotten, the next is put
        history = append(History(state.contexts, state.rewards, row, t), context, reward)
        regret = jnp.maximum(now.expected.max() - now.expected[choice.arm], 0)  # compiled apart they may round apart
        trace = state.trace._replace(
            arm=state.trace.arm.at[t].set(choice.arm), regret=state.trace.regret.at[t].set(regret)
        )
        trace = _mark(trace, ~jnp.isfinite(choice.score).all(), t + 1)
        return State(state.world, belief, history.contexts, history.rewards, trace)

    def learn(keys: "_Keys", index: jax.Array, state: State) -> State:
        t = stops[index]
        history = History(state.contexts, state.rewards, lasts[index] + 1, t)
        belief, info = policy.learn(random.fold_in(keys.learn, t), state.belief, history)
        trace = _mark(state.trace, info.diverged, t)._replace(loss=info.loss.astype(jnp.float32))
        return state._replace(belief=belief, trace=trace)

    def advance(key: jax.Array, data: Any, state: State, first: Any, last: Any) -> State:
        keys = _Keys(*random.split(key, 5))

        def segment(index: jax.Array, state: State) -> State:
            state = lax.fori_loop(
                starts[index], stops[index], lambda t, inner: play(keys, data, index, t, inner), state
            )
            if len(learns) == len(ends):
                return learn(keys, index, state)
            return lax.cond(index < len(learns), lambda inner: learn(keys, index, inner), lambda inner: inner, state)

        return lax.fori_loop(jnp.int32(first), jnp.int32(last), segment, state)

    return Simulation(begin, advance, tuple(ends))


class _Keys(NamedTuple):
    """One key for each use. World and rounds depend on the seed alone: every algorithm meets the same problem."""

    world: jax.Array
    rounds: jax.Array
    init: jax.Array
    select: jax.Array
    learn: jax.Array


def _mark(trace: Trace, diverged: jax.Array, t: jax.Array) -> Trace:
    return trace._replace(diverged_at=jnp.where((trace.diverged_at == 0) & diverged, t, trace.diverged_at))
