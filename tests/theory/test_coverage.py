"""Coverage: measuring changes no run, and finds what a replay round by round finds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from numpy.testing import assert_allclose

from neuralucb import build, synthetic, theory
from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.history import append, empty
from neuralucb.simulation import draw_rounds, simulate

SMALL = {"width": 8, "steps": 10, "batch_size": 8, "step_size": 0.02}


def covered(**options):
    policy = build("neural-ucb", dim=4, **PAPER | SMALL | options)
    problem, when = synthetic("h1", dim=4), "20"
    return policy, theory.measure_coverage(policy, problem, rounds=60, schedule=when, seeds=[3, 4])


def test_watching_changes_nothing_and_notes_what_was_predicted():
    policy, found = covered(exploration=0.1)
    problem, when = synthetic("h1", dim=4), "20"
    with jax.enable_x64(True):
        trace = jax.jit(lambda key: simulate(key, policy, problem, rounds=60, schedule=when))(jax.random.key(4)).trace
    drawn = draw_rounds(jax.random.key(4), problem, rounds=60)
    first = policy.select(jax.random.key(0), policy.init(jax.random.split(jax.random.key(4), 5)[2]), drawn.contexts[0])
    arm = int(trace.arm[0])
    assert_allclose(found.error[1, 0, 0], abs(first.mean[arm] - drawn.expected[0, arm]), rtol=1e-4)
    assert_allclose(found.width[1, 0, 0], first.width[arm], rtol=1e-4)
    assert found.error.shape == (2, 60, 2)
    assert_allclose(found.scale, 0.1, rtol=1e-6)
    needed = found.needed_scale(0.9)
    assert_allclose((found.error <= needed * found.width * (1 + 1e-9)).mean(axis=(0, 1)), 0.9, atol=0.02)


def test_the_theoretical_scale_covers_everything_and_none_covers_nothing():
    assert (covered(confidence="theoretical")[1].share() == 1).all()
    assert (covered(exploration=0.0)[1].share() == 0).all()


ROUNDS, EVERY, SEED = 60, 20, 4


def replayed(policy, problem):
    """Arms played, and error and width of every arm in every round, from a plain loop."""
    key = random.key(SEED)
    _, _, init, select, learn = random.split(key, 5)
    drawn = draw_rounds(key, problem, rounds=ROUNDS)
    choose, observe, train = jax.jit(policy.select), jax.jit(policy.observe), jax.jit(policy.learn)
    belief = policy.init(init)
    history = empty(jax.ShapeDtypeStruct((problem.dim,), jnp.float32), capacity=ROUNDS)
    arms, errors, widths = [], [], []
    for t in range(ROUNDS):
        choice = choose(random.fold_in(select, t), belief, drawn.contexts[t])
        arm = int(choice.arm)
        arms.append(arm)
        errors.append(np.abs(choice.mean - drawn.expected[t]))
        widths.append(np.asarray(choice.width))
        context, reward = drawn.contexts[t, arm], drawn.expected[t, arm] + drawn.noise[t]
        belief, history = observe(belief, context, reward), append(history, context, reward)
        if (t + 1) % EVERY == 0:
            belief, _ = train(random.fold_in(learn, t + 1), belief, history)
    return np.asarray(arms), np.stack(errors), np.stack(widths)


def test_coverage_is_what_a_replay_of_every_round_finds():
    problem, when = synthetic("h1", dim=4), str(EVERY)
    policy = build("neural-ucb", dim=4, **PAPER | SMALL)
    found = theory.measure_coverage(policy, problem, rounds=ROUNDS, schedule=when, seeds=[SEED])
    with jax.enable_x64(True):
        trace = jax.jit(lambda key: simulate(key, policy, problem, rounds=ROUNDS, schedule=when))(
            random.key(SEED)
        ).trace
        arms, errors, widths = replayed(policy, problem)
    assert (arms == trace.arm).all()
    at = np.arange(ROUNDS)
    assert_allclose(found.error[0, :, 0], errors[at, arms], rtol=1e-3, atol=1e-5)
    assert_allclose(found.width[0, :, 0], widths[at, arms], rtol=1e-3)
    near = np.isclose(found.error[0, :, 1, None], errors, rtol=1e-3, atol=1e-5)
    near &= np.isclose(found.width[0, :, 1, None], widths, rtol=1e-3)
    assert (near.sum(axis=1) == 1).all()  # the other column is the prediction for one arm, error and width alike
    counts, fair = near.sum(axis=0), ROUNDS / problem.arms
    assert (np.abs(counts - fair) < 5 * math.sqrt(fair * (1 - 1 / problem.arms))).all()
    assert 0 < (near.argmax(axis=1) == arms).sum() < ROUNDS / 2  # drawn whatever was chosen
