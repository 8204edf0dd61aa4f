"""Events: each is decided once, gets its reward once, and says so to whoever asks again."""

import threading

import numpy as np
import orjson
import pytest

from neuralucb import InputError
from neuralucb.service.store import Arm, Refusal, Reward, Settings
from tests.postgres.helpers import PLAN, eventually, follow_by_hand, learning, opened, request, rows


@pytest.fixture
def store(address):
    with opened(address) as store:
        yield store


def test_an_event_is_decided_once_and_a_repeat_is_answered_the_same(store, address):
    (first,) = store.decide([request("a")])
    with opened(address) as other:
        (again,) = other.decide([request("a")])
    assert again.repeated
    assert not first.repeated
    np.testing.assert_array_equal(again.propensities, first.propensities)
    assert again._replace(repeated=False, propensities=None, score=None) == first._replace(
        propensities=None, score=None
    )
    assert rows(address, "SELECT count(*) FROM decisions") == [(1,)]


def test_another_request_with_the_same_event_id_is_a_conflict(store):
    answers = store.decide([request("a"), request("a", digest=b"x" * 16), request("a")])
    assert isinstance(answers[1], Refusal)
    assert answers[1].code == "conflict"
    assert (answers[0].repeated, answers[2].repeated) == (False, True)
    (later,) = store.decide([request("a", digest=b"x" * 16)])
    assert later.code == "conflict"


def test_requests_with_different_numbers_of_arms_are_decided_together(store):
    asked = [request(f"e{arms}", arms) for arms in (2, 9, 3, 1, 5)]
    for answer, each in zip(store.decide(asked), asked, strict=True):
        assert answer.arms == each.arms
        assert answer.propensities.sum() == pytest.approx(1)
        assert answer.propensities[answer.position] > 0
        assert np.isfinite(answer.score).all()


def test_only_allowed_arms_are_chosen_and_an_imposed_one_always(store):
    allowed = np.array([False, True, True])
    answers = store.decide([request(f"e{number}", allowed=allowed) for number in range(20)])
    assert all(answer.position != 0 and answer.propensities[0] == 0 for answer in answers)
    (imposed,) = store.decide([request("imposed", imposed=2)])
    assert imposed.position == 2
    assert imposed.propensities.tolist() == [0, 0, 1]


def test_features_that_cannot_be_scored_are_refused_and_others_are_not(store, monkeypatch):
    score = store._deciding.programs.choose_many

    def without_numbers(first, belief, contexts, available, *, capacity):
        made = score(first, belief, contexts, available, capacity=capacity)
        made.rows[np.abs(contexts).max(axis=(1, 2)) > 1e30, 0] = np.nan
        return made

    monkeypatch.setattr(store._deciding.programs, "choose_many", without_numbers)
    huge = request("huge")._replace(contexts=np.full((3, 4), 2e30, np.float32))
    refused, answer = store.decide([huge, request("a")])
    assert refused.code == "invalid"
    assert "2e+30" in refused.message
    assert answer.event_id == "a"
    assert store.explain("huge") is None


def test_text_that_postgresql_cannot_hold_is_refused_or_unknown(store):
    odd = "a\0b"
    asked = [request(odd), request("x", user="\ud800"), request("y"), request("z")._replace(arms=("a", "b", odd))]
    answers = store.decide(asked)
    assert [getattr(answer, "code", None) for answer in answers] == ["invalid", "invalid", None, "invalid"]
    assert store.reward([Reward(odd, 1.0), Reward("y", 1.0, odd)]) == ["unknown", "learned"]
    assert store.activate([odd]) == ["unknown"]
    assert store.explain(odd) is None
    assert store.assign_slots([odd, "fine"]) == {"fine": 0}
    with pytest.raises(InputError, match="without NUL"):
        store.put_arm(Arm(odd, {}))
    assert store.put_arm(Arm("arm", {odd: odd}))
    assert store.arms() == [Arm("arm", {odd: odd})]


def test_the_first_reward_is_learned_and_later_ones_are_not(store, address):
    store.decide([request("a"), request("b")])
    given = [Reward("a", 1.0), Reward("a", 5.0), Reward("nobody", 1.0)]
    assert store.reward(given) == ["learned", "repeated", "unknown"]
    explained = store.explain("a")
    assert (explained.status, explained.reward) == ("observed", 1.0)
    assert orjson.loads(explained.features) == request("a").features
    assert store.explain("b").status == "waiting"
    assert store.health().counters["repeated"] == 1
    assert rows(address, "SELECT value, fate FROM rewards ORDER BY value") == [(1.0, "learned"), (5.0, "repeated")]


def test_time_that_is_up_brings_the_default_reward_or_the_sum(store, address):
    store.configure(Settings(aggregation="sum", wait_seconds=0.3, default_reward=-1.0))
    store.decide([request("a"), request("b"), request("c", deferred=True)])
    given = [Reward("a", 1.0, "x"), Reward("a", 2.0), Reward("a", 9.0, "x")]
    assert store.reward(given) == ["kept", "kept", "repeated"]
    with learning(address) as learner:
        learner.step()
        assert store.explain("a").status == "waiting"
        threading.Event().wait(0.4)
        assert store.reward([Reward("b", 7.0)]) == ["late"]
        learner.step()
    assert [store.explain(event)[4:6] for event in "abc"] == [("observed", 3.0), ("defaulted", -1.0), ("expired", None)]
    assert store.reward([Reward("a", 1.0), Reward("b", 1.0)]) == ["late", "late"]
    assert store.activate(["c", "a", "nobody"]) == ["late", "repeated", "unknown"]
    assert rows(address, "SELECT count(*) FROM outcomes WHERE position IS NOT NULL") == [(2,)]


