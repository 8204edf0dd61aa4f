"""What a caller gives: refused with the argument, its value and the cure, and nothing has changed."""

from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit, build
from neuralucb.policy import Slot
from tests.online.helpers import ARMS, DIM, PLAIN, bandit, contexts, fingerprint, linear, make


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
        (one.ids.id_of(99), "was never made"),
        ("nonsense", "not of this bandit"),
    ):
        with pytest.raises(ValueError, match=why):
            one.observe(wrong, 1.0)
        with pytest.raises(ValueError, match=why):
            one.observe_many([waiting.id, wrong], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"got a Decision itself; pass its id: decision\.id"):
        one.observe(waiting, 1.0)
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
def test_other_bad_calls_are_refused_with_a_message(call):
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
        ({"reward_range": (1, 0)}, r"reward_range must be two finite numbers, the lower first, got \(1, 0\)"),
        ({"reward_range": (0, 0)}, "reward_range must be"),
        ({"reward_range": (0, float("inf"))}, "reward_range must be"),
        ({"reward_range": 1}, "reward_range must be"),
        ({"reward_range": "01"}, "reward_range must be"),
        ({"reward_range": (0, 1, 2)}, "reward_range must be"),
        ({"reward_range": (0, 1), "outside": "drop"}, "outside must be one of refuse, clip, got 'drop'"),
        ({"outside": "clip"}, "outside goes with reward_range"),
        ({"journal": 5}, "journal must be a folder's path, got 5"),
        ({"journal": ""}, "journal must be a folder's path, got ''; \".\" is the current one"),
    ],
)
def test_bad_settings_are_refused(settings, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=why):
        OnlineBandit(make(), **settings)


def test_a_policy_that_memory_does_not_hold_is_refused_with_a_cure():
    with pytest.raises(InputError, match="neural-ucb, with these settings, needs .* GB are free; take a smaller"):
        OnlineBandit(build("neural-ucb", dim=3, width=10**6))


def test_anything_but_a_policy_is_refused():
    with pytest.raises(ValueError, match="policy must be made by build, or be your own Policy, got 'lin-ucb'"):
        OnlineBandit("lin-ucb")


def test_numpy_numbers_are_accepted():
    one = OnlineBandit(make("lin-ucb"), floor=np.float32(0.5), seed=np.int64(3))
    assert one.expire(np.int64(0)) == 0


def test_a_policy_not_made_by_build_needs_an_example():
    with pytest.raises(ValueError, match="example"):
        OnlineBandit(make()._replace(origin=None))


DATES = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")
RAGGED = [[1.0, 2.0], [1.0]]


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda one: one.select([["1", "2", "3"]]), "contexts must be .*encode"),
        (lambda one: one.select(np.array([["1", "2", "3"]])), "contexts must be .*encode"),
        (lambda one: one.select(DATES[None]), "contexts must be .*encode"),
        (lambda one: one.select([[date(2020, 1, 1)] * DIM]), "contexts must be .*encode"),
        (lambda one: one.select(np.array([["1", "2", "3"]], object)), "contexts must be .*encode"),
        (lambda one: one.select([np.array(["1", "2", "3"], object)]), "contexts must be .*encode"),
        (lambda one: one.select([[b"1", b"2", b"3"]]), "contexts must be .*encode"),
        (lambda one: one.select([np.array([b"1", 2.0, 3.0], object)]), "contexts must be .*encode"),
        (lambda one: one.select([np.array([np.timedelta64(1, "D")] * DIM, object)]), "contexts must be .*encode"),
        (lambda one: one.select([np.array([None, 2.0, 3.0], object)]), "contexts must be .*encode"),
        (lambda one: one.select(np.ones((ARMS, DIM), complex)), "contexts must be .*encode"),
        (lambda one: one.select([[1j, 2.0, 3.0]]), "contexts must be .*encode"),
        (lambda one: one.select(np.ones((ARMS, DIM), [("a", float)])), "contexts must be .*encode"),
        (lambda one: one.select_many([[["1", "2", "3"]]]), "contexts must be .*encode"),
        (lambda one: one.select([[10**400] * DIM]), "contexts must be"),
        (lambda one: one.select(RAGGED), "contexts must be"),
        (lambda one: one.select({"x": 1, 2: 3}), "contexts must be"),
        (lambda one: one.select_many([RAGGED, RAGGED]), "contexts must be"),
        (lambda one: one.select(["1"]), "shared context must be .*encode"),
        (lambda one: one.select(DATES[:1]), "shared context must be .*encode"),
        (lambda one: one.select([1.0], arms=5), "arms must be a list of ids, got 5"),
        (lambda one: one.select([1.0], available=RAGGED), "available must be"),
        (lambda one: one.add_arm("b", ["1", "2"]), "features of arm 'b' must be .*encode"),
        (lambda one: one.add_arm("b", DATES[:2]), "features of arm 'b' must be .*encode"),
        (lambda one: one.add_arm("b", RAGGED), "features of arm 'b' must be"),
        (lambda one: one.observe_many(RAGGED, [1.0, 2.0]), "is not of this bandit"),
        (lambda one: one.observe_many(np.array("x"), [1.0]), "decision_ids must be"),
        (lambda one: one.observe(f"{one.name}-{'9' * 5000}", 1.0), "is not of this bandit"),
        (lambda one: one.observe(7, 1.0), "is not of this bandit"),
        (lambda one: one.observe_many(["x"], RAGGED), "rewards must be"),
        (lambda one: one.observe_many(["x"], DATES[:1]), "rewards must be"),
        (lambda one: one.observe_many(["x"], np.array(["1"], object)), "rewards must be"),
        (lambda one: one.fit(np.zeros((2, DIM)), None, RAGGED), "rewards must be"),
        (lambda one: one.fit(np.zeros((2, DIM)), None, 1.0), "rewards must be a list"),
        (lambda one: one.fit(RAGGED, ["a", "a"], [1.0, 2.0]), "contexts must be 2 rows"),
        (lambda one: one.fit([["x"], ["y"]], ["a", "a"], [1.0, 2.0]), "shared context must be .*encode"),
        (lambda one: one.fit(np.zeros((2, 1)), RAGGED, [1.0, 2.0]), "arms must be"),
        (lambda one: OnlineBandit(make()._replace(origin=None), example="x"), "example must be"),
        (lambda one: OnlineBandit(make()._replace(origin=None), example=DATES), "example must be"),
    ],
)
def test_what_numpy_or_json_would_refuse_is_an_input_error_and_changes_nothing(call, argument):
    one = bandit()
    one.add_arm("a", [1.0, 2.0])
    before = fingerprint(one)
    with pytest.raises(InputError, match=argument):
        call(one)
    assert fingerprint(one) == before


