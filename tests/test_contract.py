"""What every registered algorithm must do. A new recipe is covered by being registered."""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb.algorithms import ALGORITHMS, Task, build
from neuralucb.history import append, empty
from neuralucb.policy import Slot, fingerprint, remember
from neuralucb.problems import reveal, synthetic
from neuralucb.rules import floor
from neuralucb.simulation import simulate

DIM, ARMS, ROUNDS = 4, 3, 30
SMALL = {"width": 8, "steps": 3, "batch_size": 4, "networks": 3, "budget": 20, "models": 3, "policies": 3}
pytestmark = [
    pytest.mark.usefixtures("wide"),
    # by module: all tests of one algorithm after each other, so that one worker traces it, once
    pytest.mark.parametrize("name", ALGORITHMS, scope="module"),
]


@cache
def small(name):
    """The algorithm at a size that compiles quickly; once for all tests, since each policy is compiled anew."""
    own = {setting.name for setting in ALGORITHMS[name].settings}
    return build(name, dim=DIM, **{key: value for key, value in SMALL.items() if key in own})


def contexts(name, seed=0):
    """Contexts of all arms; the oracle's come with the expected rewards."""
    plain = jnp.asarray(np.random.default_rng(seed).normal(size=(ARMS, DIM)), jnp.float32)
    return (plain, plain.sum(axis=1)) if ALGORITHMS[name].sees_expected else plain


def of_arm(tree, arm):
    return jax.tree.map(lambda leaf: leaf[arm], tree)


def world(name):
    problem = synthetic("h1", dim=DIM, arms=ARMS)
    return reveal(problem) if ALGORITHMS[name].sees_expected else problem


@cache
def experienced(name):
    """A policy, and its belief after it has observed and learned."""
    bandit = small(name)
    belief = bandit.init(jax.random.key(0))
    record = empty(of_arm(contexts(name), 0), capacity=8)
    for t in range(6):
        context = of_arm(contexts(name, t), 0)
        belief = bandit.observe(belief, context, jnp.float32(t % 2))
        record = append(record, context, jnp.float32(t % 2))
    return bandit, bandit.learn(jax.random.key(1), belief, record)[0]


@cache
def compiled_run(name, known_rounds=None):
    """(seeds, numbers of each lane) -> traces, and scores afterwards: the one program that all tests of runs share."""

    def one(seed, values):
        bandit = ALGORITHMS[name].recipe(Task(DIM, known_rounds), defaults(name) | values)
        end = simulate(jax.random.key(seed), bandit, world(name), rounds=ROUNDS, schedule="10", detailed=True)
        return end.trace, bandit.select(jax.random.key(0), end.belief, contexts(name, 5)).score

    return jax.jit(jax.vmap(one))


def numbers_of(name):
    return {setting.name: setting.default for setting in ALGORITHMS[name].settings if setting.traced}


def lanes_of(name, *seeds):
    """Lanes for `compiled_run`, always as many as one more than the settings that may differ, and at least three."""
    lanes = max(3, len(numbers_of(name)) + 2)
    values = {key: np.full(lanes, value) for key, value in numbers_of(name).items()}
    return np.resize(np.uint32(seeds), lanes), values


@cache
def drawn(seed):
    """All that a seed's problem holds, drawn without an algorithm: expected rewards [T, K] and noise [T]."""
    problem = synthetic("h1", dim=DIM, arms=ARMS)
    world_key, rounds_key, *_ = jax.random.split(jax.random.key(seed), 5)
    keys = jax.vmap(lambda t: jax.random.fold_in(rounds_key, t))(jnp.arange(ROUNDS))
    draw = jax.vmap(lambda key, t: problem.draw(key, (), problem.init(world_key, ()), t))
    rounds = draw(keys, jnp.arange(ROUNDS, dtype=jnp.int32))
    return np.asarray(rounds.expected), np.asarray(rounds.noise)


def defaults(name):
    return {setting.name: SMALL.get(setting.name, setting.default) for setting in ALGORITHMS[name].settings}


def test_selecting_changes_nothing_and_repeats_itself(name):
    bandit, belief = experienced(name)
    before = fingerprint(belief)
    first, second = (bandit.select(jax.random.key(5), belief, contexts(name, 9)) for _ in range(2))
    assert fingerprint(belief) == before
    jax.tree.map(assert_array_equal, first, second)


