"""The embedded store: the life of an event, restarts, repeats, and a vocabulary that is never lost."""

import multiprocessing
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit, StorageError
from neuralucb.features import Encoder
from neuralucb.service import embedded
from neuralucb.service.arm_sizes import OFTEN
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.events import read_rows
from neuralucb.service.store import Answer, Arm, Plan, Refusal, Request, Reward, Settings

PLAN = Plan("lin-ucb", slots=8, floor=0.2)


class Clock:
    """Time that tests set."""

    def __init__(self):
        self.now = 1e9
        self.set_back = 0.0
        """seconds by which it was set back so far"""

    def time(self):
        return self.now

    def monotonic(self):
        return self.now + self.set_back


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(embedded, "time", made)
    return made


@pytest.fixture
def opened(tmp_path):
    stores = []

    def open_it(**changes):
        for store in stores:
            store.close()
        stores.append(EmbeddedStore(tmp_path / "store", PLAN, arms=2))
        if changes:
            stores[-1].configure(Settings(**changes))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def request(event_id, arms=("a", "b"), *, digest=b"0" * 16, allowed=None, **more):
    contexts = np.eye(8, dtype=np.float32)[: len(arms)]
    allowed = np.ones(len(arms), bool) if allowed is None else np.array(allowed)
    return Request(event_id, contexts, tuple(arms), allowed, {}, digest, **more)


