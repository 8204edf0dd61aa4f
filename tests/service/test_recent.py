"""Recent outcomes: bounded, unbiased while rewards are awaited, the same after a restart; and what they are worth."""

import numpy as np
import pytest

from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.recent import RecentOutcomes
from neuralucb.service.store import Outcome, Plan, Request, Reward, Settings
from neuralucb.service.traffic import SERIES, Traffic
from neuralucb.service.values import LEAST, value_of


def outcome(number, *, arm="a", reward=0.0, propensity=0.5, status="observed", due=None, **more):
    fields = {
        "is_first": arm == "a", "first_propensity": 0.5, "least_propensity": 0.5, "allowed": 2, "explored": False,
    } | more  # fmt: skip
    return Outcome(number, float(number), arm, propensity, status=status, reward=reward, due=due, **fields)


def add_all(recent, outcomes):
    for each in outcomes:
        if recent.wants(each.number):
            recent.add(each)


def test_a_decision_that_waits_is_thinned_out_and_not_forgotten():
    recent = RecentOutcomes(64)
    add_all(recent, [outcome(number, status="waiting", due=number + 500.0) for number in range(1000)])
    kept = recent.listed()
    assert len(kept) <= 64
    assert kept[0].number == 0  # twice as far back as events wait
    assert {each.stands_for for each in kept} == {kept[1].number - kept[0].number}
    assert sum(each.stands_for for each in kept) == pytest.approx(1000 - kept[0].number, rel=0.05)


def test_the_sample_is_as_good_as_all_where_early_rewards_alone_would_mislead():
    """Clicks come at once and the rest after 500 decisions: the newest alone would have a mean near 1."""
    recent, generator = RecentOutcomes(512), np.random.default_rng(0)
    clicked = generator.random(8000) < 0.1
    for number in range(8000):
        if recent.wants(number):
            recent.add(outcome(number, status="waiting", reward=None, due=number + 500.0))
        if clicked[number]:
            recent.change(number, "observed", 1.0, number + 500.0)
        if number >= 500 and not clicked[number - 500]:
            recent.change(number - 500, "defaulted", 0.0, float(number))
    found = value_of(recent.listed())
    error = np.sqrt(0.1 * 0.9 / (found.served.effective))
    assert abs(found.served.value - 0.1) < 5 * error
    naive = np.mean([each.reward for each in recent.listed()[-64:] if each.status != "waiting"])
    assert naive > 0.1 + 5 * error  # the control


def test_the_sample_is_dense_again_when_traffic_falls():
    recent = RecentOutcomes(64)
    add_all(recent, [outcome(number, due=number + 500.0) for number in range(1000)])
    assert recent.listed()[-1].stands_for > 1
    add_all(recent, [outcome(number, due=number + 1.0) for number in range(1000, 20_000)])
    assert {each.stands_for for each in recent.listed()} == {1}


def test_what_is_exported_is_restored():
    recent, restored = RecentOutcomes(64), RecentOutcomes(64)
    add_all(recent, [outcome(number, arm="ab"[number % 2], reward=None, due=None) for number in range(100)])
    recent.change(99, "defaulted", 0.25, 3.0)
    restored.restore(recent.freeze()())
    assert restored.listed() == recent.listed()
    restored.restore({})  # of a version that did not export them
    assert restored.listed() == recent.listed()


def test_estimates_are_snips_as_written_down():
    """Σ w r/Σ w with w = π/p, and the delta method, from the textbook in NumPy."""
    generator = np.random.default_rng(1)
    outcomes, rows = [], []
    for number in range(400):
        first_chance = generator.uniform(0.2, 0.8)
        is_first = generator.random() < first_chance
        chance = first_chance if is_first else 1 - first_chance
        reward = float(generator.random() < (0.3 if is_first else 0.6))
        outcomes.append(
            outcome(
                number, arm="a" if is_first else "b", reward=reward, propensity=chance, first_propensity=first_chance,
                least_propensity=min(chance, 1 - chance),
            )
        )  # fmt: skip
        rows.append((is_first / chance, 0.5 / chance, reward))
    baseline, uniform, reward = np.array(rows).T
    found = value_of(outcomes)
    for w, estimate in ((baseline, found.baseline), (uniform, found.uniform), (np.ones(400), found.served)):
        value = (w * reward).sum() / w.sum()
        error = np.sqrt((w**2 * (reward - value) ** 2).sum()) / w.sum()
        assert estimate.value == pytest.approx(value)
        assert estimate.high - estimate.low == pytest.approx(2 * 1.959964 * error, rel=1e-5)
    assert {arm.id: arm.share for arm in found.arms} == pytest.approx(
        {"a": np.mean(baseline > 0), "b": np.mean(baseline == 0)}
    )


