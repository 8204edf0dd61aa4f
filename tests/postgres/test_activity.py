"""Recent activity, read from the tables."""

import numpy as np
import pytest

from neuralucb import InputError
from neuralucb.service.postgres import activity
from neuralucb.service.store import Candidate, Reward, Settings
from neuralucb.service.values import value_of
from tests.postgres.helpers import PLAN, eventually, learning, opened, request


@pytest.fixture
def store(address):
    with opened(address) as store:
        yield store


def test_outcomes_are_the_decisions_as_they_were_answered(store, address):
    allowed = np.array([False, True, True])
    asked = [request(f"e{number}", allowed=allowed) for number in range(40)]
    answers = store.decide(asked)
    store.reward([Reward(f"e{number}", float(number % 2)) for number in range(40)])
    found = store.activity().outcomes
    assert sorted(each.reward for each in found) == [0.0] * 20 + [1.0] * 20
    by_chance = sorted((each.arm, round(each.propensity, 9)) for each in found)
    assert by_chance == sorted(
        (each.arms[each.position], round(each.propensities[each.position], 9)) for each in answers
    )
    assert {each.allowed for each in found} == {2}
    assert all(each.first_propensity + each.propensity == pytest.approx(1) for each in found if not each.is_first)
    assert value_of(found).served.value == 0.5
    with learning(address, plan=PLAN) as learner:
        learner.step()
        learner.step()
    assert all(lesson.promoted for lesson in store.activity().lessons)


def test_an_imposed_arm_has_no_alternative(store):
    store.decide([request("imposed", imposed=2)])
    (found,) = store.activity().outcomes
    assert (found.propensity, found.first_propensity, found.least_propensity, found.explored) == (1, 0, 0, False)


def test_many_decisions_are_sampled(store, monkeypatch):
    monkeypatch.setattr(activity, "MOST", 8)
    store.decide([request(f"e{number}") for number in range(64)])
    found = store.activity().outcomes
    assert {each.stands_for for each in found} == {8}
    assert 1 <= len(found) <= 8


def test_settings_of_an_operator_are_read_as_they_were_written(store, address):
    store.configure(Settings(excluded=("a", "b"), pinned="c"))
    with opened(address) as other:
        assert other.settings() == Settings(excluded=("a", "b"), pinned="c")


def test_the_floor_is_changed_in_all_replicas_and_the_schedule_in_the_learner(store, address):
    with opened(address) as other, learning(address) as learner:
        store.configure(Settings(floor=1.0, schedule="2"))
        eventually(lambda: other.settings().floor == 1.0)
        for replica in (store, other):
            (answer,) = replica.decide([request(f"{replica.name}")])
            assert answer.propensities == pytest.approx([1 / 3] * 3)
        store.decide([request("a"), request("b")])
        store.reward([Reward("a", 1.0), Reward("b", 1.0)])
        learner.step()
        assert learner._state.counts["learned"] == 1
        store.configure(Settings())
        assert store.decide([request("later")])[0].propensities.max() > 0.9


def test_candidates_are_refused_with_words(store):
    with pytest.raises(InputError, match="not over PostgreSQL"):
        store.put_candidate("wide", Candidate())
    assert store.candidates() == []
    assert not store.remove_candidate("wide")
