"""Arms by id: added, removed, with features or with slots in the network."""

import numpy as np
import pytest

from neuralucb import OnlineBandit
from neuralucb.policy import Slot
from tests.online.helpers import DIM, bandit, fingerprint, make


def test_arms_are_added_and_removed_by_id():
    one = bandit()
    for arm in ("a", "b", 7):
        one.add_arm(arm, [0.1 * len(str(arm)), 1.0])
    decision = one.select([0.5])
    assert decision.arm in ("a", "b", 7)
    one.remove_arm("b")
    assert {one.select([0.5]).arm for _ in range(5)} <= {"a", 7}
    assert one.select([0.5], arms=["a"]).arm == "a"
    assert {d.arm for d in one.select_many([[0.5], [0.2]], arms=["a", 7])} <= {"a", 7}
    one.observe(decision.id, 1.0)
    for call, why in (
        (lambda: one.add_arm("a", [0, 0]), "already exists"),
        (lambda: one.add_arm("c", [0]), "2 numbers"),
        (lambda: one.add_arm("c", [np.nan, 0]), "finite"),
        (lambda: one.add_arm(True, [0, 0]), "a string"),
        (lambda: one.remove_arm("b"), "was not found"),
        (lambda: one.select([0.5], arms=["b"]), "was not found"),
        (lambda: one.select([0.5], arms=[]), "at least one"),
        (lambda: one.select([0.5], arms=["a", "a"]), "distinct"),
        (lambda: one.select([0.5, 0.5]), "1 numbers"),
    ):
        before = fingerprint(one)
        with pytest.raises(ValueError, match=why):
            call()
        assert fingerprint(one) == before


def test_arms_may_have_slots_in_the_network_instead_of_features():
    one = OnlineBandit(make(shared_by=3, encoding="heads"))
    assert one.select([0.1, 0.2, 0.3]).arm in (0, 1, 2)
    for arm in "xyz":
        one.add_arm(arm)
    assert one.select([0.1, 0.2, 0.3]).arm in ("x", "y", "z")
    one.remove_arm("x")
    assert one.select([0.1, 0.2, 0.3], arms=["y"]).arm == "y"
    with pytest.raises(ValueError, match="all 3 slots"):
        one.add_arm("w")
    with pytest.raises(ValueError, match="must be None"):
        one.add_arm("w", [1.0])
    for places, why in (
        ([0, 99], "from 0 to 2"),
        ([-5, 1], "from 0 to 2"),
        ([0, 1.5], "whole numbers"),
        ([0, 2**32], "whole numbers"),
    ):
        with pytest.raises(ValueError, match=why):
            one.select(Slot(np.ones((2, DIM)), np.asarray(places)))


def test_features_of_an_arm_are_a_copy():
    one = OnlineBandit(make("lin-ucb"))
    features = np.ones(2, np.float32)
    one.add_arm("a", features)
    before = one.select(np.ones(DIM - 2)).width
    features[:] = 50
    np.testing.assert_array_equal(one.select(np.ones(DIM - 2)).width, before)
