"""Lessons that fail and observations that are refused are loud, and what is known of them survives a restart."""

import json
import logging
import time

import numpy as np
import pytest

from neuralucb import OnlineBandit
from neuralucb.online.lesson_record import LessonRecord
from tests.online.helpers import ARMS, DIM, PLAIN, contexts, fingerprint, linear, make, play

DIVERGES = {**PLAIN, "step_size": 1e8}


@pytest.fixture
def warnings(caplog):
    """What was logged so far, as a function."""
    caplog.set_level(logging.WARNING, logger="neuralucb")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "neuralucb"]


def test_a_lesson_that_is_due_and_fails_is_loud(warnings):
    one = OnlineBandit(make(**DIVERGES), schedule="10")
    assert one.health().learning == "none yet; the first is due at 10"
    play(one, 25)
    health = one.health()
    assert health.learning == "2 lessons failed; none was good so far"
    assert "the lesson at observation 20 failed: training diverged" in health.failure
    assert "an untrained belief stays in use" in health.failure
    assert "smaller step_size" in health.failure
    assert [words.split(":")[0] for words in warnings()] == [
        "the lesson at observation 10 failed",
        "the lesson at observation 20 failed",
    ]


def test_good_lessons_are_silent(warnings):
    one = OnlineBandit(make(**PLAIN), schedule="10")
    play(one, 25)
    assert one.health().failure is None
    assert one.health().learning == "last good lesson at observation 20 of 25"
    assert warnings() == []


def spoil(one, monkeypatch):
    """Lessons from now on end with a belief that is not finite."""
    real = one.state.programs.learn
    monkeypatch.setattr(one.state.programs, "learn", lambda *given: (*real(*given)[:2], False))


def test_a_manual_lesson_that_fails_says_why_and_a_good_one_clears_it(warnings, monkeypatch):
    one = OnlineBandit(make(**PLAIN), learning="manual")
    assert one.health().learning == "none yet; no schedule asks for one"
    one.fit(contexts(0, 12), None, np.ones(12))
    with monkeypatch.context() as broken:
        spoil(one, broken)
        lesson = one.fit(contexts(1, 4), None, np.ones(4))
        assert (lesson.promoted, lesson.failure) == (False, "the belief after training was not finite")
        one.learn()
    assert one.health().learning == "2 lessons failed since observation 12"
    assert "at observation 16 failed: the belief after training was not finite" in one.health().failure
    assert "the belief of observation 12 stays in use" in one.health().failure
    assert len(warnings()) == 2
    assert one.learn().failure is None
    assert one.health().failure is None
    assert one.health().learning == "last good lesson at observation 16 of 16"


def test_a_lesson_that_fails_in_the_background_is_loud(warnings):
    one = OnlineBandit(make(**DIVERGES), learning="background", schedule="10")
    play(one, 10)
    patience = time.monotonic() + 20
    while one.health().failure is None and time.monotonic() < patience:
        time.sleep(0.01)
    one.close()
    assert "the lesson at observation 10 failed" in one.health().failure
    assert len(warnings()) == 1


def restarted(how, one, folder, policy, settings):
    """The bandit once more: from its journal, from a snapshot, or from a save."""
    if how == "save":
        one.save(folder / "saved")
        return OnlineBandit.load(folder / "saved")
    if how == "snapshot":
        one.snapshot()
    one.close()
    return OnlineBandit(policy, journal=folder / "journal", **settings)


@pytest.mark.parametrize("how", ["journal", "snapshot", "save"])
def test_what_is_known_of_lessons_survives(how, tmp_path, monkeypatch):
    settings = {"schedule": "10", "sync": "none"}
    with OnlineBandit(make(**PLAIN), journal=tmp_path / "journal", **settings) as one:
        play(one, 12)
        with monkeypatch.context() as broken:
            spoil(one, broken)
            play(one, 20, seed=1)
        before = one.health()
        with restarted(how, one, tmp_path, make(**PLAIN), settings) as again:
            after = again.health()
            assert before.learning == after.learning == "2 lessons failed since observation 10"
            assert before.failure == after.failure
            assert "at observation 30 failed" in after.failure
            assert fingerprint(again) == fingerprint(one)


def test_a_rollback_returns_to_the_lessons_of_its_snapshot(tmp_path, monkeypatch):
    with OnlineBandit(make(**PLAIN), journal=tmp_path / "journal", schedule="10", sync="none") as one:
        play(one, 12)
        one.snapshot()
        spoil(one, monkeypatch)
        play(one, 10)
        assert one.health().learning == "1 lesson failed since observation 10"
        one.rollback()
        assert one.health().learning == "last good lesson at observation 10 of 12"
        assert one.health().failure is None


@pytest.mark.parametrize(
    ("learned", "diverged", "expected"),
    [
        (0, 0, "none yet; the first is due at 10"),
        (3, 0, "last good lesson at observation 30 of 35"),
        (0, 3, "3 lessons failed; none was good so far"),
    ],
)
def test_what_version_0_1_wrote_is_read_without_the_record(learned, diverged, expected):
    at = 10 * (learned + diverged)
    record = LessonRecord.restored(None, learned=learned, diverged=diverged, at=at)
    assert record.words(35, 10) == expected


def test_a_record_is_stored_as_json_and_comes_back():
    record = LessonRecord(20, 2, 40, "why", 3, 1)
    fields = json.loads(json.dumps(record._asdict()))
    assert LessonRecord.restored(fields, learned=0, diverged=0, at=0) == record


def timestamps(one, rounds):
    """Rounds whose first feature is a raw Unix time: LinUCB's Z cannot absorb it."""
    for row in contexts(0, rounds, ARMS):
        row[:, 0] = 1.7e9
        one.observe(one.select(row).id, 1.0)


def test_refused_observations_are_loud_once_per_lesson_and_until_they_stop(warnings):
    one = OnlineBandit(linear(), schedule="10")
    timestamps(one, 25)
    assert one.health().refused == 25
    assert one.health().diverged == 0
    assert "refused 15 observations, which would have made it infinite or NaN; scale" in one.health().failure  # lately
    assert len(warnings()) == 3  # in each period of ten, not for each observation
    assert all("neural-mix" in words for words in warnings())
    play(one, 10)
    assert len(warnings()) == 3
    assert "refused 5 observations" in one.health().failure
    play(one, 15)
    assert one.health().failure is None  # a whole period without
    assert one.health().refused == 25


def test_ordinary_contexts_are_not_refused(warnings):
    one = OnlineBandit(linear(), schedule="10")
    play(one, 25)
    assert (one.health().refused, one.health().failure, warnings()) == (0, None, [])


def test_a_log_that_the_belief_refuses_is_loud(warnings):
    one = OnlineBandit(linear())
    one.fit(np.full((20, DIM), 1.7e9), None, np.ones(20))
    assert "refused 20 observations" in one.health().failure
    assert len(warnings()) == 1