def eventually(condition):
    """Wait until it holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def total(store):
    return store._bandit.state.observations.total


def rewards_learned(store):
    return store._bandit.state.observations.in_window()[1].tolist()


def test_a_decision_has_propensities_that_sum_to_one_and_is_the_same_when_repeated(opened):
    store = opened()
    (answer,) = store.decide([request("e1")])
    assert isinstance(answer, Answer)
    assert answer.propensities.sum() == pytest.approx(1)
    assert answer.propensities[answer.position] > 0
    again, other = store.decide([request("e1"), request("e1", digest=b"1" * 16)])
    assert again.repeated
    assert again[:4] == (*answer[:3], pytest.approx(answer.propensities))
    assert isinstance(other, Refusal)
    assert other.code == "conflict"
    assert store.health().counters["decisions"] == 1


def test_two_requests_with_one_event_id_in_a_batch_are_one_event(opened):
    store = opened()
    first, second, other = store.decide([request("e"), request("e"), request("e", digest=b"x" * 16)])
    assert first.position == second.position
    assert (first.repeated, second.repeated) == (False, True)
    assert other.code == "conflict"
    assert store.health().counters["decisions"] == 1


def test_arms_that_are_not_allowed_have_no_chance_and_an_imposed_one_has_all(opened):
    store = opened()
    answers = store.decide([request(f"e{i}", allowed=[False, True]) for i in range(20)])
    assert {answer.position for answer in answers} == {1}
    assert answers[0].propensities.tolist() == [0, 1]
    (imposed,) = store.decide([request("i", imposed=0)])
    assert imposed.position == 0
    assert imposed.propensities.tolist() == [1, 0]
    assert imposed.preferred in (0, 1)


def test_the_first_reward_is_learned_and_later_ones_are_not(opened):
    store = opened()
    store.decide([request("e")])
    assert store.reward([Reward("e", 1.0), Reward("e", 5.0), Reward("nobody", 1.0)]) == [
        "learned",
        "repeated",
        "unknown",
    ]
    assert store.reward([Reward("e", 7.0)]) == ["repeated"]
    assert rewards_learned(store) == [1]
    assert store.explain("e").status == "observed"
    assert store.explain("e").reward == 1


def test_sums_are_learned_when_time_is_up_and_a_reward_id_counts_once(opened, clock):
    store = opened(aggregation="sum", wait_seconds=10.0)
    store.decide([request("e")])
    assert store.reward([Reward("e", 1.0, "r1"), Reward("e", 2.0), Reward("e", 1.0, "r1")]) == [
        "kept",
        "kept",
        "repeated",
    ]
    store = opened()  # sums survive a restart
    assert store.reward([Reward("e", 4.0), Reward("e", 1.0, "r1")]) == ["kept", "repeated"]
    assert total(store) == store.settle() == 0
    clock.now += 10
    assert store.reward([Reward("e", 8.0)]) == ["late"]
    assert store.settle() == 1
    assert rewards_learned(store) == [7]
    assert store.reward([Reward("e", 8.0), Reward("e", 1.0, "r1")]) == ["late", "repeated"]
    assert store.health().counters["late"] == 2


def test_events_without_a_reward_get_the_default_also_after_a_restart(opened, clock):
    store = opened(default_reward=-0.5, wait_seconds=60.0)
    store.decide([request("e1"), request("e2")])
    store.reward([Reward("e2", 3.0)])
    store = opened()
    clock.now += 59
    assert store.settle() == 0
    clock.now += 2
    store = opened()
    assert store.settle() == 1
    assert rewards_learned(store) == [3, -0.5]
    assert store.explain("e1").status == "defaulted"
    assert store.reward([Reward("e1", 9.0)]) == ["late"]
    assert store.settle() == 0


def test_a_deferred_event_counts_once_it_is_activated(opened, clock):
    store = opened(wait_seconds=60.0)
    store.decide([request(f"e{i}", deferred=True) for i in range(3)])
    assert store.reward([Reward("e0", 2.0)]) == ["kept"]
    assert total(store) == 0
    clock.now += 50
    store = opened()
    assert store.activate(["e0", "e1", "e1", "nobody"]) == ["activated", "activated", "repeated", "unknown"]
    assert rewards_learned(store) == [2]
    clock.now += 20
    assert store.activate(["e2"]) == ["late"]
    assert store.settle() == 1  # e2, which nobody activated: nothing is learned
    assert store.explain("e2").status == "expired"
    clock.now += 60
    assert store.settle() == 1
    assert rewards_learned(store) == [2, 0]
    assert store.health().gauges["pending"] == 0
    assert len(store._bandit.state.ledger.pending) == 0


def test_a_clock_that_is_set_back_keeps_deadlines_and_health(opened, clock):
    store = opened(wait_seconds=60.0)
    store.decide([request("e")])
    assert store.health().gauges["pending"] == 1
    clock.now, clock.set_back = clock.now - 3600, 3600
    assert store.reward([Reward("e", 1.0)]) == ["learned"]
    clock.now += 2
    health = store.health()
    assert health.gauges["pending"] == 0
    assert 0 <= health.gauges["model_age_seconds"] < 60


def test_the_vocabulary_arms_and_settings_survive_a_restart(opened):
    store = opened(mode="apprentice")
    encoder = Encoder(8, store.vocabulary(), assign=store.assign_slots)
    rows = encoder.encode({"a": 1.0}, [{"b": "x"}, {"b": "y"}])
    assert store.put_arm(Arm("x", {"price": 1}))
    assert store.put_arm(Arm("y", None))
    assert not store.put_arm(Arm("x", {"price": 2}))
    assert store.remove_arm("y")
    assert not store.remove_arm("y")
    for _ in range(2):
        store = opened()
        again = Encoder(8, store.vocabulary(), assign=store.assign_slots)
        assert again.encode({"a": 1.0}, [{"b": "x"}, {"b": "y"}]).tolist() == rows.tolist()
        assert store.arms() == [Arm("x", {"price": 2})]
        assert store.settings().mode == "apprentice"
        store.snapshot()


def test_a_restart_from_a_snapshot_knows_every_event(opened, clock):
    store = opened(wait_seconds=60.0)
    answers = store.decide([request(f"e{i}", arms=("a", "b", "c")[: 1 + i % 3]) for i in range(30)])
    store.reward([Reward(f"e{i}", float(i)) for i in range(10)])
    store.snapshot()
    store.decide([request("after")])
    store = opened()
    again = store.decide([request(f"e{i}", arms=("a", "b", "c")[: 1 + i % 3]) for i in range(30)])
    for before, after in zip(answers, again, strict=True):
        assert after.repeated
        assert before[:3] == after[:3]
        np.testing.assert_array_equal(before.propensities, after.propensities)
        np.testing.assert_array_equal(before.score, after.score)  # to the last of its 64 bits
    assert store.explain("after").status == "waiting"
    assert store.reward([Reward("e3", 1.0), Reward("e20", 1.0)]) == ["repeated", "learned"]
    clock.now += 61
    assert store.settle() == 20


def test_events_long_resolved_are_forgotten(opened):
    store = opened()
    store._book._remembered = 5
    for index in range(12):
        store.decide([request(f"e{index}")])
        store.reward([Reward(f"e{index}", 1.0)])
    assert len(store._book.events) == 5
    assert store.reward([Reward("e0", 1.0), Reward("e11", 1.0)]) == ["unknown", "repeated"]
    store.snapshot()
    assert opened().explain("e11").reward == 1


def test_rollback_returns_to_a_snapshot_and_keeps_events(opened):
    store = opened()
    store.decide([request("e1"), request("e2")])
    store.reward([Reward("e1", 1.0)])
    record = store.snapshot()
    store.reward([Reward("e2", 1.0)])
    assert total(store) == 2
    assert store.rollback(record.number).observations == 1
    assert total(store) == 1
    assert store.explain("e2").status == "observed"
    assert [each.number for each in store.snapshots()][-1] == record.number
    with pytest.raises(InputError, match="snapshot must be one of"):
        store.rollback(99)
    assert total(opened()) == 1


def test_rollbacks_go_to_the_snapshot_that_is_named_back_and_forth(opened):
    store, numbers = opened(), []
    for index in range(4):
        store.decide([request(f"e{index}")])
        store.reward([Reward(f"e{index}", 1.0)])
        numbers.append(store.snapshot().number)
    for index in (3, 1, 0, 2, 2, 0):
        assert store.rollback(numbers[index]).number == numbers[index]
        assert total(store) == index + 1
    assert total(opened()) == 1


def test_what_is_begun_before_others_end_is_decided_once_and_answered_in_order(opened):
    store = opened()
    first, second = store.begin([request("a"), request("b")]), store.begin([request("b"), request("c")])
    assert store.health().counters["decisions"] == 0
    answers = [*first(), *second()]
    assert [each.event_id for each in answers] == ["a", "b", "b", "c"]
    assert [each.repeated for each in answers] == [False, False, True, False]
    assert answers[1].position == answers[2].position
    numbers = [store._book.events[name].number for name in "abc"]
    assert len(set(numbers)) == 3
    assert opened().begin([request("c")])()[0].repeated  # a restart knows them


def test_a_request_that_cannot_be_scored_is_refused_alone(opened):
    store = opened()
    huge = request("huge")._replace(contexts=np.full((2, 8), np.nan, np.float32))
    fine, refused = store.decide([request("fine"), huge])
    assert isinstance(fine, Answer)
    assert refused.code == "invalid"
    assert store.explain("huge") is None


def test_a_plain_bandit_refuses_the_folder_of_a_service(opened, tmp_path):
    store = opened()
    store.decide([request("e")])
    store.close()
    with pytest.raises(StorageError, match="belongs to a decision service"):
        OnlineBandit.load(tmp_path / "store")
    assert opened().explain("e") is not None


def test_events_a_period_and_an_arm_are_removed_and_the_model_is_learned_again(opened, clock):
    store = opened(wait_seconds=60.0)
    clock.now = 1e9
    store.decide([request(f"e{index}") for index in range(20)])
    store.reward([Reward(f"e{index}", float(index)) for index in range(16)])
    arms = {f"e{index}": store.explain(f"e{index}").answer for index in range(20)}
    assert store.forget(["e3", "e17", "e3"], None, None, None) == (1, 1)
    wait_until(lambda: not store._bandit.state.relearns)
    assert 3.0 not in rewards_learned(store)
    assert store.explain("e17").status == "expired"
    assert store.reward([Reward("e17", 1.0)]) == ["late"]
    left = [f"e{index}" for index in range(20) if index not in (3, 17)]
    chosen = [event for event in left if arms[event].arms[arms[event].position] == "a"]
    rewarded = [float(event[1:]) for event in chosen if int(event[1:]) < 16]
    store = opened()
    assert store.forget(None, 0.0, None, "a") == (len(rewarded), len(chosen) - len(rewarded))
    wait_until(lambda: not store._bandit.state.relearns)
    assert not set(rewarded) & set(rewards_learned(store))
    assert {each.arm for each in store.activity().outcomes} == {"b"}
    with pytest.raises(InputError, match="there is no event 'nobody'"):
        store.forget(["nobody"], None, None, None)
    assert store.forget(None, 0.0, None, None).observations == 15 - len(rewarded)
    wait_until(lambda: not store._bandit.state.relearns)
    assert rewards_learned(store) == []
    assert total(opened()) == 0


def test_a_removal_may_be_repeated_and_lets_rewards_pass_while_it_waits_for_a_lesson(opened):
    store = opened()
    store.decide([request(f"e{index}") for index in range(8)])
    store.reward([Reward(f"e{index}", float(index)) for index in range(4)])
    lesson, removed = store._bandit.between_lessons, []
    removing = threading.Thread(target=lambda: removed.append(store.forget(["e1"], None, None, None)))
    rewarding = threading.Thread(target=store.reward, args=([Reward("e5", 5.0)],))
    with lesson:
        removing.start()
        time.sleep(0.05)
        rewarding.start()
        rewarding.join(5.0)
        assert not rewarding.is_alive()
        assert not removed
    removing.join()
    assert removed == [(1, 0)]
    assert store.forget(["e1", "e7"], None, None, None) == (0, 1)
    assert store.forget(["e1", "e7"], None, None, None) == (0, 0)


def test_deadlines_of_events_that_have_their_reward_do_not_pile_up(opened, clock):
    store = opened(wait_seconds=1e9)
    store._book._remembered = 20
    for first in range(0, 400, 8):
        names = [f"e{number}" for number in range(first, first + 8)]
        store.decide([request(name) for name in names])
        store.reward([Reward(name, 1.0) for name in names[1:]])  # one in eight waits
    assert store._book.open == 50
    assert len(store._book._due) <= 2 * 50 + 20
    clock.now += 1e9
    assert store.settle() == 50


def test_events_that_wait_are_found_while_others_are_decided(opened):
    book = opened()._book

    class Decided:
        @property
        def status(self):
            book.events[f"e{len(book.events)}"] = Decided()
            return "observed"

    book.events["e"] = Decided()
    assert book.waiting((0.0, 1e10), "a") == []
    book.events.clear()


def wait_until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_answer_is_the_same_to_the_last_bit_when_it_is_read_again():
    generator = np.random.default_rng(0)
    for size in (2, 7, 10, 16, 24):
        rows = generator.random((9, 4 * size + 4)).astype(np.float32)
        rows[:, -4:] = generator.integers(size, size=(9, 4))
        allowed = generator.random((9, size)) < 0.7
        counts = generator.integers(1, size + 1, size=9).tolist()
        many = list(read_rows(rows, allowed, counts))
        for row, (chosen, shares, score, preferred) in enumerate(many):
            (one,) = read_rows(rows[row : row + 1], allowed[row : row + 1], counts[row : row + 1])
            assert (one[0], one[3]) == (chosen, preferred)
            np.testing.assert_array_equal(one[1], shares)
            np.testing.assert_array_equal(one[2], score)


def test_a_new_store_starts_its_process_of_lessons_before_it_is_ready_and_a_restart_knows_its_arms(tmp_path):
    with closing(EmbeddedStore(tmp_path, PLAN, arms=4, learning="process")) as store:
        store.warm_up()
        process = store._bandit.lesson_process
        assert len(multiprocessing.active_children()) == 1
        eventually(lambda: process.has_prepared([256, 512]))  # it is ready after some seconds in any case
        for first in range(0, OFTEN, 16):
            store.decide([request(f"e{first + number}", ("a", "b", "c")) for number in range(16)])
    assert not multiprocessing.active_children()
    with closing(EmbeddedStore(tmp_path, PLAN, arms=4, learning="process")) as store:
        store.warm_up()
        eventually(lambda: 3 in store._sizes.ready)
        assert store._sizes.of(3) == 3