def test_true_and_false_and_objects_that_are_numbers_are_contexts():
    plain = np.asarray([[1.0, 0.0, 2.0], [0.0, 1.0, 0.5]])
    objects = np.asarray([[True, 0, Decimal(2)], [False, 1.0, np.float32(0.5)]], object)
    scores = [OnlineBandit(linear()).select(each).score for each in (plain, objects, objects.tolist())]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])
    OnlineBandit(linear()).select(np.ones((2, DIM), bool))


def test_what_is_masked_is_missing_not_what_stands_under_the_mask():
    one = bandit()
    decision, before = one.select(np.ma.masked_greater(contexts(), np.inf)), fingerprint(one)
    hidden = np.ma.masked_array(contexts(), mask=np.eye(ARMS, DIM, dtype=bool))
    with pytest.raises(InputError, match="contexts must be finite, in float32, got NaN"):
        one.select(hidden)
    with pytest.raises(InputError, match="contexts must be"):
        one.fit(hidden, None, np.ones(ARMS))
    with pytest.raises(InputError, match="reward must be a finite number, got nan"):
        one.observe_many([decision.id], np.ma.masked_array([5], mask=[True]))
    assert fingerprint(one) == before


LARGE = np.full((ARMS, DIM), 1e30, np.float32)
"""Finite, but no network can multiply it."""


def unscaled(**settings):
    """A bandit whose policy takes contexts as they are given."""
    return OnlineBandit(make(**PLAIN), schedule="10", **settings)


@pytest.mark.parametrize("counted", [False, True])
def test_contexts_whose_scores_overflow_are_refused_and_change_nothing(counted):
    one, other = unscaled(count_pending=counted), unscaled(count_pending=counted)
    one.select(contexts()), other.select(contexts())
    before = fingerprint(one)
    with pytest.raises(
        InputError, match=r"contexts must be small .* up to 1e\+30: the width of arm 0 would be .*units"
    ):
        one.select(LARGE)
    batch = contexts(1, 5, ARMS)
    batch[3, 2] = LARGE[0]
    with pytest.raises(InputError, match=r"the width of arm 2 in request 3 would be"):
        one.select_many(batch)
    assert fingerprint(one)[1] == before[1]
    assert one.health()[:2] == (1, 1)
    np.testing.assert_array_equal(one.select(contexts(2)).score, other.select(contexts(2)).score)
    assert other.select(contexts(3)).id.endswith("-2")
    assert one.select(contexts(3)).id.endswith("-2")  # no number is lost: a restart would not know of it


def test_an_arm_that_is_not_available_may_have_any_context():
    row = contexts()
    row[1] = LARGE[1]
    one = unscaled()
    assert one.select(row, available=np.arange(ARMS) != 1).position != 1
    with pytest.raises(InputError, match="the width of arm 1"):  # the control
        one.select(row)


def test_a_refused_request_leaves_nothing_in_the_journal(tmp_path):
    with unscaled(journal=tmp_path / "journal") as one:
        one.select(contexts())
        with pytest.raises(InputError, match="small enough"):
            one.select(LARGE)
        scores = [one.select(contexts(seed)).score for seed in (1, 2)]
    with unscaled(journal=tmp_path / "other") as other:
        np.testing.assert_array_equal([other.select(contexts(seed)).score for seed in (0, 1, 2)][1:], scores)
    with unscaled(journal=tmp_path / "journal") as again:
        assert again.health()[:2] == (3, 3)


def test_one_request_that_the_belief_refuses_does_not_spoil_the_others_of_a_batch():
    """Raw timestamps can be scored by LinUCB, but its Z cannot absorb them."""
    good = contexts(0, 4, ARMS)
    bad = good.copy()
    bad[0] = 1.7e9
    alone = OnlineBandit(linear(), count_pending=True).select_many(good[1:])
    after = OnlineBandit(linear(), count_pending=True).select_many(bad)[1:]
    np.testing.assert_allclose([each.score for each in after], [each.score for each in alone], rtol=1e-6)
    one = OnlineBandit(linear(), count_pending=True)
    one.select(bad[0])
    np.testing.assert_allclose(one.select(good[1]).score, alone[0].score, rtol=1e-6)
