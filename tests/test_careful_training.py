"""`careful_sgd`: lessons that do not make the fit worse, and no alarm where there is no fire."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_array_equal

from neuralucb import build
from neuralucb.history import History
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.training import careful_sgd, sgd

ROWS, CAPACITY, DIM, WIDTH = 60, 80, 4, 16
GOOD = 0.05
"""A plain step that fits; 1000 times as large it diverges."""


@cache
def network(width=WIDTH, initialization="symmetric"):
    return mlp(DIM, width=width, depth=3, initialization=initialization, scaling="standard")


@cache
def start(width=WIDTH, initialization="symmetric"):
    return network(width, initialization).init(jax.random.key(1))


def history(rewards=None, *, seen=ROWS, junk=np.nan):
    """Contexts N(0, 1) with their first number's absolute value as the reward, and room that must never be read."""
    generator = np.random.default_rng(5)
    contexts, values = np.full((CAPACITY, DIM), junk, np.float32), np.full(CAPACITY, junk, np.float32)
    contexts[:seen] = generator.normal(size=(ROWS, DIM))[:seen]
    values[:seen] = np.abs(contexts[:seen, 0]) if rewards is None else rewards[:seen]
    return History(jnp.asarray(contexts), jnp.asarray(values), jnp.int32(seen), jnp.int32(seen))


@cache
def program(train, optimizer=None, **settings):
    """A lesson as one program, of which the step size is an argument."""

    def run(key, step_size, params, initial, record):
        shape = {"steps": 40, "batch_size": 16, "pull": 0.1} | settings
        made = optimizer if optimizer is None or train is careful_sgd else optimizer(step_size)
        trained = train(**shape, step_size=step_size, optimizer=made)
        return trained(key, network().apply_many, params, initial, record)

    return jax.jit(run)


def lesson(run, record=None, params=None, *, step_size=GOOD, initial=None, key=0):
    initial = start() if initial is None else initial
    begin = initial if params is None else params
    return run(jax.random.key(key), jnp.float32(step_size), begin, initial, record or history())


def mean_loss(params, record):
    seen = int(record.seen)
    return 0.5 * float(((network().apply_many(params, record.contexts[:seen]) - record.rewards[:seen]) ** 2).mean())


def assert_same(one, other):
    jax.tree.map(assert_array_equal, one, other)


class Spy:
    """Adam that notes the step size of every try."""

    def __init__(self):
        self.tries = []

    def __call__(self, eta):
        inner = optax.adam(eta)

        def init(params):
            jax.debug.callback(lambda used: self.tries.append(float(used)), eta)
            return inner.init(params)

        return optax.GradientTransformation(init, inner.update)

    def count(self):
        jax.effects_barrier()
        counted, self.tries = len(self.tries), []
        return counted


SPY = Spy()


@pytest.mark.parametrize("decay", ["none", "linear"])
@pytest.mark.parametrize("optimizer", [None, optax.adam])
def test_a_good_lesson_is_sgds_to_the_last_bit(optimizer, decay):
    size = GOOD if optimizer is None else 0.005
    ours, info = lesson(program(careful_sgd, optimizer, retries=2, decay=decay), step_size=size)
    theirs, _ = lesson(program(sgd, optimizer, decay=decay), step_size=size)
    assert not info.diverged
    assert_same(ours, theirs)


def test_a_step_1000_times_too_large_is_shortened_until_it_fits():
    assert lesson(program(sgd), step_size=1000 * GOOD)[1].diverged, "the control: without care it diverges"
    ours, info = lesson(program(careful_sgd, retries=4), step_size=1000 * GOOD)
    assert not info.diverged
    assert mean_loss(ours, history()) < 0.5 * mean_loss(start(), history())
    shorter = [lesson(program(sgd), step_size=1000 * GOOD * 0.1**number)[0] for number in range(5)]
    same = [all(np.allclose(a, b, atol=1e-4) for a, b in zip(ours, each, strict=True)) for each in shorter]
    assert sum(same) == 1, "what it ends with is what one of the shorter steps gives"


@pytest.mark.parametrize("retries", [0, 1])
def test_where_no_try_helps_the_weights_stay_and_the_lesson_says_so(retries):
    begin = lesson(program(sgd))[0]
    kept, info = lesson(program(careful_sgd, retries=retries), params=begin, step_size=1000 * GOOD)
    assert info.diverged
    assert_same(kept, begin)
    assert np.isfinite(info.loss)


@pytest.mark.parametrize("power", range(-4, 5))
def test_no_step_size_makes_the_fit_worse(power):
    begin = lesson(program(sgd))[0]
    ours, info = lesson(program(careful_sgd, retries=1), params=begin, step_size=10.0**power)
    before = mean_loss(begin, history())
    assert mean_loss(ours, history()) <= 1.25 * before + 1e-3  # what is compared has the pull besides
    if info.diverged:
        assert_same(ours, begin)


