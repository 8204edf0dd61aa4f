"""Observations that are removed leave no trace in the belief, live, after a restart, and after a kill in between."""

import time

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit, build, fingerprint
from neuralucb.online import bandit as bandit_module

POLICIES = {"lin-ucb": build("lin-ucb", dim=3), "neural-ucb": build("neural-ucb", dim=3, width=8)}


def play(bandit, count, seed=0):
    """Decisions with rewards; of each its id, context and reward."""
    generator = np.random.default_rng(seed)
    told = []
    for _ in range(count):
        contexts = generator.normal(size=(2, 3)).astype(np.float32)
        decision = bandit.select(contexts)
        reward = float(generator.normal())
        bandit.observe(decision.id, reward)
        told.append((decision, contexts[decision.position], reward))
    return told


def fitted(policy, told):
    bandit = OnlineBandit(policy, seed=1)
    bandit.fit(np.stack([context for _, context, _ in told]), None, [reward for *_, reward in told])
    return bandit


@pytest.mark.parametrize("name", POLICIES)
def test_the_belief_is_that_of_a_bandit_which_was_fitted_without_them(name, tmp_path):
    policy = POLICIES[name]
    bandit = OnlineBandit(policy, seed=1, journal=tmp_path / "journal")
    told = play(bandit, 40)
    waiting = bandit.select(np.ones((2, 3)))
    before = fingerprint(bandit.state.belief)
    snapshot = bandit.snapshot()
    found = bandit.forget([told[3][0].id, told[17][0].id, waiting.id])
    assert found == (2, 1)
    rest = [each for index, each in enumerate(told) if index not in (3, 17)]
    expected = fitted(policy, rest)
    assert fingerprint(bandit.state.belief) == fingerprint(expected.state.belief) != before
    assert bandit.health().observed == 38
    assert bandit.health().failure is None
    with pytest.raises(InputError, match="has expired"):
        bandit.observe(waiting.id, 1.0)
    with pytest.raises(InputError, match="observations were removed"):
        bandit.rollback(snapshot=snapshot)
    with pytest.raises(InputError, match="has no observation to remove"):
        bandit.forget([told[3][0].id])
    play(bandit, 5, seed=9)
    after = fingerprint(bandit.state.belief)
    for _ in range(2):
        bandit.close()
        bandit = OnlineBandit.load(tmp_path / "journal")
        assert fingerprint(bandit.state.belief) == after
        bandit.snapshot()
    bandit.close()


def test_a_linear_belief_is_also_that_of_a_bandit_which_never_saw_them():
    bandit, other = (OnlineBandit(POLICIES["lin-ucb"], seed=1) for _ in range(2))
    told = play(bandit, 30)
    bandit.forget([each.id for each, *_ in told[5:15]])
    for _, context, reward in told[:5] + told[15:]:
        other.observe(other.select(context[None]).id, reward)
    assert fingerprint(bandit.state.belief) == fingerprint(other.state.belief)


def test_a_period_and_an_arm_are_removed_and_a_fitted_log_stays():
    bandit = OnlineBandit(POLICIES["lin-ucb"], seed=1, normalize=True)
    bandit.fit(np.eye(3), None, [1.0, 2.0, 3.0])
    told = play(bandit, 10)
    middle = time.time()
    told += play(bandit, 10, seed=2)
    chosen = [each.arm for each, *_ in told[10:]]
    assert bandit.forget(since=middle, arm=0) == (chosen.count(0), 0)
    assert bandit.forget(since=middle, until=time.time()) == (chosen.count(1), 0)
    assert bandit.forget(until=middle, arm="nobody") == (0, 0)
    assert bandit.forget(until=middle) == (10, 0)
    assert bandit.health().observed == 3
    other = OnlineBandit(POLICIES["lin-ucb"], seed=1, normalize=True)
    other.fit(np.eye(3), None, [1.0, 2.0, 3.0])
    assert fingerprint(bandit.state.belief) == fingerprint(other.state.belief)


def test_a_removal_that_was_interrupted_is_finished_by_the_next_process(tmp_path, monkeypatch):
    policy = POLICIES["lin-ucb"]
    bandit = OnlineBandit(policy, seed=1, journal=tmp_path)
    told = play(bandit, 20)

    def crash(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bandit_module, "give_lesson", crash)
        with pytest.raises(KeyboardInterrupt):
            bandit.forget([told[0][0].id])
    bandit.close()
    bandit = OnlineBandit.load(tmp_path)
    assert fingerprint(bandit.state.belief) == fingerprint(fitted(policy, told[1:]).state.belief)
    assert not bandit.state.relearns
    bandit.close()


def test_all_can_be_removed_and_what_cannot_be_is_refused():
    bandit = OnlineBandit(POLICIES["lin-ucb"], seed=1)
    initial = fingerprint(bandit.state.belief)
    play(bandit, 5)
    for arguments, words in (
        ({}, "must be given"),
        ({"since": time.time() + 60}, "in the future"),
        ({"since": 20.0, "until": 10.0}, "must be before until"),
        ({"until": float("nan")}, "seconds since 1970"),
        ({"decision_ids": ["nobody-1"]}, "is not of this bandit"),
    ):
        with pytest.raises(InputError, match=words):
            bandit.forget(**arguments)
    assert bandit.forget(since=0.0) == (5, 0)
    assert fingerprint(bandit.state.belief) == initial
    play(bandit, 5)


def test_to_expire_what_waits_leaves_belief_lessons_and_snapshots_as_they_are(tmp_path):
    with OnlineBandit(POLICIES["neural-ucb"], seed=1, journal=tmp_path) as bandit:
        told = play(bandit, 20)
        waiting = bandit.select(np.ones((2, 3)))
        snapshot = bandit.snapshot()
        before = bandit.health()
        assert bandit.forget([waiting.id]) == (0, 1)
        after = bandit.health()
        assert (after.learned, after.learning, after.version) == (before.learned, before.learning, before.version)
        assert after.expired == 1
        with pytest.raises(InputError, match="has expired"):
            bandit.observe(waiting.id, 1.0)
        assert bandit.forget([waiting.id, told[0][0].id], missing="ignore") == (1, 0)
        assert bandit.forget([waiting.id, told[0][0].id], missing="ignore") == (0, 0)
        with pytest.raises(InputError, match="observations were removed"):
            bandit.rollback(snapshot=snapshot)
