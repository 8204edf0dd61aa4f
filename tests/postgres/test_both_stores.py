"""The two stores give the same answers to the same calls, in whatever order they come."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from neuralucb import InputError
from neuralucb.service import embedded
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.store import Arm, Refusal, Reward, Settings
from tests.postgres.helpers import PLAN, follow_by_hand, learning, opened, request, rows

WAIT = 1000.0
"""Time passes in steps of 300 s, so that the seconds which the test itself takes never reach a deadline."""


class Embedded:
    """The store in a folder, with a clock of the test's."""

    def __init__(self, store, clock):
        self.store, self._clock = store, clock

    def settle(self):
        self.store.settle()

    def wait(self, seconds):
        self._clock.now += seconds

    def learned(self):
        return sorted(self.store._bandit.state.observations.in_window()[1].tolist())


class Database:
    """The store in PostgreSQL, with a learner that works when it is told to; deadlines come instead of time passing."""

    def __init__(self, store, learner, address):
        self.store, self._learner, self._address = store, learner, address

    def settle(self):
        self._learner.step()

    def wait(self, seconds):
        rows(self._address, "UPDATE outcomes SET due_at = due_at - make_interval(secs => %s)", seconds)

    def learned(self):
        statement = "SELECT reward FROM outcomes WHERE status IN ('observed', 'defaulted')"
        return sorted(reward for (reward,) in rows(self._address, statement))


class Clock:
    def __init__(self):
        self.now = 1e9

    def time(self):
        return self.now

    monotonic = time


@pytest.fixture
def both(address, tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(embedded, "time", clock)
    folder = EmbeddedStore(tmp_path / "store", PLAN, arms=4)
    try:
        with opened(address) as store, learning(address) as learner:
            follow_by_hand(store)
            yield Embedded(folder, clock), Database(store, learner, address)
    finally:
        folder.close()


def kind(answer):
    """What must be the same of two decisions: not the arm, which is drawn."""
    if isinstance(answer, Refusal):
        return answer.code
    return answer.event_id, answer.arms, answer.repeated, answer.propensities.tolist().count(0.0)


def fate(store, event):
    found = store.explain(event)
    return None if found is None else (found.status, found.reward, found.user)


def some_decisions(draw):
    def one():
        more = {"deferred": draw.random() < 0.3, "user": draw.choice([None, "u/ü"])}
        if draw.random() < 0.2:
            more["digest"] = b"x" * 16
        if draw.random() < 0.2:
            more["imposed"] = 1
        return request(draw.choice(EVENTS), 1 + draw.randrange(2, 5), **more)

    return [one() for _ in range(draw.randrange(1, 4))]


def some_rewards(draw):
    ids = [None, "r1", "r2 %2F/ü"]
    return [
        Reward(draw.choice(EVENTS), float(draw.randrange(-4, 9)), draw.choice(ids)) for _ in range(draw.randrange(1, 5))
    ]


EVENTS = ["plain", "a/b", "100%", "%2F", "Zoë \U0001f600", "x" * 256, " ", "'; --", "e1", "e2", "e3", "e4"]


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_calls_is_answered_alike(both, seed):
    draw = random.Random(seed)
    for each in both:
        each.store.configure(Settings(wait_seconds=WAIT, default_reward=-0.5))
    for _ in range(120):
        action = draw.choice(
            ["decide", "decide", "reward", "reward", "reward", "activate", "wait", "settle", "settings"]
        )
        if action == "decide":
            asked = some_decisions(draw)
            answers = [[kind(answer) for answer in each.store.decide(asked)] for each in both]
        elif action == "reward":
            given = some_rewards(draw)
            answers = [each.store.reward(given) for each in both]
        elif action == "activate":
            events = [draw.choice(EVENTS) for _ in range(draw.randrange(1, 4))]
            answers = [each.store.activate(events) for each in both]
        elif action == "settings":
            settings = Settings(wait_seconds=WAIT, default_reward=-0.5, aggregation=draw.choice(["earliest", "sum"]))
            answers = [each.store.configure(settings) for each in both]
        else:
            answers = [each.wait(300.0) if action == "wait" else each.settle() for each in both]
        assert answers[0] == answers[1], action
        if action == "wait":
            continue  # until they are settled, events whose time is up look as before
        assert [fate(both[0].store, event) for event in EVENTS] == [fate(both[1].store, event) for event in EVENTS]
    assert both[0].learned() == both[1].learned()
    assert both[0].learned()


def test_arms_and_settings_are_kept_alike(both):
    for each in both:
        store = each.store
        assert [store.put_arm(Arm(arm, features)) for arm, features in (("b", {"x": 1}), ("a", None), ("b", [{}]))] == [
            True,
            True,
            False,
        ]
        assert store.arms() == [Arm("b", [{}]), Arm("a", None)]
        assert (store.remove_arm("a"), store.remove_arm("a")) == (True, False)
        store.configure(Settings(mode="apprentice", reward_range=(-1.0, 2.0)))
        assert store.settings() == Settings(mode="apprentice", reward_range=(-1.0, 2.0))
        assert store.assign_slots(["a=1", "b", "a=1"]) == {"a=1": 0, "b": 1}
        assert store.assign_slots(["c", "a=1"]) == {"c": 2, "a=1": 0}
        assert store.vocabulary() == ["a=1", "b", "c"]
        assert store.assign_slots(["d"]) == {}


def test_changes_of_settings_at_once_are_both_kept(both):
    for each in both:
        changes = [lambda before, rate=rate: before._replace(rate=before.rate + rate) for rate in range(1, 9)]
        each.store.configure(Settings(rate=1.0))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(each.store.amend, changes))
        assert each.store.settings().rate == 37


def test_snapshots_are_pinned_alike(both):
    for each in both:
        each.store.decide([request("e1")])
        each.store.reward([Reward("e1", 1.0)])
        each.settle()
        number = each.store.snapshot().number
        assert each.store.pin(number).pinned
        assert [record.pinned for record in each.store.snapshots() if record.number == number] == [True]
        assert not each.store.pin(number, pinned=False).pinned
        with pytest.raises(InputError, match="number must be"):
            each.store.pin(10**9)
