"""The scale of rewards: normalized for the policy, denormalized for the caller, without losing digits."""

import numpy as np
import pytest

from neuralucb import OnlineBandit
from tests.online.helpers import ARMS, DIM, contexts, make


def test_rewards_keep_their_digits():
    one = OnlineBandit(make("lin-ucb"), normalize=True, learning="manual")
    rewards = 1e9 + np.arange(7)
    one.fit(contexts(0, 7), None, rewards)
    np.testing.assert_array_equal(one.state.observations.in_window()[1], rewards)
    assert one.state.moments.deviation == pytest.approx(2.0)


def test_rewards_of_any_scale_are_learned_and_decisions_denormalized():
    def best_arms(scale, shift, normalize):
        one = OnlineBandit(make(steps=100, units="given"), schedule="20", normalize=normalize)
        right = 0
        for row in contexts(0, 300, ARMS):
            decision = one.select(row)
            one.observe(decision.id, scale * float(row[decision.position, 0]) + shift)
            right += decision.position == int(np.argmax(row[:, 0]))
        return right, decision

    large, decision = best_arms(1e4, -5e5, True)
    assert large > 180
    assert (abs(decision.mean + 5e5) < 1e5).all()
    small, _ = best_arms(1e-4, 0, True)
    assert small > 180
    raw, _ = best_arms(1e-4, 0, False)
    assert raw < 150  # the control: unscaled, such rewards drown in exploration


@pytest.mark.parametrize("count", [3, 7, 13])
def test_equal_rewards_have_no_scale_even_if_they_are_rounded(count):
    one = OnlineBandit(make("lin-ucb"), normalize=True, learning="manual")
    ids = [one.select(np.ones((2, DIM))).id for _ in range(count)]
    one.observe_many(ids, [0.1] * count)
    assert one.state.moments.deviation == 1