def test_beliefs_keep_their_shapes_and_types(name):
    bandit, end = experienced(name)
    start = jax.eval_shape(bandit.init, jax.random.key(0))
    assert jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), start) == jax.tree.map(
        lambda leaf: (leaf.shape, str(leaf.dtype)), end
    )


def test_only_available_arms_are_chosen(name):
    bandit, belief = experienced(name)
    available = jnp.asarray([False, True, False])
    for seed in range(5):
        assert bandit.select(jax.random.key(seed), belief, contexts(name, seed), available).arm == 1


def agree(shares, propensity, draws):
    """Within five standard errors, and never where the probability is 0."""
    error = np.sqrt(propensity * (1 - propensity) / draws)
    return bool((np.abs(shares - propensity) <= 5 * error + 1e-6).all())


def test_propensities_are_the_frequencies_of_choices(name):
    bandit, belief = experienced(name)
    apart, keys = contexts(name, 9), jax.random.split(jax.random.key(11), 2000)
    tied = jax.tree.map(lambda leaf: leaf.at[2].set(leaf[0]), apart)

    @jax.jit
    def ask(given, available, lowest):
        made = jax.vmap(lambda key: floor(bandit, lowest).select(key, belief, given, available))(keys)
        return made.arm, made.propensity

    for given, able, lowest in product((apart, tied), ([True, True, True], [True, False, True]), (0.0, 0.2)):
        able = np.asarray(able)
        arms, stated = (np.asarray(values) for values in ask(given, able, jnp.float32(lowest)))
        shares, propensity = np.bincount(arms, minlength=ARMS) / len(keys), stated[0].astype(np.float64)
        assert np.ptp(stated, axis=0).max() <= 1e-6  # it does not depend on the key
        assert agree(shares, propensity, len(keys))
        assert_allclose(propensity.sum(), 1, rtol=1e-6)
        assert not propensity[~able].any()
        assert propensity[able].min() >= lowest / able.sum() - 1e-6
        wrong = np.roll(propensity, 1) if np.ptp(propensity) > 0.1 else np.float64([0.6, 0.3, 0.1])
        assert not agree(shares, wrong, len(keys))  # the control: the same test tells a wrong propensity


def test_arms_may_share_a_context_and_notes_come_back_whenever_the_reward_comes(name):
    """Everything once more for shared contexts; a note is taken from one belief and handed to a later one."""
    if ALGORITHMS[name].sees_expected:
        return
    own = {setting.name for setting in ALGORITHMS[name].settings}
    bandit = build(name, dim=DIM, shared_by=ARMS, **{key: value for key, value in SMALL.items() if key in own})
    start = belief = bandit.init(jax.random.key(0))
    x = jnp.broadcast_to(contexts(name)[:1], (ARMS, DIM))
    given, able = Slot(x, jnp.arange(ARMS, dtype=jnp.int32)), jnp.asarray([True, False, True])

    @jax.jit
    def ask(belief):
        made = jax.vmap(lambda key: bandit.select(key, belief, given, able))(jax.random.split(jax.random.key(2), 2000))
        first = jax.tree.map(lambda leaf: leaf[0], made)
        return made.arm, first, remember(bandit, belief, given, able, first)

    early = ask(belief)[2]
    for reward in (1.0, 0.0, 1.0):
        belief = bandit.observe(belief, ask(belief)[2], jnp.float32(reward))
    belief = bandit.observe(belief, early, jnp.float32(1))
    arms, choice, _ = ask(belief)
    assert jax.tree.map(jnp.shape, start) == jax.tree.map(jnp.shape, belief)
    shares = np.bincount(np.asarray(arms), minlength=ARMS) / len(arms)
    assert agree(shares, np.asarray(choice.propensity, np.float64), len(arms))
    assert choice.propensity[1] == 0


def test_seeds_differ_and_the_same_seed_repeats(name):
    trace, _ = compiled_run(name)(*lanes_of(name, 0, 1, 0))
    assert_array_equal(trace.arm[0], trace.arm[2])
    assert_array_equal(trace.regret[0], trace.regret[2])
    if not ALGORITHMS[name].sees_expected:  # the oracle has no regret, whatever the seed
        assert not np.array_equal(trace.regret[0], trace.regret[1])
    assert not np.asarray(trace.diverged_at).any()


