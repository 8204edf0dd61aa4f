"""Lessons beside traffic: how long they rest."""

import time
from types import SimpleNamespace

import pytest

from neuralucb.online.lessons import Lesson
from neuralucb.service.learner import REST, Learner


class Pupil:
    """As much of a bandit as a learner needs; a lesson is due whenever it looks, and takes these seconds."""

    lesson_process = None

    def __init__(self, seconds):
        self.seconds, self.began = seconds, []
        self.settings = {"schedule": "1"}
        self.state = SimpleNamespace(
            relearns=False, learned_at=0, observations=SimpleNamespace(total=5), counts={"decisions": 0, "observed": 0}
        )

    def health(self):
        return SimpleNamespace(replayed=0)

    def learn(self):
        self.began.append(time.monotonic())
        time.sleep(self.seconds[min(len(self.began), len(self.seconds)) - 1])
        return Lesson(promoted=True, loss=0.1, observations=5)

    def record(self, memo):
        pass


@pytest.fixture
def lessons():
    """Begin lessons that take so long, and say when they began."""

    def begin(*seconds, until):
        pupil = Pupil(seconds)
        learner = Learner(pupil, lambda: True, lambda: None)
        end = time.monotonic() + 30
        while len(pupil.began) < until and time.monotonic() < end:
            time.sleep(0.01)
        learner.close()
        return pupil.began

    return begin


def test_what_a_lesson_costs_once_is_not_rested_for(lessons):
    first, second, *_ = lessons(1.0, 0.01, until=2)
    assert second - first < 1.0 + REST * 1.0 / 2


def test_lessons_rest_as_long_as_they_should(lessons):
    _, second, third = lessons(0.2, 0.2, until=3)[:3]
    assert third - second >= (1 + REST) * 0.2