CALM = {
    "all zero": (np.zeros(ROWS), ROWS),
    "one observation": (None, 1),
    "one observation of 0": (np.zeros(ROWS), 1),
    "nothing": (None, 0),
    "one reward among zeros": (np.append(5, np.zeros(ROWS - 1)), ROWS),
    "large": (np.linspace(-1e4, 1e4, ROWS), ROWS),
    "noise": (np.random.default_rng(1).normal(size=ROWS), ROWS),
    "ten observations": (None, 10),
}
EXACT_FROM_THE_START = ("all zero", "one observation of 0", "nothing")


@pytest.mark.parametrize("width", [16, 128])
@pytest.mark.parametrize("case", CALM)
def test_a_healthy_lesson_needs_one_try_and_raises_no_alarm(case, width):
    """While all rewards are 0 there is nothing to try: Adam would only enlarge the rounding of a network that is 0."""
    rewards, seen = CALM[case]
    record, begin = history(rewards, seen=seen, junk=0), start(width)
    run, params = program(careful_sgd, SPY, retries=2, decay="linear"), begin
    SPY.count()
    for key in range(3):
        params, info = lesson(run, record, params, step_size=0.002, initial=begin, key=key)
        assert not info.diverged
        assert np.isfinite(info.loss)
        assert all(np.isfinite(leaf).all() for leaf in params)
    if case in EXACT_FROM_THE_START:
        assert_same(params, begin)
    assert SPY.count() == (0 if case in EXACT_FROM_THE_START else 3)


def test_rewards_far_below_a_step_raise_no_alarm():
    """In given units rewards may be 1e-6, which no step of Adam's size can fit; the network stays as near as it was."""
    record, params = history(np.linspace(-1e-6, 1e-6, ROWS), junk=0), None
    for key in range(3):
        params, info = lesson(program(careful_sgd, optax.adam, retries=2, decay="linear"), record, params, key=key)
        assert not info.diverged


def test_lessons_on_a_nearly_perfect_fit_raise_no_alarm():
    """Rewards that are a network's, without noise: the loss falls, and lessons go on."""
    other = network(WIDTH, "gaussian").init(jax.random.key(2))
    rewards = np.asarray(network().apply_many(other, history(junk=0).contexts))[:ROWS]
    run = program(careful_sgd, optax.adam, retries=2, decay="linear", steps=200, pull=0.0)
    record, params, losses = history(rewards), None, []
    for key in range(40):
        params, info = lesson(run, record, params, step_size=0.01, key=key)
        assert not info.diverged
        losses.append(float(info.loss))
    assert losses[-1] < 2e-3 * rewards.var()


def test_a_divergence_is_found_also_where_all_rewards_are_0():
    """The control of what is not an alarm: here the network predicts something, and a wild step explodes."""
    begin = start(WIDTH, "gaussian")
    kept, info = lesson(
        program(careful_sgd, retries=0), history(np.zeros(ROWS)), begin, initial=begin, step_size=1000 * GOOD
    )
    assert info.diverged
    assert_same(kept, begin)


def test_rewards_in_another_unit_at_the_next_lesson_raise_no_alarm():
    run, params = program(careful_sgd, optax.adam, retries=2, decay="linear"), None
    rewards = np.abs(np.asarray(history().contexts[:ROWS, 0]))
    for unit in (1, 10, 0.01, 1):
        params, info = lesson(run, history(unit * rewards), params, step_size=0.002)
        assert not info.diverged


@pytest.mark.parametrize("logged", ["uniform", "nearly always right", "nearly always wrong"])
def test_labelled_data_to_2000_rounds_raise_no_alarm(logged):
    classes, rounds = 5, 2000
    generator = np.random.default_rng(2)
    labels = generator.integers(classes, size=rounds)
    x = (2 * generator.normal(size=(classes, DIM))[labels] + generator.normal(size=(rounds, DIM))).astype(np.float32)
    arms = generator.integers(classes, size=rounds)
    if logged != "uniform":
        arms = np.where(generator.random(rounds) < 0.97, labels + (logged == "nearly always wrong"), arms) % classes
    one = build("neural-mix", dim=DIM, shared_by=classes, width=16, steps=60)
    belief, flagged = one.init(jax.random.key(0)), []
    rewards = (arms == labels).astype(np.float32)
    for seen in (1, 2, 5, *range(10, 100, 10), *range(100, 2001, 100)):
        record = History(Slot(x, arms.astype(np.int32)), rewards, np.int32(seen), np.int32(seen))
        belief, info = one.learn(jax.random.key(seen), belief, record)
        if info.diverged:
            flagged.append(seen)
    assert not flagged
