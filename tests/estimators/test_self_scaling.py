"""Learned units, through `OnlineBandit`: any unit gives the same decisions, and no reward upsets the others."""

from functools import cache

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb import OnlineBandit, fingerprint
from neuralucb.history import History
from tests.estimators.worlds import ARMS, DIM, ROUNDS, play, policy, world
from tests.nightly import in_ci
from tests.online.helpers import fingerprint as everything

LINEAR = world("linear", 3)


@cache
def plain(units="learned"):
    return play(policy(units=units), LINEAR.contexts, LINEAR.rewards(), LINEAR.expected)


@pytest.mark.parametrize("power", [-3, -2, -1, 1, 2, 3])
def test_contexts_and_rewards_in_another_unit_change_no_decision(power):
    other = play(policy(), LINEAR.contexts * np.float32(10.0**power), 10.0**power * LINEAR.rewards())
    assert_array_equal(other.arms, plain().arms)
    assert other.bandit.health().diverged == 0


def test_another_unit_for_every_input_changes_no_decision():
    units = np.float32([1e-3, 1e3, 1, 30])
    assert_array_equal(play(policy(), LINEAR.contexts * units, LINEAR.rewards()).arms, plain().arms)


def test_a_shift_by_1000_spreads_changes_no_decision_beyond_rounding():
    """A float32 near 1000 keeps 6e-5 of a spread, so that close calls may differ."""
    other = play(policy(), LINEAR.contexts + np.float32(1000), LINEAR.rewards() - 1000)
    assert (other.arms == plain().arms).mean() >= 0.99


def test_in_given_units_the_same_changes_do_change_decisions():
    other = play(policy(units="given"), LINEAR.contexts * np.float32(100), LINEAR.rewards())
    assert (other.arms == plain("given").arms).mean() < 0.99


def units_of(bandit):
    return fingerprint(bandit.state.belief[1:])


@pytest.mark.parametrize(("growth", "lessons"), [(0, [30, 60, 120]), (1, [30, 60, 90, 120])])
def test_units_change_at_lessons_alone_where_twice_as_much_was_seen_or_they_are_far_off(growth, lessons):
    bandit = OnlineBandit(policy(), schedule="30", seed=1)
    rewards, changes, before = LINEAR.rewards(), [], units_of(bandit)
    for t, shown in enumerate(LINEAR.contexts[:130]):
        decision = bandit.select(shown * np.float32(1 + growth * t))
        bandit.observe(decision.id, float(rewards[t, decision.position]))
        if units_of(bandit) != before:
            changes.append(t + 1)
        before = units_of(bandit)
    assert changes == lessons


def test_what_was_not_observed_yet_does_not_matter():
    """The rest of a history may hold anything: what will be seen later, or nothing."""
    rewards = LINEAR.rewards()[:, 0].astype(np.float32)
    later, nothing = (LINEAR.contexts[:, 0].copy(), rewards.copy()), (LINEAR.contexts[:, 0].copy(), rewards.copy())
    later[0][100:], later[1][100:] = 1e6, -1e6
    nothing[0][100:], nothing[1][100:] = np.nan, np.nan
    one, beliefs = policy(), []
    for contexts, values in (later, nothing):
        history = History(contexts, values, np.int32(100), np.int32(100))
        belief, info = one.learn(jax.random.key(1), one.init(jax.random.key(0)), history)
        assert not info.diverged
        beliefs.append(fingerprint(belief))
    assert beliefs[0] == beliefs[1]


def test_units_survive_a_journal_and_a_save_to_the_last_bit(tmp_path):
    whole, rewards = OnlineBandit(policy(), schedule="30", seed=1), LINEAR.rewards()

    def go_on(bandit, start, end):
        for t in range(start, end):
            decision = bandit.select(LINEAR.contexts[t])
            bandit.observe(decision.id, float(rewards[t, decision.position]))

    go_on(whole, 0, 100)
    with OnlineBandit(policy(), schedule="30", seed=1, journal=tmp_path / "journal") as first:
        go_on(first, 0, 47)
    with OnlineBandit(policy(), schedule="30", seed=1, journal=tmp_path / "journal") as second:
        go_on(second, 47, 75)
        second.save(tmp_path / "saved")
    loaded = OnlineBandit.load(tmp_path / "saved")
    go_on(loaded, 75, 100)
    assert everything(loaded) == everything(whole)


@cache
def regret(units, outlier=None):
    """Of three worlds, with a reward of a million in this round."""
    total = 0.0
    for seed in (3, 4, 5):
        here = world("linear", seed)
        rewards = here.rewards()
        if outlier is not None:
            rewards[outlier] = 1e6
        total += play(policy(units=units), here.contexts, rewards, here.expected).regret.sum()
    return total


@pytest.mark.parametrize("when", in_ci([5, 120, 230], 120))
def test_one_reward_of_a_million_changes_regret_by_a_few_per_cent(when):
    assert regret("learned", when) < 1.05 * regret("learned")
    if when < ROUNDS / 2:  # the control; at the end nothing can go wrong any more
        assert regret("given", when) > 1.5 * regret("given")


STREAMS = {
    "2 per cent ones": lambda g: (g.random((ROUNDS, ARMS)) < 0.02) * 1.0,
    "zero-inflated": lambda g: (g.random((ROUNDS, ARMS)) < 0.1) * g.lognormal(3, 2, (ROUNDS, ARMS)),
    "all equal": lambda g: np.full((ROUNDS, ARMS), 0.3),
    "equal, then not": lambda g: (np.arange(ROUNDS) >= 100)[:, None] * g.normal(size=(ROUNDS, ARMS)),
    "one of a million first": lambda g: np.where(np.arange(ROUNDS) == 0, 1e6, 0)[:, None] + np.zeros((1, ARMS)),
    "heavy tails": lambda g: g.standard_cauchy((ROUNDS, ARMS)),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_no_stream_of_rewards_makes_a_lesson_fail_or_a_score_vanish(kind):
    played = play(policy(), LINEAR.contexts, STREAMS[kind](np.random.default_rng(6)))
    health = played.bandit.health()
    assert (health.diverged, health.learned, health.refused) == (0, ROUNDS // 30, 0)
    assert np.isfinite(played.bandit.select(LINEAR.contexts[0]).score).all()


def test_rewards_that_begin_to_vary_are_seen_at_the_next_lesson():
    """Bounds learned from equal rewards hide all others; a deviation near the placeholder 1 must not keep them."""
    one = policy()
    rewards = np.where(np.arange(ROUNDS) < 100, 0, 2 * LINEAR.expected[:, 0]).astype(np.float32)
    belief = one.init(jax.random.key(0))
    for seen in (100, 130):
        history = History(LINEAR.contexts[:, 0], rewards, np.int32(seen), np.int32(seen))
        belief, _ = one.learn(jax.random.key(seen), belief, history)
    assert belief.rewards.low < 0 < belief.rewards.high


def test_a_lesson_before_the_first_reward_hides_none():
    one = policy()
    history = History(np.zeros((256, DIM), np.float32), np.zeros(256, np.float32), np.int32(0), np.int32(0))
    belief, info = one.learn(jax.random.key(1), one.init(jax.random.key(0)), history)
    assert not info.diverged
    assert belief.rewards.high > 1e30