def test_the_same_seed_gives_every_algorithm_the_same_problem_contexts_and_noise(name):
    (trace, _), rounds = compiled_run(name)(*lanes_of(name, 0, 1, 0)), np.arange(ROUNDS)
    for seed in (0, 1):
        expected, noise = drawn(seed)
        mine = expected[rounds, trace.arm[seed]]
        assert_allclose(trace.detail.reward[seed], mine + noise, rtol=1e-5, atol=1e-6)
        assert_allclose(trace.regret[seed], expected.max(axis=1) - mine, rtol=1e-5, atol=1e-6)
    assert not np.allclose(drawn(0)[0], drawn(1)[0], rtol=1e-2)  # another seed's would not pass


def test_a_run_compiles_once_and_takes_any_seed(name):
    compiled = compiled_run(name)
    first, second = (compiled(*lanes_of(name, seed))[0].arm for seed in (1, 2))
    assert not np.array_equal(first, second)
    assert compiled._cache_size() == 1


UNUSED = {
    "neural-ucb": {"noise_bound", "failure", "norm", "constant_1", "constant_2", "constant_3"},  # for theoretical γ_t
    "neural-mix": {"novelty"},  # for arms that share a context
}
ONLY_IN_PASSES = {"early_end"}  # where rows are drawn, as here; lanes that end apart are in test_training_in_passes.py


def test_each_number_alone_may_differ_between_lanes(name):
    """One lane for each traced setting, all in one compiled run: it alone changes what that lane does."""
    numbers, (seeds, lanes) = numbers_of(name), lanes_of(name, 3)
    for index, key in enumerate(numbers, start=1):
        lanes[key][index] = 0.3 if key in ("epsilon", "inclusion", "failure") else numbers[key] * 7
    trace, scores = compiled_run(name)(seeds, lanes)
    arms = trace.arm
    assert_array_equal(arms[0], arms[-1])
    assert_array_equal(scores[0], scores[-1])
    for index, key in enumerate(numbers, start=1):
        same = np.array_equal(arms[0], arms[index]) and np.array_equal(scores[0], scores[index])
        assert same == (key in UNUSED.get(name, set()) | ONLY_IN_PASSES), key


def reads_rounds(name):
    """Whether the recipe looks at how many rounds there are; if it does not, knowing them changes nothing."""
    looked = []

    class Watched(Task):
        rounds = property(lambda task: looked.append(task) or ROUNDS)

    ALGORITHMS[name].recipe(Watched(DIM), defaults(name))
    return bool(looked)


def test_knowing_the_rounds_changes_no_choice(name):
    if reads_rounds(name):
        known, unknown, lanes = compiled_run(name, ROUNDS), compiled_run(name), lanes_of(name, 1, 2, 3)
        assert_array_equal(known(*lanes)[0].arm, unknown(*lanes)[0].arm)


def test_verbs_work_inside_a_users_own_compiled_function(name):
    bandit, constant = small(name), contexts(name)

    def play(belief, seed):
        return bandit.select(jax.random.key(seed), belief, constant).score

    belief = bandit.init(jax.random.key(0))
    with jax.enable_x64(True):
        inside = jax.jit(play)(belief, 3)
    assert_allclose(inside, bandit.select(jax.random.key(3), belief, constant).score, rtol=1e-5, atol=1e-6)


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
    if ALGORITHMS[name].sees_expected:
        bad = (bad, np.zeros(np.shape(bad)[:1], np.float32))
    with pytest.raises(ValueError, match=message):
        bandit.select(jax.random.key(0), bandit.init(jax.random.key(0)), bad)


def test_rewards_and_masks_that_do_not_fit_are_refused(name):
    bandit = small(name)
    belief = bandit.init(jax.random.key(0))
    with pytest.raises(ValueError, match="reward must be finite"):
        bandit.observe(belief, of_arm(contexts(name), 0), jnp.float32(jnp.nan))
    with pytest.raises(ValueError, match="reward must be one number"):
        bandit.observe(belief, of_arm(contexts(name), 0), np.ones(DIM, np.float32))
    with pytest.raises(ValueError, match="at least one arm"):
        bandit.select(jax.random.key(0), belief, contexts(name), jnp.zeros(ARMS, bool))
    with pytest.raises(ValueError, match=f"{ARMS} booleans"):
        bandit.select(jax.random.key(0), belief, contexts(name), jnp.ones(ARMS + 1, bool))
