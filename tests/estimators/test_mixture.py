"""NeuralMix's mixture: weights by hand, and the member that fits the world decides."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import OnlineBandit, run
from neuralucb.estimators import mixture
from neuralucb.estimators.mixture import Mixture, slopes, weights
from neuralucb.estimators.scales import scale_reward
from neuralucb.history import append, empty
from neuralucb.policy import fingerprint, remember
from tests.estimators.worlds import ARMS, DIM, play, policy, world

SEEDS = range(20, 30)
SHARPNESS = 0.1
"""the default"""
EQUAL = {"sharpness": 1e-9}
LINEAR, QUADRATIC = [3, 5], [4, 6]
"""members: each remembers everything, or forgets"""
MARGIN = 2.262
"""standard errors of a paired difference: Student's 95 % interval for ten seeds"""


def at(errors, count, products=0.0, squares=0.0):
    numbers = (jnp.asarray(each, jnp.float32) for each in (errors, products, squares, count))
    return Mixture(None, (), *numbers, jnp.zeros(0))


@pytest.mark.parametrize(
    ("errors", "count", "sharpness", "logarithms"),
    [
        ([8.0, 10.0, 12.0], 10.0, 1.0, [0, -2 / 1.6, -4 / 1.6]),  # σ² = 8/10
        ([8.0, 10.0, 12.0], 10.0, 0.1, [0, -0.2 / 1.6, -0.4 / 1.6]),
        ([0.001, 0.201, 0.401], 10.0, 1.0, [0, -10, -20]),  # σ² is at least 0.01
        ([3.0, 3.0, 3.0], 1.0, 1.0, [0, 0, 0]),
        ([0.0, 0.0, 0.0], 0.0, 1.0, [0, 0, 0]),  # before the first reward
        ([1e30, 2e30, 1e30], 10.0, 1.0, [0, -5, 0]),
        ([1.0, 1e30, 1.0], 100.0, 1.0, [0, -np.inf, 0]),
    ],
)
def test_weights_by_hand(errors, count, sharpness, logarithms):
    expected = np.exp(logarithms) / np.exp(logarithms).sum()
    assert_allclose(weights(at(errors, count), sharpness), expected, rtol=1e-4, atol=1e-7)


def test_slopes_by_hand():
    products = [0.0, 60.0, 0.0, 0.0, -40.0, 1e30]  # nothing seen, right, a third, a sixth, wrong, and large
    squares = [0.0, 60.0, 60.0, 150.0, 60.0, 6e30]
    assert_allclose(slopes(at(products, 10.0, products, squares)), [1, 1, 1, 0.5, 0, 0.5], rtol=1e-6)


@cache
def regrets(kind, name="neural-mix", *, since=0, noise=0.02, **settings):
    """[seeds] regret from round `since` on."""
    totals = []
    for seed in SEEDS:
        here = world(kind, seed, noise=noise)
        played = play(policy(name, **settings), here.contexts, here.rewards(), here.expected, seed=seed)
        totals.append(played.regret[since:].sum())
    return np.array(totals)


def is_below(one, other):
    gap = other - one
    return gap.mean() > MARGIN * gap.std(ddof=1) / np.sqrt(len(gap))


def shares_in(kind):
    here = world(kind, SEEDS[0], noise=0.02)
    belief = play(policy(), here.contexts, here.rewards(), here.expected).bandit.state.belief
    with jax.enable_x64(True):
        shares = np.asarray(weights(belief.inner, SHARPNESS) * slopes(belief.inner))
        return shares / shares.sum()


def test_in_a_linear_world_the_linear_model_decides_and_regret_is_lin_ucbs():
    assert shares_in("linear")[LINEAR].sum() > 0.9
    ours, linear, chance = (regrets("linear", name, since=30) for name in ("neural-mix", "lin-ucb", "uniform"))
    assert (ours - linear).mean() < 0.005 * chance.mean()  # after the first lesson; before it nothing is known
    assert (chance - linear).mean() > 0.5 * chance.mean(), "which chance is not"


@pytest.mark.slow
def test_in_a_bent_world_the_quadratic_model_decides():
    assert shares_in("bent")[QUADRATIC].sum() > 0.9
    ours = regrets("bent")
    assert is_below(ours, regrets("bent", "lin-ucb"))
    assert is_below(ours, regrets("bent", **EQUAL)), "to weigh by errors helps"


def test_in_a_wavy_world_a_network_decides():
    assert shares_in("wave")[:3].sum() > 0.9
    assert is_below(regrets("wave"), regrets("wave", "lin-ucb"))


@pytest.mark.slow
def test_where_the_world_turns_those_that_forget_find_it_out():
    assert is_below(regrets("turn", recent=30), regrets("turn", recent=0))
    assert not is_below(regrets("linear", recent=0), regrets("linear", recent=30)), "and cost nothing where it does not"


