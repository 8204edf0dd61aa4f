"""Units of inputs and rewards: against the transcription, and for every kind of data that has broken scaling before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb.estimators import scales
from neuralucb.history import spread_rows
from tests.reference.neural_mix import Units

ROWS = 300

KINDS = {
    "normal": lambda g: g.normal(3, 2, ROWS),
    "shifted by 1000 spreads": lambda g: g.normal(1000, 1, ROWS),
    "tiny": lambda g: g.normal(0, 1e-12, ROWS),
    "huge": lambda g: g.normal(0, 1e12, ROWS),
    "heavy tails": lambda g: g.standard_cauchy(ROWS),
    "sparse counts": lambda g: g.poisson(0.05, ROWS),
    "counts": lambda g: g.poisson(3, ROWS),
    "two values": lambda g: g.choice([-1.0, 5.0], ROWS),
    "rare category": lambda g: g.random(ROWS) < 0.02,
    "one wild value": lambda g: np.append(np.zeros(ROWS - 1), 1e6),
    "constant": lambda g: np.full(ROWS, 0.1),
    "zeros": lambda g: np.zeros(ROWS),
}


def draw(kind):
    return np.asarray(KINDS[kind](np.random.default_rng(4)), np.float32)


learn_inputs, learn_rewards = jax.jit(scales.learn_inputs), jax.jit(scales.learn_rewards)
show, show_reward = jax.jit(scales.scale), jax.jit(scales.scale_reward)


def padded(values, capacity=320):
    """Rows that were not observed hold what must never be read."""
    rows = np.full((capacity, *np.shape(values)[1:]), np.nan, np.float32)
    rows[: len(values)] = values
    return jnp.asarray(rows), jnp.int32(len(values))


def units_of(values):
    return learn_inputs(*padded(np.asarray(values, np.float32)[:, None]))


@pytest.mark.parametrize("rows", [1, 2, 3, ROWS])
@pytest.mark.parametrize("kind", KINDS)
def test_units_are_the_transcriptions(kind, rows):
    values = draw(kind)[:rows]
    inputs, rewards = units_of(values), learn_rewards(*padded(values))
    middle, spread = Units.of_input(values.astype(np.float64))
    assert_allclose(inputs.middle[0], middle, rtol=1e-6)
    assert_allclose(inputs.spread[0], spread, rtol=1e-5)
    assert bool(inputs.known)
    mean, deviation, low, high = Units.of_rewards(values.astype(np.float64))
    assert_allclose(rewards.low, low, rtol=1e-6)
    assert_allclose(rewards.high, high, rtol=1e-6)
    assert_allclose(rewards.mean, mean, rtol=1e-5, atol=1e-6 * deviation)
    assert_allclose(rewards.deviation, deviation, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_is_the_transcriptions_and_never_extreme(kind):
    values = draw(kind)
    units = Units(values[:, None], values)
    inputs = units_of(values)
    for row in (*values[:20], values.max(), values.min(), np.float32(1e30), np.float32(-1e30)):
        shown = float(show(inputs, jnp.asarray([row]))[0])
        assert_allclose(shown, units.show([float(row)])[0], rtol=1e-4, atol=1e-5)  # a difference of float32 numbers
        assert abs(shown) <= scales.UNIT * scales.FARTHEST


def test_a_normal_input_has_its_standard_deviation_as_its_unit():
    inputs = units_of(draw("normal"))
    assert_allclose(inputs.middle, 3, atol=5 * 2 * 1.2533 / np.sqrt(ROWS))  # standard error of a median
    assert_allclose(inputs.spread, 2, rtol=0.2)


def test_three_wild_values_in_ten_move_a_unit_little_and_four_break_it():
    values = draw("normal")
    for share, holds in ((0.3, True), (0.4, False)):
        wild = values.copy()
        wild[: int(share * ROWS)] *= 1e6
        inputs = units_of(wild)
        assert (abs(inputs.middle[0] - 3) < 2 * 2 and inputs.spread[0] < 3 * 2) == holds


def test_before_anything_was_seen_all_inputs_are_0_and_rewards_as_they_are():
    inputs, rewards = units_of(np.zeros(0)), learn_rewards(*padded(np.zeros(0)))
    assert not bool(inputs.known)
    assert_array_equal(show(inputs, jnp.asarray([1e6], jnp.float32)), [0])
    assert_array_equal(rewards, scales.no_rewards())
    assert float(show_reward(rewards, jnp.float32(123))) == 123


def test_an_input_that_never_varied_says_on_which_side_it_now_is():
    inputs = units_of(np.full(5, 7.0))
    for value, shown in ((7.0, 0.0), (7.0001, scales.UNIT), (-1e9, -scales.UNIT)):
        assert_allclose(show(inputs, jnp.asarray([value], jnp.float32)), [shown])


def test_a_category_is_0_or_one_unit_however_rare():
    shown = show(units_of(draw("rare category")), jnp.asarray([0, 1], jnp.float32)[:, None])
    assert_allclose(shown.ravel(), [0, scales.UNIT])


def test_one_reward_of_a_million_counts_as_a_large_one():
    rewards = np.append(draw("normal"), np.float32(1e6))
    with_it, without = learn_rewards(*padded(rewards)), learn_rewards(*padded(rewards[:-1]))
    assert_allclose(with_it.mean, without.mean, atol=0.05 * float(without.deviation))
    assert_allclose(with_it.deviation, without.deviation, rtol=0.1)
    assert show_reward(with_it, jnp.float32(1e6)) < 6
    assert rewards.std() > 1000 * float(with_it.deviation), "which standard deviations do not do"


def test_rare_rewards_keep_their_size():
    rewards = learn_rewards(*padded(draw("rare category")))
    share = draw("rare category").mean()
    assert rewards.high >= 1
    assert_allclose(rewards.deviation, np.sqrt(share * (1 - share)), rtol=1e-5)


def test_equal_rewards_are_shown_as_0():
    for value in (0.0, 0.7, -1e6):
        rewards = learn_rewards(*padded(np.full(50, value)))
        assert float(show_reward(rewards, jnp.float32(value))) == 0
        assert float(rewards.deviation) == 1


@pytest.mark.parametrize("seen", [0, 1, 7, 8, 9, 100, 1000, 2**20 - 1])
def test_a_sample_is_spread_over_what_was_seen_and_over_nothing_else(seen):
    rows, count = spread_rows(jnp.int32(seen), 2**20, most=8)
    chosen = np.asarray(rows)[: int(count)]
    assert len(chosen) == min(seen, 8)
    assert len(set(chosen)) == len(chosen)
    assert (chosen < seen).all()
    if seen > 8:
        assert np.diff(chosen).max() - np.diff(chosen).min() <= 1
        assert chosen[-1] >= seen * 7 / 8 - 1
