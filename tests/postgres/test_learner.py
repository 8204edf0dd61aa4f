"""The learner: the beliefs of an OnlineBandit, one at a time, taken over where it stopped."""

import json
import multiprocessing

import numpy as np
import pytest

from neuralucb import OnlineBandit, build, fingerprint
from neuralucb.runtime.errors import InputError
from neuralucb.service.postgres import lease as leases, models
from neuralucb.service.postgres.lease import DeposedError
from neuralucb.service.store import Reward, Settings
from tests.postgres.helpers import (
    PLAN,
    contexts_of,
    eventually,
    follow_by_hand,
    learning,
    newest_belief,
    opened,
    replayed,
    request,
    rows,
)


def give(store, events, value=1.0):
    store.decide([request(event) for event in events])
    store.reward([Reward(event, value) for event in events])


def as_reward(event):
    return float(contexts_of(event)[0, 0] > 0)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        PLAN._replace(window=25),
        PLAN._replace(algorithm="neural-ucb", options={"width": 4, "steps": 5}, floor=0.0),
    ],
    ids=["linear", "window", "neural"],
)
def test_decisions_and_beliefs_are_those_of_an_online_bandit(address, plan):
    policy = build(plan.algorithm, dim=plan.slots, **plan.options)
    bandit = OnlineBandit(policy, seed=plan.seed, schedule=plan.schedule, floor=plan.floor, window=plan.window)
    with opened(address, plan=plan) as store, learning(address, plan=plan) as learner:
        follower = follow_by_hand(store)
        for number in range(45):
            event = f"e{number}"
            (answer,) = store.decide([request(event)])
            decision = bandit.select(contexts_of(event))
            assert answer.position == decision.position
            np.testing.assert_allclose(answer.score, decision.score, rtol=1e-5)
            store.reward([Reward(event, as_reward(event))])
            bandit.observe(decision.id, as_reward(event))
            learner.step()
            learner._published_at = 0.0
            learner._publishing = 0.0
            learner._publish_if_due()
            follower.fetch()
            assert fingerprint(follower.served.belief) == fingerprint(bandit.state.belief)
    assert bandit.health().learned == 4


def test_a_replica_serves_a_new_model_within_a_second_of_the_lesson(address):
    import time

    with opened(address, role="all") as store:
        give(store, [f"e{number}" for number in range(12)])
        began = time.monotonic()
        while not rows(address, "SELECT 1 FROM lessons") and time.monotonic() < began + 20:
            time.sleep(0.01)
        learned = time.monotonic()
        while store._follower.served.version < 13 and time.monotonic() < learned + 5:
            time.sleep(0.01)
        assert time.monotonic() - learned < 1.0
        assert store.health().role == "learner"


def test_a_learner_that_takes_over_continues_with_the_same_belief(address):
    """The first dies between claiming rewards and publishing what it learned from them."""
    with opened(address) as store:
        with learning(address, "first") as first:
            give(store, [f"a{number}" for number in range(15)])
            first.step()
            give(store, [f"b{number}" for number in range(15)], 0.5)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(first, "_absorb", lambda batch: None)
                first.step()
        with learning(address, "second") as second:
            second._published_at = 0.0
            second._publish_if_due()
            give(store, [f"c{number}" for number in range(15)])
            second.step()
        arrays, model = newest_belief(address)
        assert model.position == 45
        assert [count for (count,) in rows(address, "SELECT observations FROM lessons ORDER BY number")] == [15, 30, 45]
        assert fingerprint(arrays) == fingerprint(replayed(address).state.belief)


def test_the_newest_model_of_a_crashed_server_is_learned_again(address):
    """The row that is not logged is gone, and so is the learner."""
    with opened(address) as store:
        with learning(address, "first") as first:
            give(store, [f"a{number}" for number in range(13)])
            first.step()
            give(store, [f"b{number}" for number in range(4)])
            first.step()
        rows(address, "TRUNCATE live_model")
        with learning(address, "second") as second:
            second.step()
        arrays, model = newest_belief(address)
    assert model.observations == 17
    assert fingerprint(arrays) == fingerprint(replayed(address).state.belief)


def test_only_one_learner_is_elected_until_it_resigns(address):
    with opened(address), learning(address, "first") as first, learning(address, "second", elected=False) as second:
        assert not second.lease.elect()
        first.lease.resign()
        assert second.lease.elect()
        with pytest.raises(DeposedError):
            first.step()


