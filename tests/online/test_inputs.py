"""What a caller gives: refused with the argument, its value and the cure, and nothing has changed."""

import numpy as np
import pytest

from neuralucb import OnlineBandit
from neuralucb.policy import Slot
from tests.online.helpers import ARMS, DIM, bandit, contexts, fingerprint, make


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 1e300, 10**400, "many", "1", 1j, None])
def test_a_bad_reward_is_refused_and_changes_nothing(reward):
    one = bandit()
    good, other = one.select(contexts()), one.select(contexts())
    before = fingerprint(one)
    with pytest.raises(ValueError, match="reward"):
        one.observe(good.id, reward)
    with pytest.raises(ValueError, match="reward"):
        one.observe_many([other.id, good.id], [1.0, reward])
    assert fingerprint(one) == before


def test_unknown_second_and_foreign_rewards_are_refused_and_change_nothing():
    one, other = bandit(), bandit()
    decision, foreign = one.select(contexts()), other.select(contexts())
    waiting = one.select(contexts())
    one.observe(decision.id, 1.0)
    before = fingerprint(one)
    for wrong, why in (
        (decision.id, "already has its reward"),
        (foreign.id, "not of this bandit"),
        (f"{one.name}-99", "was never made"),
        ("nonsense", "not of this bandit"),
    ):
        with pytest.raises(ValueError, match=why):
            one.observe(wrong, 1.0)
        with pytest.raises(ValueError, match=why):
            one.observe_many([waiting.id, wrong], [1.0, 1.0])
    with pytest.raises(ValueError, match="distinct"):
        one.observe_many([waiting.id, waiting.id], [1.0, 1.0])
    with pytest.raises(ValueError, match="1 numbers"):
        one.observe_many([waiting.id], [1.0, 2.0])
    assert fingerprint(one) == before


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (np.zeros((ARMS, DIM + 1)), "an array .arms, 3., got shape .4, 4."),
        (np.zeros(DIM), "got shape .3,.; if arms share it, add arms first"),
        (np.full((ARMS, DIM), 1e300), "finite, in float32"),
        ([[1e300] * DIM], "finite, in float32"),
        (np.zeros((0, DIM)), "got none"),
        (np.full((ARMS, DIM), np.nan), "finite"),
        ([[1.0, 2.0], [1.0]], "equally many"),
        ([["a", "b", "c"]], "numbers"),
        ({"x": np.zeros((ARMS, DIM))}, "got a dict"),
        (Slot(np.zeros((ARMS, DIM)), np.zeros(ARMS)), "got a Slot"),
        (None, "add arms first"),
    ],
)
def test_bad_contexts_are_refused_with_what_was_expected_and_got(given, why):
    one = bandit()
    before = fingerprint(one)
    with pytest.raises(ValueError, match=why):
        one.select(given)
    assert fingerprint(one) == before


@pytest.mark.parametrize(
    ("mask", "why"), [(np.zeros(ARMS, bool), "at least one"), (np.ones(3, bool), "shape .4,."), ([1] * 4, "booleans")]
)
def test_a_bad_mask_is_refused(mask, why):
    with pytest.raises(ValueError, match=why):
        bandit().select(contexts(), available=mask)


@pytest.mark.parametrize(
    "call",
    [
        lambda one: one.fit(None, ["a"], [1.0]),
        lambda one: one.fit([[1.0]], ["a", "b"], [1.0]),
        lambda one: one.expire("1h"),
        lambda one: one.add_arm("q", {"x": 1}),
        lambda one: one.observe_many(None, [1.0]),
        lambda one: one.observe_many("abc", [1.0]),
        lambda one: one.select_many([["a"]]),
        lambda one: one.warm_up(arms=-3),
        lambda one: one.select({"x": 1}),
        lambda one: one.select([1.0], arms="ab"),
    ],
)
def test_other_bad_calls_are_refused_in_words(call):
    one = bandit()
    one.add_arm("a", [1.0, 2.0])
    with pytest.raises(ValueError, match="must be"):
        call(one)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"learning": "often"}, "learning must be one of"),
        ({"schedule": "never"}, "schedule must be"),
        ({"window": 0}, "window"),
        ({"normalize": "no"}, "normalize must be True or False, got 'no'"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"schedule": "100!"}, "must not forget"),
        ({"sync": "often"}, "sync must be one of"),
        ({"journal": 5}, "journal must be a folder's path, got 5"),
    ],
)
def test_bad_settings_are_refused(settings, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=why):
        OnlineBandit(make(), **settings)


def test_what_is_no_policy_is_refused():
    with pytest.raises(ValueError, match="policy must be made by build, or be your own Policy, got 'lin-ucb'"):
        OnlineBandit("lin-ucb")


def test_numbers_of_numpy_are_numbers():
    one = OnlineBandit(make("lin-ucb"), floor=np.float32(0.5), seed=np.int64(3))
    assert one.expire(np.int64(0)) == 0


def test_a_policy_of_ones_own_needs_an_example():
    with pytest.raises(ValueError, match="example"):
        OnlineBandit(make()._replace(origin=None))