def test_where_choices_are_deterministic_nothing_is_estimated_and_it_says_so():
    sure = {"propensity": 1.0, "first_propensity": 0.0, "least_propensity": 0.0}
    found = value_of([outcome(number, arm="b", reward=1.0, **sure) for number in range(100)])
    assert found.served.value == 1.0
    for each in (found.baseline, found.uniform):
        assert (each.value, each.low, each.high) == (None, None, None)
        assert "nothing can be estimated" in each.words
        assert "floor" in each.words


def test_decisions_after_the_oldest_that_waits_do_not_count():
    outcomes = [outcome(number, reward=0.0) for number in range(100)]
    outcomes += [outcome(100, status="waiting", reward=None, due=1e9)]
    outcomes += [outcome(number, reward=1.0) for number in range(101, 200)]
    found = value_of(outcomes)
    assert (found.complete, found.decisions, found.served.value) == (100, 200, 0.0)
    for_ever = value_of([each._replace(due=None) for each in outcomes])
    assert for_ever.complete == 199
    assert "wait_seconds is not set" in for_ever.words


def test_few_decisions_are_no_number():
    found = value_of([outcome(number) for number in range(LEAST - 1)])
    assert found.served.value is None
    assert "too few" in found.served.words
    assert value_of([]).arms == ()


def test_rates_are_differences_per_minute():
    traffic = Traffic()
    assert traffic.per_minute(0.0, {}) == dict.fromkeys(SERIES)
    for second in range(0, 7200, 5):
        traffic.look(float(second), {"decisions": 2.0 * second})
    now = 7200.0
    assert traffic.per_minute(now, {"decisions": 2 * now})["decisions"] == pytest.approx(120)
    series = traffic.series()
    assert len(series["time"]) == len(series["decisions"]) <= 61
    assert series["decisions"] == pytest.approx([120] * len(series["time"]))
    assert series["time"][-1] - series["time"][0] > 3000


@pytest.mark.parametrize("by_snapshot", [True, False], ids=["snapshot", "journal"])
def test_a_restart_knows_recent_outcomes_and_lessons(tmp_path, by_snapshot):
    plan = Plan("lin-ucb", slots=8, floor=0.2)
    store = EmbeddedStore(tmp_path / "store", plan, arms=2)
    store.configure(Settings(excluded=("c",), pinned="b"))
    answers = []
    for number in range(6):
        allowed = np.array([True, True, False])
        contexts = np.eye(8, dtype=np.float32)[:3]
        request = Request(
            f"e{number}", contexts, ("a", "b", "c"), allowed, b"{}", bytes(16), imposed=1 if number > 3 else None
        )
        answers += store.decide([request])
        store.reward([Reward(f"e{number}", float(number))])
    if by_snapshot:
        store.snapshot()
    before = store.activity()
    store.close()
    again = EmbeddedStore(tmp_path / "store", plan, arms=2)
    after = again.activity()
    again.close()
    assert after.outcomes == before.outcomes
    assert list(after.lessons)[: len(before.lessons)] == list(before.lessons)
    assert [each.reward for each in after.outcomes] == [0, 1, 2, 3, 4, 5]
    assert {each.allowed for each in after.outcomes} == {2}
    for each, answer in list(zip(after.outcomes, answers, strict=True))[:4]:
        chances = answer.propensities
        assert (each.arm, each.time) == (answer.arms[answer.position], answer.time)
        assert each.propensity == pytest.approx(chances[answer.position])
        assert (each.first_propensity, each.least_propensity) == pytest.approx((chances[0], chances[:2].min()))
        assert each.is_first == (answer.position == 0)
    for each in after.outcomes[4:]:
        assert (each.arm, each.propensity, each.first_propensity, each.explored) == ("b", 1, 0, False)
    assert again.settings() == Settings(excluded=("c",), pinned="b")