@pytest.mark.slow
def test_where_contexts_say_nothing_no_weights_help_and_nothing_is_worse_than_chance():
    ours = regrets("blind")
    assert not is_below(ours, regrets("blind", **EQUAL))
    assert not is_below(regrets("blind", "uniform"), ours)
    assert is_below(regrets("linear"), regrets("linear", "uniform")), "where they say something the test finds it"


def test_a_regression_with_more_than_256_features_is_left_out():
    for dim, members in ((300, 3), (30, 5), (DIM, 7)):
        bandit = OnlineBandit(policy(dim=dim), schedule="20")
        generator = np.random.default_rng(1)
        for _ in range(40):
            contexts = generator.normal(size=(ARMS, dim)).astype(np.float32)
            decision = bandit.select(contexts)
            bandit.observe(decision.id, float(contexts[decision.position, 0]))
        inner = bandit.state.belief.inner
        assert 3 + len(inner.regressions) == len(inner.errors) == members
        assert (bandit.health().learned, bandit.health().diverged) == (2, 0)
        assert np.isfinite(decision.score).all()


@cache
def taught():
    """A policy in units of its own, its belief after 24 rewards and a lesson, and more contexts and rewards."""
    here, made = world("bent", 3, noise=0.02), policy(width=8, steps=20)
    belief, history = made.init(jax.random.key(0)), empty(np.zeros(DIM, np.float32), capacity=64)
    contexts, rewards = here.contexts[:, 0].astype(np.float32), 1000 + 30 * here.rewards()[:, 0].astype(np.float32)
    for context, reward in zip(contexts[:24], rewards[:24], strict=True):
        belief, history = made.observe(belief, context, reward), append(history, context, reward)
    return made, made.learn(jax.random.key(1), belief, history)[0], history, contexts[24:], rewards[24:]


def decide(made, belief, contexts):
    available = jnp.ones(len(contexts), bool)
    return remember(made, belief, contexts, available, made.select(jax.random.key(2), belief, contexts, available))


def test_members_are_judged_by_what_they_predicted_when_the_arm_was_chosen():
    made, before, _, contexts, rewards = taught()
    noted = decide(made, before, contexts[:ARMS])
    later = before
    for context, reward in zip(contexts[:20], rewards[:20], strict=True):
        later = made.observe(later, context, reward)
    late = made.observe(later, noted, rewards[0])
    scaled = float(scale_reward(before.rewards, jnp.float32(rewards[0])))
    expected = 0.998 * later.inner.errors + (slopes(later.inner) * noted.note[2:] - scaled) ** 2
    assert_allclose(late.inner.errors, expected, rtol=1e-5)
    assert_allclose(late.inner.products, 0.998 * later.inner.products + noted.note[2:] * scaled, rtol=1e-4, atol=1e-5)
    assert_allclose(late.inner.squares, 0.998 * later.inner.squares + noted.note[2:] ** 2, rtol=1e-5)
    forgotten = made.observe(later, noted.context, rewards[0])
    assert not np.allclose(forgotten.inner.errors, expected, rtol=1e-3), "the control: predictions of when it came"


def test_a_note_changes_nothing_where_the_reward_comes_at_once():
    made, belief, _, contexts, rewards = taught()
    noted = decide(made, belief, contexts[:ARMS])
    with_note, without = (made.observe(belief, each, rewards[0]) for each in (noted, noted.context))
    jax.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-5, atol=1e-6), with_note, without)


def test_predictions_in_units_that_have_changed_are_not_known_any_more():
    made, belief, history, contexts, rewards = taught()
    noted = decide(made, belief, contexts[:ARMS])
    for context, reward in zip(contexts[:24], rewards[:24] * 100, strict=True):
        belief, history = made.observe(belief, context, reward), append(history, context, reward)
    changed, _ = made.learn(jax.random.key(3), belief, history)
    assert changed.settled > belief.settled
    assert fingerprint(made.observe(changed, noted, 5.0)) == fingerprint(made.observe(changed, noted.context, 5.0))


@pytest.mark.slow
def test_where_noise_is_four_times_what_can_be_learned_the_mixture_learns_it(monkeypatch):
    def final_regrets(**settings):
        return run("neural-mix", "h3", rounds=2000, seeds=6, preset="default", **settings).regret[:, -1]

    ours, chance = final_regrets(), run("uniform", "h3", rounds=2000, seeds=6, preset="default").regret[:, -1]
    gap = chance - ours
    assert gap.mean() > 5 * gap.std(ddof=1) / np.sqrt(len(gap))
    monkeypatch.setattr(mixture, "TRUST", 1e9)  # as if all that was predicted had come true
    plain = final_regrets(discount=0.9980001)  # another number, so that another program is made
    assert (plain - ours).mean() > 0.5 * gap.mean(), "the control, without slopes, learns less than half of it"