def test_a_deferred_event_counts_once_it_is_activated(store):
    store.decide([request("a", deferred=True), request("b", deferred=True)])
    assert store.reward([Reward("a", 2.0), Reward("a", 3.0)]) == ["kept", "repeated"]
    assert store.explain("a").status == "inactive"
    assert store.activate(["a", "b", "a"]) == ["activated", "activated", "repeated"]
    assert (store.explain("a").status, store.explain("a").reward) == ("observed", 2.0)
    assert store.reward([Reward("b", 1.0)]) == ["learned"]


def test_a_reward_whose_transaction_commits_late_is_not_missed(store, address):
    """Its row is older than those that the learner has seen already: a learner that asks for newer rows skips it."""
    store.decide([request("slow"), request("fast")])
    links = store._links["rewards"]
    with learning(address) as learner:
        with links.transaction() as cursor:
            cursor.execute("SELECT give_reward('slow', 1.0, 'call:1', 'earliest')")
            with opened(address) as other:
                other.reward([Reward("fast", 1.0)])
            learner.step()
            assert store.explain("fast").status == "observed"
        learner.step()
    found = rows(address, "SELECT event_id, learned_as FROM events ORDER BY learned_as")
    assert found == [("fast", 1), ("slow", 2)]


def test_many_replicas_that_reward_the_same_events_are_all_told_and_one_counts(address):
    names = [f"e{number}" for number in range(40)]
    fates = []
    with opened(address) as first, opened(address) as second:
        first.decide([request(name) for name in names])

        def give(store, ordered):
            fates.extend(store.reward([Reward(name, 1.0) for name in ordered]))

        threads = [threading.Thread(target=give, args=pair) for pair in ((first, names), (second, names[::-1]))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(fates) == ["learned"] * 40 + ["repeated"] * 40


def test_replicas_agree_on_the_slots_of_features(address):
    with opened(address) as first, opened(address) as second:
        results = {}

        def assign(store, names):
            results[store.name] = store.assign_slots(names)

        stores = (first, ["x", "y"]), (second, ["y", "z"])
        threads = [threading.Thread(target=assign, args=pair) for pair in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        known = first.vocabulary()
        assert sorted(known) == ["x", "y", "z"]  # of four slots one is for names that are hashed
        assert first.assign_slots(["w", "z"]) == {"z": known.index("z")}
        for result in results.values():
            assert all(known[slot] == name for name, slot in result.items())


def test_arms_and_settings_are_the_same_for_all_replicas(address):
    with opened(address) as first, opened(address) as second:
        assert first.put_arm(Arm("boots", {"price": 3}))
        assert first.put_arm(Arm("hat", {"price": 2}))
        assert not second.put_arm(Arm("boots", {"price": 4}))
        eventually(lambda: first.arms() == second.arms())
        assert first.arms() == [Arm("boots", {"price": 4}), Arm("hat", {"price": 2})]
        assert first.remove_arm("hat")
        assert not first.remove_arm("hat")
        changed = Settings(mode="apprentice", reward_range=(0.0, 1.0))
        first.configure(changed)
        eventually(lambda: second.settings() == changed, 1.0)
        with pytest.raises(InputError, match="wait_seconds"):
            first.configure(Settings(aggregation="sum", wait_seconds=None))


def test_what_was_read_before_a_change_does_not_undo_it(address):
    with opened(address) as store:
        follower, changed = follow_by_hand(store), Settings(excluded=("arm 1",))
        read = follower._link.run

        def read_and_change(work, **others):
            found = read(work, **others)
            store.configure(changed)
            store.put_arm(Arm("boots", {}))
            return found

        follower._link.run = read_and_change
        follower.fetch()
        assert (store.settings(), store.arms()) == (changed, [Arm("boots", {})])
        follower._link.run = read
        follower.fetch()
        assert (store.settings(), store.arms()) == (changed, [Arm("boots", {})])


def test_a_schema_of_another_size_is_refused(store, address):
    with pytest.raises(InputError, match="slots must be 4"), opened(address, plan=PLAN._replace(slots=16)):
        pass


def test_a_role_that_owns_a_schema_and_nothing_else_is_enough(server):
    with server.connected() as connection:
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute("REVOKE CREATE ON DATABASE postgres FROM plain")
        connection.execute("CREATE SCHEMA owned AUTHORIZATION plain")
    with opened(server.address.replace("postgres@", "plain@") + "&schema=owned", role="all") as store:
        store.decide([request("a")])
        assert store.reward([Reward("a", 1.0)]) == ["learned"]
        eventually(lambda: store.health().counters["observed"] == 1 and store.learner.lease.epoch is not None)
