"""Compiled programs: few of them, and none in the steady state."""

import jax
import numpy as np
import pytest

from neuralucb import OnlineBandit
from tests.online.helpers import ARMS, contexts, new_policy, play


@pytest.mark.parametrize("counted", [False, True])
def test_batches_over_new_arms_compile_nothing_either(counted):
    one = OnlineBandit(new_policy(), learning="manual", count_pending=counted)
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.select([1.0])
    one.select_many([[1.0], [2.0]])
    compiled = one.health().compiled
    for arm in range(5, 8):
        one.add_arm(np.int64(arm), [float(arm), 0.0])
        assert one.select([1.0], arms=np.arange(arm)).arm < arm
        one.select_many([[1.0], [2.0]])
    assert one.health().compiled == compiled


def test_new_arms_compile_nothing_up_to_the_next_power_of_two():
    one = OnlineBandit(new_policy(), learning="manual")
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.select([1.0])
    compiled = one.health().compiled
    for arm in range(5, 8):
        one.add_arm(arm, [float(arm), 0.0])
        one.select([1.0])
    one.remove_arm(0)
    one.select([1.0])
    assert one.health().compiled == compiled


def test_nothing_is_compiled_in_the_steady_state():
    one = OnlineBandit(new_policy(), schedule="10")
    one.warm_up(arms=ARMS, decisions=8)
    compiled = one.health().compiled
    play(one, 40)
    one.select_many(contexts(0, 8, ARMS))
    assert one.health().compiled == compiled


@pytest.mark.parametrize("settings", [{"floor": 0.31}, {"window": 300, "normalize": True, "floor": 0.32}])
def test_observing_compiles_nothing_not_even_where_the_history_doubles(settings):
    """A floor that no other test has: programs are shared between bandits with the same policy and floor."""
    compiled = []

    def listen(name, seconds, **_):
        if "backend_compile" in name or "cache_retrieval" in name:
            compiled.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        one = OnlineBandit(new_policy("lin-ucb"), schedule="50", **settings)
        one.warm_up(arms=ARMS, observations=600)
        assert compiled
        compiled.clear()
        play(one, 600)
        one.health()
        assert not compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("counted", [False, True])
def test_warm_up_compiles_for_batches_and_arms_by_id_too(counted):
    one = OnlineBandit(new_policy("lin-ucb"), count_pending=counted, learning="manual")
    for arm in range(5):
        one.add_arm(arm, [float(arm), 0.0])
    one.warm_up(decisions=2)
    compiled = one.health().compiled
    one.select([1.0])
    one.select(contexts(0, 5))
    one.select_many([[1.0], [2.0]])
    one.select_many(contexts(0, 2, 5))
    assert one.health().compiled == compiled
