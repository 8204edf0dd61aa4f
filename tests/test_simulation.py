"""Whole runs: equal to playing by hand, fair to all algorithms, honest about divergence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import build
from neuralucb.designs import drift, full
from neuralucb.estimators.features import raw
from neuralucb.estimators.neural import neural
from neuralucb.estimators.ridge import ridge
from neuralucb.history import append, empty
from neuralucb.networks.network import Network
from neuralucb.problems import synthetic
from neuralucb.runtime.precision import exact
from neuralucb.simulation import prepare, simulate
from neuralucb.training import sgd

WORLD = synthetic("h1", dim=4, arms=3)
SMALL = {"width": 4, "steps": 3, "batch_size": 4, "networks": 2, "budget": 5}


def run_whole(seed, bandit, *, rounds=25, schedule="10", world=WORLD):
    with jax.enable_x64(True):
        run = jax.jit(lambda key: simulate(key, bandit, world, rounds=rounds, schedule=schedule))
        return run(jax.random.key(seed))


def test_a_run_is_what_playing_by_hand_gives():
    bandit = build("neural-ucb", dim=4, width=4, steps=3, batch_size=4)
    trace, belief = simulate(jax.random.key(2), bandit, WORLD, rounds=25, schedule="10")
    world_key, rounds_key, init_key, select_key, learn_key = jax.random.split(jax.random.key(2), 5)
    world, by_hand = WORLD.init(world_key, ()), bandit.init(init_key)
    record = empty(np.zeros(4, np.float32), capacity=25)
    learn = exact(jax.jit(bandit.learn))  # float64 around the compiled function, not inside it
    for t in range(25):
        now = WORLD.draw(jax.random.fold_in(rounds_key, t), (), world, jnp.int32(t))
        arm = bandit.select(jax.random.fold_in(select_key, t), by_hand, now.contexts).arm
        assert arm == trace.arm[t]
        assert_allclose(trace.regret[t], now.expected.max() - now.expected[arm], rtol=1e-5, atol=1e-6)
        reward = now.expected[arm] + now.noise
        by_hand = bandit.observe(by_hand, now.contexts[arm], reward)
        record = append(record, now.contexts[arm], reward)
        if (t + 1) % 10 == 0:
            by_hand, _ = learn(jax.random.fold_in(learn_key, t + 1), by_hand, record)
    for ours, theirs in zip(jax.tree.leaves(belief), jax.tree.leaves(by_hand), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_rounds_that_are_forgotten_are_not_learned_from():
    bandit = build("neural-ucb", dim=4, width=4, steps=3, batch_size=4)
    run = prepare(bandit, WORLD, rounds=13, schedule="2:4,3!")
    with jax.enable_x64(True):
        state = jax.jit(lambda key: run.advance(key, (), run.begin(key, ()), 0, len(run.ends)))(jax.random.key(5))
    _, rounds_key, *_ = jax.random.split(jax.random.key(5), 5)
    played = [
        WORLD.draw(jax.random.fold_in(rounds_key, t), (), state.world, jnp.int32(t)).contexts[int(state.trace.arm[t])]
        for t in range(13)
    ]
    kept = [0, 1, 2, 3, 5, 8, 11, 12]  # counted from 0: all of the first four, then those before a training
    assert_allclose(state.contexts[: len(kept)], np.stack([played[t] for t in kept]), rtol=1e-6)
    assert not np.asarray(state.contexts[len(kept) :]).any()


@pytest.mark.parametrize("name", ["neural-ucb", "neural-epsilon-greedy"])
def test_divergence_is_marked_and_does_not_become_arm_0_for_ever(name):
    bandit = build(name, dim=4, width=20, step_size=50.0, steps=30)
    trace, _ = run_whole(0, bandit, rounds=200)
    assert trace.diverged_at == 10
    shares = np.bincount(np.asarray(trace.arm[20:]), minlength=3) / 180
    assert np.abs(shares - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 180)


def test_a_sound_run_is_not_marked():
    trace, _ = run_whole(0, build("neural-ucb", dim=4, width=4, steps=3, batch_size=4))
    assert trace.diverged_at == 0
    assert np.isfinite(trace.loss)


def magnified(problem, factor):
    """The same problem with contexts that are this many times as long."""

    def draw(key, data, world, t):
        now = problem.draw(key, data, world, t)
        return now._replace(contexts=now.contexts * jnp.float32(factor))

    return problem._replace(draw=draw)


@pytest.mark.parametrize("name", ["lin-ucb", "neural-ucb0", "kernel-ucb"])
def test_a_run_whose_inverse_is_lost_is_marked(name):
    """At ‖g‖²/λ = 10¹⁷ Sherman and Morrison's update leaves no digit of Z⁻¹: widths would be wrong in silence."""
    settings = {"lin-ucb": {}, "neural-ucb0": {"width": 4}, "kernel-ucb": {"kernel": "linear"}}[name]
    bandit = build(name, dim=4, regularization=1e-3, **settings)
    sound, _ = run_whole(0, bandit)
    lost, _ = run_whole(0, bandit, world=magnified(WORLD, 1e7))
    assert sound.diverged_at == 0
    assert 1 < lost.diverged_at <= 10


