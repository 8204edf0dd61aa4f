"""Trainings in shuffled passes that end early, as in the released code: against their transcription, and in lanes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, build, history as rows_of, run_grid
from neuralucb.history import History, shuffle_rows
from neuralucb.networks import disjoint, mlp
from neuralucb.policy import Slot
from neuralucb.training import careful_sgd, sgd
from tests.reference import neural_ucb

ROWS, DIM, WIDTH, ARMS, ROOM = 12, 3, 8, 3, 20
SHAPE = {"width": WIDTH, "scaling": "standard"}
ALONE, BY_ARM = mlp(DIM, **SHAPE), disjoint(mlp(DIM, **SHAPE), ARMS)
SMALL = 0.05
"""A loss that these trainings reach within a few hundred steps."""


def numbers(seed=0):
    generator = np.random.default_rng(seed)
    x, arm = generator.normal(size=(ROOM, DIM)), generator.integers(0, ARMS, ROOM)
    rewards = x[:, 0] + 0.1 * generator.normal(size=ROOM)
    rewards[ROWS:] = np.nan  # room that must never be read
    return x.astype(np.float32), arm.astype(np.int32), rewards.astype(np.float32)


def history(by_arm, seed=0, seen=ROWS):
    x, arm, rewards = map(jnp.asarray, numbers(seed))
    return History(Slot(x, arm) if by_arm else x, rewards, jnp.int32(seen), jnp.int32(seen))


def trained(network, key, *, seed=0, apply=None, **settings):
    """θ, from elsewhere than θ_0."""
    train = sgd(**{"step_size": 0.1, "steps": 400, "batch_size": 1, "pull": 0.01, "rows": "passes"} | settings)
    initial, start = (network.init(jax.random.key(each)) for each in (1, 2))
    record, apply = history(network is BY_ARM, seed), apply or network.apply_many
    return jax.jit(lambda key: train(key, apply, start, initial, record))(key)


def transcribed(network, key, *, steps=400, batch_size=1, early_end, seed=0):
    """The same in NumPy, in float64, on (0, …, x, …, 0); and the steps made."""
    x, arm, rewards = numbers(seed)
    initial, start = ([np.asarray(leaf, np.float64) for leaf in network.init(jax.random.key(each))] for each in (1, 2))
    contexts = x.astype(np.float64)
    if network is BY_ARM:
        contexts = np.zeros((ROOM, ARMS, DIM))
        contexts[np.arange(ROOM), arm] = x
        contexts = contexts.reshape(ROOM, -1)
        initial, start = ([first.swapaxes(0, 1).reshape(WIDTH, -1), last] for first, last in (initial, start))
    order = np.asarray(shuffle_rows(jax.random.fold_in(key, 0), ROWS, jnp.int32(ROWS)))
    return neural_ucb.train_in_passes(
        start, initial, contexts[:ROWS], rewards[:ROWS].astype(np.float64), factor=1.0, pull=0.01, step_size=0.1,
        order=order, most=steps, early_end=early_end, batch_size=batch_size,
    )  # fmt: skip


@pytest.mark.parametrize("network", [ALONE, BY_ARM], ids=["alone", "by arm"])
@pytest.mark.parametrize(
    ("settings", "ends"),
    [
        ({"early_end": SMALL}, True),
        ({"early_end": 0.0, "steps": 100}, False),
        ({"early_end": 10.0}, True),  # after the first pass
        ({"early_end": SMALL, "batch_size": 5}, True),
        ({"early_end": 10.0, "batch_size": 30}, True),  # more than there are rows
        ({"early_end": 0.0, "steps": 7}, False),  # before a pass has ended
    ],
)
def test_passes_are_those_of_the_transcription(key, network, settings, ends):
    expected, made = transcribed(network, key, **settings)
    weights, info = trained(network, key, **settings)
    assert (made < settings.get("steps", 400)) == ends
    first = weights[0].swapaxes(0, 1).reshape(WIDTH, -1) if network is BY_ARM else weights[0]
    assert_allclose(first, expected[0], rtol=1e-4, atol=1e-5)
    assert_allclose(weights[1], expected[1], rtol=1e-4, atol=1e-5)
    assert not info.diverged


def test_an_end_that_came_one_pass_later_would_be_seen(key):
    expected, made = transcribed(ALONE, key, early_end=SMALL)
    weights, _ = trained(ALONE, key, early_end=0.0, steps=made + ROWS)
    assert np.abs(weights[0] - expected[0]).max() > 1e-3


@pytest.mark.parametrize("settings", [{}, {"batch_size": 4}])
def test_lanes_that_end_at_different_steps_are_the_runs_one_by_one(settings):
    settings |= {"early_end": 0.02, "steps": 1000}

    def one(key):
        return trained(BY_ARM, key, **settings)[0]

    keys = jax.random.split(jax.random.key(1), 4)
    steps = {transcribed(BY_ARM, key, **settings)[1] for key in keys}
    assert len(steps) > 1
    together = jax.vmap(one)(keys)
    nested = jax.vmap(jax.vmap(one))(keys.reshape(2, 2))
    for lane, key in enumerate(keys):
        for ours, pairs, alone in zip(together, nested, one(key), strict=True):
            assert_allclose(ours[lane], alone, rtol=1e-5, atol=1e-6)
            assert_allclose(pairs.reshape(ours.shape)[lane], alone, rtol=1e-5, atol=1e-6)


def test_a_late_pull_stops_where_the_passes_end(key):
    """Blocks whose arm has no more rows shrink up to the end, and no further."""
    settings = {"early_end": SMALL, "pull": 1.0, "step_size": 0.05}
    ours, _ = trained(BY_ARM, key, **settings)
    expected, _ = trained(BY_ARM, key, apply=BY_ARM.apply_many.many, **settings)
    for late, plain in zip(ours, expected, strict=True):
        assert_allclose(late, plain, rtol=1e-4, atol=1e-5)


def test_careful_trainings_go_in_passes_too(key):
    settings = {"step_size": 0.1, "steps": 400, "batch_size": 1, "pull": 0.01, "early_end": SMALL}
    train = careful_sgd(**settings, rows="passes", retries=2)
    initial, start = (ALONE.init(jax.random.key(each)) for each in (1, 2))
    weights, _ = train(key, ALONE.apply_many, start, initial, history(False))
    for ours, plain in zip(weights, trained(ALONE, key, early_end=SMALL)[0], strict=True):
        assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)


def test_nothing_observed_means_nothing_learned(key):
    train = sgd(step_size=0.1, steps=5, batch_size=1, pull=0.0, rows="passes", early_end=0.0)
    start = ALONE.init(key)
    nothing = history(False, seen=0)._replace(rounds=jnp.int32(5))
    weights, info = train(key, ALONE.apply_many, start, start, nothing)
    assert not info.diverged
    for ours, before in zip(weights, start, strict=True):
        assert_array_equal(ours, before)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 16, 17, 40])
def test_an_order_has_every_row_once(key, count):
    order = np.asarray(shuffle_rows(key, 40, jnp.int32(count)))
    assert_array_equal(np.sort(order[:count]), np.arange(count))
    assert not order[count:].any()
    assert_array_equal(shuffle_rows(key, 5, jnp.int32(count)), order[:5])


@pytest.mark.parametrize(("mixes", "is_random"), [(rows_of.MIXES, True), (1, False)])
def test_rows_have_their_turn_at_any_time_after_any_other(monkeypatch, mixes, is_random):
    """Each row at each place as often, and neighbours as far from each other, as by chance; not so after one mix."""
    monkeypatch.setattr(rows_of, "MIXES", mixes)
    count, orders = 37, 20_000
    keys = jax.random.split(jax.random.key(5), orders)
    drawn = np.asarray(jax.vmap(lambda key: shuffle_rows(key, count, jnp.int32(count)))(keys))
    places = np.stack([np.bincount(drawn[:, place], minlength=count) for place in range(count)])
    off_places = np.abs(places - orders / count).max() / np.sqrt(orders / count)
    distance = np.abs(np.diff(drawn, axis=1)).mean(axis=1)
    off_distance = np.abs(distance.mean() - (count + 1) / 3) / (distance.std() / np.sqrt(orders))
    assert (max(off_places, off_distance) < 5) == is_random, (off_places, off_distance)


def test_an_early_end_without_passes_is_refused():
    with pytest.raises(InputError, match=r"early_end must be 0 with rows=drawn, got 0\.1; take rows=passes"):
        build("neural-ucb", dim=3, early_end=0.1)
    with pytest.raises(InputError, match="rows must be drawn with method=gradient-descent"):
        build("neural-ucb", dim=3, rows="passes", method="gradient-descent", optimizer="plain", decay="none", retries=0)


def test_an_early_end_can_be_a_grid_of_one_program():
    """It is a number, which a compiled run takes as input."""
    one_each = {"width": 4, "steps": 200, "batch_size": 1, "rows": "passes", "step_size": 0.01}
    grid = {name: [value] for name, value in one_each.items()} | {"early_end": [0.0, 1e3]}
    never, soon = run_grid("neural-ucb", "h1", grid, rounds=20, seeds=2, schedule="5")
    assert not np.array_equal(never.regret, soon.regret)
    assert never.compile_seconds == soon.compile_seconds  # one program, whose time they share
