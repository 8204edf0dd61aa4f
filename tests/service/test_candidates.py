"""Candidates: they learn from the same traffic, are valued before they learn, harm nothing, and can be promoted."""

import time

import numpy as np
import pytest

from neuralucb import InputError, StorageError
from neuralucb.policy import fingerprint
from neuralucb.service import candidates
from neuralucb.service.candidate import Shadow
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.progressive import Tally, Watch
from neuralucb.service.store import Candidate, Plan, Request, Reward

PLAN = Plan("lin-ucb", slots=4, floor=1.0)
"""Decides uniformly, so that every candidate can be valued."""
OTHER = Candidate("lin-ucb", {"exploration": 0.1}, floor=0.0)


def request(number, arms=3):
    contexts = np.random.default_rng(number).normal(size=(arms, 4)).astype(np.float32)
    names = tuple(f"arm {arm}" for arm in range(arms))
    return Request(f"e{number}", contexts, names, np.ones(arms, bool), b"{}", b"0" * 16)


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Stores whose candidates work when the test calls `step`."""
    monkeypatch.setattr(candidates, "LOOK_SECONDS", 3600.0)
    stores = []

    def open_it(plan=PLAN):
        for store in stores:
            store.close()
        stores.append(EmbeddedStore(tmp_path / "store", plan, arms=4))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def serve(store, numbers, *, reward=lambda context: float(context[0] > 0)):
    """Decisions, rewarded by the context of the arm used; the candidates follow."""
    for first in range(0, len(numbers), 8):
        asked = [request(number) for number in numbers[first : first + 8]]
        answers = store.decide(asked)
        pairs = zip(asked, answers, strict=True)
        given = [Reward(each.event_id, reward(each.contexts[answer.position])) for each, answer in pairs]
        store.reward(given)
        store._candidates.step()


def belief(store):
    store._bandit.state.absorb_buffer()
    return fingerprint(store._bandit.state.belief)


def shadow(store, name):
    return store._candidates._shadows[name]


def test_a_candidate_learns_what_the_bandit_learns_and_is_valued_higher_than_chance(opened):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(400))
    (report,) = store.candidates()
    assert report.observations == 400
    assert report.failure is None
    values = report.values
    assert report.decisions >= 380  # all but those before its first lesson
    assert values["candidate"].low > values["served"].high  # it knows what pays, and what decides is uniform
    assert values["difference"].low > 0
    assert values["uniform"].value == pytest.approx(values["served"].value, abs=1e-6)
    assert fingerprint(shadow(store, "greedy").state.belief) == belief(store)  # the same algorithm, the same rewards


def test_promotion_keeps_what_both_have_learned_and_there_is_a_way_back(opened):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(64))
    before = belief(store)
    store.decide([request(1000)])
    store.promote("greedy")
    assert store.deciding()[0] == "greedy"
    assert store.settings().floor == 0
    assert [each.name for each in store.candidates()] == ["original"]
    assert fingerprint(shadow(store, "original").state.belief) == before
    with pytest.raises(InputError, match="another policy was adopted"):
        store.rollback(1)
    assert store.reward([Reward("e1000", 1.0)]) == ["learned"]
    serve(store, range(100, 140))
    after, total = belief(store), store._bandit.state.observations.total
    for _ in range(2):  # from the journal, then from the snapshot
        store = opened()
        assert store.deciding()[0] == "greedy"
        assert belief(store) == after
        assert store.settings().floor == 0
        store.snapshot()
    store._candidates.step()
    store.promote("original")
    assert store.settings().floor == PLAN.floor
    assert store._bandit.state.observations.total == total
    assert [each.name for each in store.candidates()] == ["greedy"]


def test_a_candidate_that_notes_decisions_can_be_promoted_while_others_wait(opened):
    store = opened()
    store.put_candidate("cover", Candidate("online-cover"))
    store.decide([request(number) for number in range(500, 510)])
    serve(store, range(40))
    store.promote("cover")
    serve(store, range(40, 60))
    assert store.reward([Reward(f"e{number}", 0.5) for number in range(500, 510)]) == ["learned"] * 10
    after = belief(store)
    store = opened()
    assert belief(store) == after
    store._candidates.step()
    store.promote("original")
    serve(store, range(60, 80))


def test_candidates_survive_a_restart_with_their_values(opened):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(100))
    before = store.candidates()[0]
    store = opened()
    store._candidates.step()
    after = store.candidates()[0]
    assert (after.decisions, after.observations, after.since) == (before.decisions, 100, before.since)
    assert fingerprint(shadow(store, "greedy").state.belief) == belief(store)
    serve(store, range(100, 140))
    assert store.candidates()[0].decisions == before.decisions + 40


def test_what_was_removed_is_not_known_to_the_policy_that_was_replaced_before_it_learned_again(opened):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(40))
    with store._bandit.between_lessons:  # nothing is learned again yet
        assert store.forget([f"e{number}" for number in range(20)], None, None, None) == (20, 0)
        store.promote("greedy")
        assert shadow(store, "original").state.observations.total == 0
    end = time.monotonic() + 20
    while store._bandit.state.relearns and time.monotonic() < end:
        time.sleep(0.01)
    store._candidates.step()
    assert shadow(store, "original").state.observations.total == 20
    assert fingerprint(shadow(store, "original").state.belief) == belief(store)


def test_a_full_disk_keeps_nothing_from_being_closed(opened, monkeypatch):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(8))

    def fail(self, folder):
        raise StorageError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Shadow, "save", fail)
        store.close()
    assert shadow(opened(), "greedy").failure is None


def test_a_candidate_that_fails_says_so_and_harms_nothing(opened, monkeypatch):
    store = opened()
    store.put_candidate("good", OTHER)
    store.put_candidate("broken", OTHER._replace(schedule="7"))
    learn = Shadow.learn

    def fail(self, *args):
        if self.name == "broken":
            raise MemoryError("too large")
        return learn(self, *args)

    monkeypatch.setattr(Shadow, "learn", fail)
    serve(store, range(40))
    reports = {each.name: each for each in store.candidates()}
    assert "broken was stopped: MemoryError: too large" in reports["broken"].failure
    assert reports["good"].failure is None
    assert reports["good"].observations == 40
    assert store.health().failure is None
    with pytest.raises(InputError, match="must not have failed"):
        store.promote("broken")


def test_candidates_that_cannot_be_are_refused(opened):
    store = opened()
    for candidate, words in (
        (Candidate("linucb"), "lin-ucb"),
        (Candidate("lin-ucb", {"width": 3}), "width"),
        (Candidate("lin-ucb", {"dim": 9}), "options must not set dim"),
        (Candidate("oracle"), "cannot decide from features alone"),
        (Candidate("neural-ucb", {"width": 10**6}), "GB are free; take a smaller network"),
    ):
        with pytest.raises(InputError, match=words):
            store.put_candidate("x", candidate)
    assert not store._book.candidates
    with pytest.raises(InputError, match="which decides"):
        store.put_candidate("original", OTHER)
    with pytest.raises(InputError, match="there is no candidate 'x'"):
        store.promote("x")
    for number in range(candidates.MOST):
        assert store.put_candidate(f"c{number}", OTHER)
    with pytest.raises(InputError, match="at most 4"):
        store.put_candidate("more", OTHER)
    assert not store.put_candidate("c0", OTHER)
    assert store.remove_candidate("c0")
    assert not store.remove_candidate("c0")


def test_rewards_are_counted_in_the_order_of_decisions_and_a_busy_service_is_sampled(opened):
    store = opened()
    store._candidates.watch = watch = Watch(most=64)
    store._book.resolved = watch.resolve
    store.put_candidate("greedy", OTHER)
    serve(store, range(16))
    store.decide([request(100)])  # waits
    serve(store, range(16, 24))
    counted = store.candidates()[0].decisions
    serve(store, range(24, 32))
    assert store.candidates()[0].decisions == counted
    store.reward([Reward("e100", 1.0)])
    store._candidates.step()
    assert store.candidates()[0].decisions == counted + 17
    store.decide([request(number) for number in range(200, 300)])
    assert len(watch._watched) <= 64
    assert {each.stands_for for each in watch._watched.values()} == {2}


def test_what_was_kept_of_a_tally_is_read_again():
    tally = Tally.nothing()
    assert Tally.from_json(tally.as_json()).as_json() == tally.as_json()


def test_a_candidate_follows_a_rollback_and_a_removal(opened):
    store = opened()
    store.put_candidate("greedy", OTHER)
    serve(store, range(40))
    number = store.snapshot().number
    serve(store, range(40, 80))
    store.rollback(number)
    store._candidates.step()
    assert shadow(store, "greedy").state.observations.total == 40
    assert fingerprint(shadow(store, "greedy").state.belief) == belief(store)
    assert store.candidates()[0].decisions == 0  # valued anew
    serve(store, range(80, 120))
    assert store.forget(["e3", "e90"], None, None, None) == (2, 0)
    end = time.monotonic() + 20
    while store._bandit.state.relearns and time.monotonic() < end:
        time.sleep(0.01)
    store._candidates.step()
    assert shadow(store, "greedy").state.observations.total == 78
    assert fingerprint(shadow(store, "greedy").state.belief) == belief(store)