def test_a_run_whose_inverse_drifts_is_marked_though_all_numbers_are_finite():
    bandit = build("neural-ucb0", dim=4, width=4, regularization=1e-3)
    trace, belief = run_whole(0, bandit, rounds=40, world=magnified(WORLD, 1e5))
    assert np.isfinite(belief.z.inverse).all()
    assert float(exact(drift)(belief.z)) > 1
    assert trace.diverged_at in (10, 20, 30, 40)  # measured after every segment


@pytest.mark.parametrize("schedule", ["10", "7", "100", "1:5,10"])
def test_pieces_give_what_the_whole_gives(schedule):
    bandit = build("neural-ucb", dim=4, width=4, steps=3, batch_size=4)
    trace, _ = run_whole(1, bandit, schedule=schedule)
    run = prepare(bandit, WORLD, rounds=25, schedule=schedule)
    with jax.enable_x64(True):
        advance = jax.jit(run.advance)
        state = jax.jit(run.begin)(jax.random.key(1), ())
        for segment in range(len(run.ends)):
            state = advance(jax.random.key(1), (), state, np.int32(segment), np.int32(segment + 1))
    assert run.ends[-1] == 25
    assert_array_equal(state.trace.arm, trace.arm)


def test_rounds_below_one_are_refused():
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        prepare(build("lin-ucb", dim=4), WORLD, rounds=0, schedule="10")


def test_a_float64_belief_is_not_truncated_by_someone_elses_compiler():
    bandit = build("lin-ucb", dim=4)
    belief = bandit.init(jax.random.key(0))
    with pytest.raises(ValueError, match="enable_x64"):
        jax.jit(bandit.select)(jax.random.key(0), belief, jnp.ones((3, 4), jnp.float32))
    with jax.enable_x64(True):
        jax.jit(bandit.select)(jax.random.key(0), belief, jnp.ones((3, 4), jnp.float32))
    float32 = build("lin-ucb", dim=4, design_precision="float32")
    jax.jit(float32.select)(jax.random.key(0), float32.init(jax.random.key(0)), jnp.ones((3, 4), jnp.float32))


def test_a_linear_network_has_lin_ucbs_widths():
    """f(x) = ⟨θ, x⟩ has the context as its gradient: NeuralUCB's Z is then LinUCB's A."""
    linear = Network(
        init=lambda key: jnp.zeros(4, jnp.float32),
        apply=lambda weights, context: weights @ context,
        apply_many=lambda weights, contexts: contexts @ weights,
        tangent=lambda weights, context: (weights @ context, context),
        example=jax.ShapeDtypeStruct((4,), "float32"),
        check=lambda context: None,
    )
    train = sgd(step_size=0.1, steps=1, batch_size=1, pull=0.0)
    ours = neural(linear, full(4, ridge=0.7), train)
    theirs = ridge(raw(4), full(4, ridge=0.7))
    with jax.enable_x64(True):
        a, b = ours.init(jax.random.key(0)), theirs.init(jax.random.key(0))
        for seed in range(20):
            x = jax.random.normal(jax.random.key(seed), (4,), jnp.float32)
            assert_allclose(ours.predict(a, x).width, theirs.predict(b, x).width, rtol=1e-6)
            assert_allclose(ours.predict(a, x).log_det, theirs.predict(b, x).log_det, rtol=1e-12)
            a, b = ours.observe(a, x, jnp.float32(1)), theirs.observe(b, x, jnp.float32(1))
