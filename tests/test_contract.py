"""What every registered algorithm must do. A new recipe is covered by being registered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.algorithms import ALGORITHMS, build
from neuralucb.history import append, empty
from neuralucb.problems import synthetic
from neuralucb.schedules import read_schedule
from neuralucb.simulation import simulate

DIM, ARMS, ROUNDS = 4, 3, 30
SMALL = {"width": 4, "steps": 3, "batch_size": 4}
pytestmark = [pytest.mark.usefixtures("wide"), pytest.mark.parametrize("name", ALGORITHMS)]


def small(name, **settings):
    """The algorithm at a size that compiles quickly."""
    own = {setting.name for setting in ALGORITHMS[name].settings}
    return build(name, dim=DIM, **{key: value for key, value in SMALL.items() if key in own} | settings)


def contexts(seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(ARMS, DIM)), jnp.float32)


def experienced(bandit):
    """A belief that has observed and learned."""
    belief = bandit.init(jax.random.key(0))
    record = empty(contexts()[0], capacity=8)
    for t in range(6):
        belief = bandit.observe(belief, contexts(t)[0], jnp.float32(t % 2))
        record = append(record, contexts(t)[0], jnp.float32(t % 2))
    return bandit.learn(jax.random.key(1), belief, record)[0]


def regret(name, seeds, **traced):
    def one(seed, numbers):
        return simulate(
            jax.random.key(seed), small(name) if not traced else ALGORITHMS[name].recipe(DIM, defaults(name) | numbers),
            synthetic("h1", dim=DIM, arms=ARMS), rounds=ROUNDS, schedule=read_schedule("10"),
        )[0]  # fmt: skip

    return jax.jit(jax.vmap(one))(
        np.asarray(seeds, np.uint32), {k: jnp.asarray(v, jnp.float32) for k, v in traced.items()}
    )


def defaults(name):
    return {setting.name: SMALL.get(setting.name, setting.default) for setting in ALGORITHMS[name].settings}


def test_selecting_changes_nothing_and_repeats_itself(name):
    bandit = small(name)
    belief = experienced(bandit)
    before = jax.tree.map(np.array, belief)
    first, second = (bandit.select(jax.random.key(5), belief, contexts(9)) for _ in range(2))
    jax.tree.map(assert_array_equal, before, jax.tree.map(np.array, belief))
    jax.tree.map(assert_array_equal, first, second)


def test_beliefs_keep_their_shapes_and_types(name):
    bandit = small(name)
    start = jax.eval_shape(bandit.init, jax.random.key(0))
    assert jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), start) == jax.tree.map(
        lambda leaf: (leaf.shape, str(leaf.dtype)), experienced(bandit)
    )


def test_only_available_arms_are_chosen(name):
    bandit = small(name)
    belief = experienced(bandit)
    available = jnp.asarray([False, True, False])
    for seed in range(5):
        assert bandit.select(jax.random.key(seed), belief, contexts(seed), available).arm == 1


def test_seeds_differ_and_the_same_seed_repeats(name):
    trace = regret(name, [0, 1, 0])
    assert_array_equal(trace.arm[0], trace.arm[2])
    assert_array_equal(trace.regret[0], trace.regret[2])
    assert not np.array_equal(trace.regret[0], trace.regret[1])
    assert not np.asarray(trace.diverged_at).any()


def test_a_run_compiles_once_and_takes_any_seed(name):
    compiled = jax.jit(
        lambda seed: simulate(
            jax.random.key(seed), small(name), synthetic("h1", dim=DIM, arms=ARMS), rounds=ROUNDS,
            schedule=read_schedule("10"),
        )[0].regret
    )  # fmt: skip
    assert not np.array_equal(compiled(np.uint32(1)), compiled(np.uint32(2)))
    assert compiled._cache_size() == 1


def test_every_number_may_differ_between_lanes(name):
    """Traced settings give the same run as built-in ones, and change it where they should."""
    numbers = {setting.name: setting.default for setting in ALGORITHMS[name].settings if setting.traced}
    lanes = {key: [value, value * 0.5, value] for key, value in numbers.items()}
    trace = regret(name, [3, 3, 3], **lanes)
    assert_array_equal(trace.regret[0], trace.regret[2])
    if numbers:
        plain = regret(name, [3])
        assert np.mean(np.asarray(plain.arm[0]) == np.asarray(trace.arm[0])) > 0.8


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full((ARMS, DIM), np.nan, np.float32), "contexts must be finite"),
        (np.zeros((ARMS, DIM + 1), np.float32), f"must be {DIM} numbers"),
        (np.zeros(DIM, np.float32), f"must be {DIM} numbers"),
        (np.zeros((0, DIM), np.float32), "leading axis of arms"),
        (np.float32(1), "leading axis of arms"),
    ],
)
def test_contexts_that_do_not_fit_are_refused(name, bad, message):
    bandit = small(name)
    with pytest.raises(ValueError, match=message):
        bandit.select(jax.random.key(0), bandit.init(jax.random.key(0)), bad)


def test_rewards_and_masks_that_do_not_fit_are_refused(name):
    bandit = small(name)
    belief = bandit.init(jax.random.key(0))
    with pytest.raises(ValueError, match="reward must be finite"):
        bandit.observe(belief, contexts()[0], jnp.float32(jnp.nan))
    with pytest.raises(ValueError, match="at least one arm"):
        bandit.select(jax.random.key(0), belief, contexts(), jnp.zeros(ARMS, bool))
    with pytest.raises(ValueError, match=f"{ARMS} booleans"):
        bandit.select(jax.random.key(0), belief, contexts(), jnp.ones(ARMS + 1, bool))
