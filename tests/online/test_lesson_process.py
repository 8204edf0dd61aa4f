"""Lessons in a process of their own: the same belief, and what happens when the process dies."""

import multiprocessing
from multiprocessing.context import SpawnProcess

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit
from neuralucb.online import lessons
from neuralucb.online.compiled import ROWS
from neuralucb.policy import Policy
from tests.online.helpers import contexts, fingerprint, linear, make, play

EVERY = "1000"


def test_a_process_learns_what_a_thread_learns_and_another_takes_the_place_of_a_dead_one():
    here, there = (OnlineBandit(linear(), schedule=EVERY, learning=learning) for learning in ("manual", "process"))
    with there:
        for rounds in (5, 3):  # the second lesson sends new observations alone
            for one in (here, there):
                play(one, rounds, seed=rounds)
                assert one.learn().promoted
            assert fingerprint(one) == fingerprint(here)
        (process,) = multiprocessing.active_children()
        process.kill()
        process.join()
        with pytest.raises(RuntimeError, match="ended"):
            there.learn()
        assert there.learn().promoted
        here.learn()
        assert np.array_equal(here.select(contexts(9)).mean, there.select(contexts(9)).mean)


def test_a_process_learns_with_the_policy_that_was_adopted():
    one, other = (OnlineBandit(linear(), schedule=EVERY, learning=learning) for learning in ("manual", "process"))
    with other:
        for bandit in (one, other):
            play(bandit, 3)
            bandit.learn()
            successor = OnlineBandit(make(), schedule=EVERY).state
            bandit.share(successor)
            bandit.adopt(successor)
            play(bandit, 5, seed=1)
            assert bandit.learn().promoted
        assert fingerprint(one) == fingerprint(other)


def test_a_policy_that_build_did_not_make_cannot_learn_in_a_process():
    with pytest.raises(InputError, match="learning"):
        OnlineBandit(Policy(*linear()[:4]), learning="process", example=np.zeros(3, np.float32))


def test_a_process_that_may_start_no_others_cannot_learn_in_one(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(InputError, match='set learning="background"'):
        OnlineBandit(linear(), learning="process")


def test_a_lesson_that_could_not_start_its_process_is_made_by_the_next(monkeypatch):
    with OnlineBandit(linear(), schedule=EVERY, learning="process") as bandit:
        play(bandit, 3)
        with monkeypatch.context() as patch:
            patch.setattr(SpawnProcess, "start", fail_to_start)
            with pytest.raises(RuntimeError, match="Cannot allocate memory") as kept:
                bandit.learn()
        assert kept is not None  # with it, all that the failure left behind
        assert bandit.learn().promoted


def fail_to_start(process):
    raise OSError(12, "Cannot allocate memory")


def test_what_is_observed_during_a_lesson_is_absorbed_as_a_replay_absorbs_it(tmp_path, monkeypatch):
    one = OnlineBandit(linear(), schedule=EVERY, journal=tmp_path)
    play(one, 5)
    train = lessons.train

    def train_slowly(*args):
        play(one, 2 * ROWS + 1, seed=1)
        return train(*args)

    monkeypatch.setattr(lessons, "train", train_slowly)
    one.learn()
    before = fingerprint(one)
    one.close()
    with OnlineBandit.load(tmp_path) as again:
        assert fingerprint(again) == before
