"""Learning: by schedule, by hand, in the background, with a window; a lesson that fails does no harm."""

import shutil
import threading
import time

import jax
import numpy as np
import pytest

from neuralucb import OnlineBandit
from tests.online.helpers import ARMS, DIM, PLAIN, bandit, contexts, fingerprint, linear, make, play


def test_it_learns_when_the_schedule_says():
    one = bandit(schedule="3:6,10")
    learned = []
    for seed in range(20):
        play(one, 1, seed)
        learned.append(one.health().learned)
    assert [t + 1 for t in range(20) if learned[t] > (learned[t - 1] if t else 0)] == [3, 6, 10, 20]


def test_by_default_it_learns_often_at_first():
    one, at = OnlineBandit(linear(), sync="none"), []
    for observed in range(1, 2301):
        before = one.state.counts["learned"]
        one.observe(one.select(np.ones((2, DIM), np.float32)).id, 0.0)
        at += [observed] * (one.state.counts["learned"] - before)
    often = *range(3, 61, 3), *range(65, 151, 5), *range(160, 301, 10), *range(320, 1001, 20)
    assert at == [*often, *range(1050, 2001, 50), *range(2100, 2301, 100)]


def test_with_manual_learning_only_learn_learns():
    one = bandit(learning="manual")
    play(one, 25)
    assert one.health().learned == 0
    lesson = one.learn()
    assert lesson.promoted
    assert lesson.observations == 25
    assert one.health().learned == 1


def slow_learning(one, monkeypatch):
    """Learning that waits for an event; returns one that is set when it begins, and the one that it waits for."""
    go, began, real = threading.Event(), threading.Event(), one.state.programs.learn

    def learn(*args):
        began.set()
        assert go.wait(30)
        return real(*args)

    monkeypatch.setattr(one.state.programs, "learn", learn)
    return began, go


def test_nobody_waits_for_a_lesson_and_observations_during_it_are_not_lost(monkeypatch):
    one, reference = bandit(learning="background", schedule="10"), bandit(learning="manual")
    began, go = slow_learning(one, monkeypatch)
    play(one, 10)
    assert began.wait(10)
    play(one, 7, seed=1)  # while it learns
    assert one.health().learned == 0
    go.set()
    one.close()
    assert one.health().learned == 1
    play(reference, 10)
    reference.learn()
    ours, theirs = one.state.observations.in_window(), reference.state.observations.in_window()
    np.testing.assert_array_equal(ours[0][:10], theirs[0])
    contexts, rewards = one.state.observations.since(10)
    expected, _ = reference.state.programs.absorb(reference.state.belief, contexts, rewards)
    for a, b in zip(jax.tree.leaves(one.state.belief), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_lesson_that_fails_in_the_background_is_reported(monkeypatch):
    one = bandit(learning="background", schedule="5")
    monkeypatch.setattr(one.state.programs, "learn", lambda *_: 1 / 0)
    play(one, 5)
    patience = time.monotonic() + 20
    while one.health().failure is None and time.monotonic() < patience:
        time.sleep(0.01)
    one.close()
    assert "ZeroDivisionError" in one.health().failure


def test_a_lesson_that_diverged_is_not_promoted():
    one = OnlineBandit(make(**PLAIN, step_size=1e8), schedule="10")
    before = jax.tree.leaves(one.state.belief.params)
    play(one, 10)
    assert (one.health().learned, one.health().diverged) == (0, 1)
    for a, b in zip(before, jax.tree.leaves(one.state.belief.params), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(one.select(contexts()).score).all()


def test_a_window_forgets_older_observations():
    """After learning, a bandit with a window believes of Z what one believes that saw nothing but the window."""
    one, fresh = bandit(window=20, learning="manual"), bandit(window=20, learning="manual")
    play(one, 50, seed=1)
    play(one, 20, seed=2)
    contexts, rewards = one.state.observations.in_window()
    assert len(rewards) == 20
    fresh.fit(contexts, None, rewards)
    one.learn()
    for a, b in zip(jax.tree.leaves(one.state.belief), jax.tree.leaves(fresh.state.belief), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.health().history_bytes < 20_000


@pytest.mark.usefixtures("as_users_have_it")
def test_a_window_keeps_the_errors_by_which_members_are_mixed():
    """Predictions for rewards already seen prove nothing, so a lesson that observes the window again adds none."""

    def errors_before_and_after(policy):
        one = OnlineBandit(policy, window=20, learning="manual", example=contexts()[0])
        play(one, 30)
        one.learn()
        play(one, 5, seed=1)
        before = one.state.belief.inner
        one.learn()
        after = one.state.belief.inner
        assert (np.asarray(after.networks.rounds) == 20).all()  # Z is that of the window
        return before, after

    before, after = errors_before_and_after(make("neural-mix"))
    np.testing.assert_array_equal(before.errors, after.errors)
    assert before.validated == after.validated > 4  # five were predicted since the first lesson
    before, after = errors_before_and_after(make("neural-mix")._replace(review=None))  # the control
    assert not np.array_equal(before.errors, after.errors)


def until(condition, seconds=60):
    """Wait for a thread."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize(
    ("learning", "more"), [("inline", 10), ("background", 8)]
)  # a thread's lesson at 50 has no time
def test_a_window_continues_bit_for_bit_after_a_crash(learning, more, tmp_path):
    settings = {"window": 25, "schedule": "10", "floor": 0.1, "learning": learning, "sync": "none"}
    with OnlineBandit(make("neural-mix"), journal=tmp_path / "journal", **settings) as one:
        play(one, 41)
        until(lambda: one.state.learned_at >= 40)  # else the lesson at 40 would be made up for, in its own time
    shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
    with OnlineBandit(make("neural-mix"), journal=tmp_path / "crashed", **settings) as again:
        assert fingerprint(again) == fingerprint(one)
        learned = again.health().learned
        played = play(again, more, seed=5)
    assert learned >= 1
    with OnlineBandit.load(tmp_path / "journal") as other:
        np.testing.assert_array_equal(play(other, more, seed=5)[:2], played[:2])


def test_learning_twice_with_a_window_does_not_unlearn():
    once = OnlineBandit(
        make(**PLAIN, method="gradient-descent", step_size=0.01, start="initial"), window=20, learning="manual"
    )
    play(once, 25)
    once.learn()
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(once.state.belief)]
    once.learn()
    for a, b in zip(before, jax.tree.leaves(once.state.belief), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_world_that_turns_around_is_followed_only_with_a_window():
    def after_the_turn(window):
        one = OnlineBandit(make("lin-ucb"), schedule="20", window=window)
        for sign, seed in ((1, 0), (-1, 1)):
            right = 0
            for row in contexts(seed, 300, ARMS):
                decision = one.select(row)
                one.observe(decision.id, sign * float(row[decision.position, 0]))
                right += decision.position == int(np.argmax(sign * row[:, 0]))
        return right

    assert after_the_turn(60) > 200
    assert after_the_turn(None) < 160  # the control: without a window it goes on believing the old world


def test_an_abandoned_lesson_is_due_again(tmp_path, monkeypatch):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder, schedule="10", learning="manual") as one:
        play(one, 10)
        with monkeypatch.context() as broken:
            broken.setattr(one.state.programs, "learn", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                one.learn()
        assert one.state.learned_at == 0
    with OnlineBandit(linear(), journal=folder, schedule="10") as again:
        assert again.health().learned == 1