def two_learners(address, monkeypatch):
    """A learner whose connection died while it was learning, and the one that was elected meanwhile; both write."""
    monkeypatch.setattr(leases, "BEAT", 100.0)  # the old one is not to notice
    with opened(address) as store, learning(address, "old") as old:
        give(store, [f"a{number}" for number in range(12)])
        old.step()
        epoch = old.lease.epoch
        rows(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'neuralucb old'")
        with learning(address, "new") as new:
            give(store, [f"b{number}" for number in range(12)])
            new.step()
            model = models.freeze(old._state, epoch=epoch, position=old._position)
            old.lease._lost.clear()  # as if it had not noticed yet
            old.lease._link.execute("SELECT 1")  # it is connected again
            old.lease._connection = old.lease._link.connections  # and does not know that it is another connection
            with old.lease.writing() as cursor:
                models.publish(cursor, model)


def test_a_learner_that_lost_its_lock_cannot_write(address, monkeypatch):
    with pytest.raises(DeposedError):
        two_learners(address, monkeypatch)
    (epoch,) = rows(address, "SELECT epoch FROM live_model")[0]
    assert epoch == 2


def test_without_the_fence_it_would_write_over_the_newer_model(address, monkeypatch):
    """The control: what the fence is for."""
    monkeypatch.setattr(leases, "fence", lambda cursor, epoch: None)
    two_learners(address, monkeypatch)
    (epoch,) = rows(address, "SELECT epoch FROM live_model")[0]
    assert epoch == 1


def test_a_learner_that_shows_no_sign_of_life_is_deposed(address, monkeypatch):
    monkeypatch.setattr(leases, "BEAT", 100.0)
    with opened(address), learning(address, "frozen"), learning(address, "next", elected=False) as other:
        assert not other.lease.elect()
        rows(address, "UPDATE learner SET seen_at = now() - interval '1 minute'")
        assert not other.lease.elect()  # ends the connection of the first
        assert any(other.lease.elect() for _ in range(100))


def test_a_rollback_forgets_what_came_after_a_snapshot_and_can_be_undone(address):
    with opened(address) as store, learning(address) as learner:
        give(store, [f"a{number}" for number in range(12)])
        learner.step()
        early = store.snapshot()
        give(store, [f"b{number}" for number in range(12)], 3.0)
        learner.step()
        late, belief = store.snapshot(), newest_belief(address)[0]
        assert store.rollback(early.number) == early
        with pytest.raises(DeposedError):
            learner.step()
        assert learner.lease.elect()
        learner.load()
        give(store, ["c"])
        learner.step()
        assert learner._state.observations.total == 13
        assert fingerprint(learner._state.belief) == fingerprint(replayed(address).state.belief)
        store.rollback(late.number)
        learner.lease.elect()
        learner.load()
        assert learner._state.observations.total == 24
        assert fingerprint(learner._state.belief) == fingerprint(belief)
        with pytest.raises(InputError, match="number must be that of a snapshot, got 999"):
            store.rollback(999)
        assert store.pin(early.number).pinned


def test_a_damaged_model_is_noticed_and_the_one_before_is_used(address):
    with opened(address) as store, learning(address, "first") as first:
        give(store, [f"a{number}" for number in range(12)])
        first.step()
        rows(address, "UPDATE live_model SET arrays = set_byte(arrays, octet_length(arrays) - 1, 77), version = 99")
        first.lease.resign()
        with learning(address, "second") as second:
            assert second._state.version == 13


def test_paused_learning_absorbs_but_makes_no_lesson(address):
    with opened(address) as store, learning(address) as learner:
        store.configure(Settings(learning=False))
        give(store, [f"a{number}" for number in range(12)])
        learner.step()
        assert learner._state.observations.total == 12
        assert rows(address, "SELECT count(*) FROM lessons") == [(0,)]
        store.configure(Settings())
        learner.step()
        assert rows(address, "SELECT count(*) FROM lessons") == [(1,)]


def test_a_learner_that_also_serves_rests_after_a_lesson_and_goes_on_absorbing(address):
    with opened(address) as store, learning(address) as learner:
        learner._rest.factor = 1e6
        learner._rest.after(1.0, was_compiled=True)  # the first one, which compiles, is not rested for
        give(store, [f"a{number}" for number in range(12)])
        learner.step()
        give(store, [f"b{number}" for number in range(12)])
        learner.step()
        assert learner._state.observations.total == 24
        assert rows(address, "SELECT observations FROM lessons") == [(12,)]
        learner._hold_until = 0.0
        learner.step()
        assert rows(address, "SELECT observations FROM lessons ORDER BY number") == [(12,), (24,)]


def test_models_keep_no_observations(address):
    with opened(address) as store, learning(address) as learner:
        give(store, [f"a{number}" for number in range(12)])
        learner.step()
        (row,) = rows(address, f"SELECT {models.COLUMNS} FROM live_model")
        model = models.Model(*row)
        assert not [name for name in models.arrays_of(model) if name.startswith("history")]
        assert json.loads(model.fields)["total"] == 12


def test_a_learner_that_also_serves_learns_in_a_process_that_is_started_at_its_election(address):
    with opened(address, role="all") as store:
        give(store, [f"a{number}" for number in range(12)])
        eventually(lambda: rows(address, "SELECT count(*) FROM lessons") == [(1,)], 60)
        (process,) = multiprocessing.active_children()
        process.kill()
        process.join()
        give(store, [f"b{number}" for number in range(12)])
        eventually(lambda: rows(address, "SELECT max(position) FROM live_model") == [(24,)])  # without lessons
        assert "ended" in store.health().failure
        store.learner._hold_until = 0.0
        eventually(lambda: rows(address, "SELECT observations FROM lessons ORDER BY number") == [(12,), (24,)], 60)
        eventually(lambda: store.health().failure is None)
    assert not multiprocessing.active_children()
    arrays, _ = newest_belief(address)
    assert fingerprint(arrays) == fingerprint(replayed(address).state.belief)
