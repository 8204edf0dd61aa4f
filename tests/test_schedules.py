"""Schedules: when to learn."""

import pytest

from neuralucb import InputError
from neuralucb.schedules import Phase, learning_rounds, next_due, read_schedule, remembered


@pytest.mark.parametrize(
    ("text", "rounds", "expected"),
    [
        ("50", 200, [50, 100, 150, 200]),
        ("synthetic", 120, [50, 100]),
        ("2:4,3:9,5", 20, [2, 4, 6, 9, 10, 15, 20]),
        ("1:3", 10, [1, 2, 3]),
        ("100", 10, []),
    ],
)
def test_phases_say_when_to_learn(text, rounds, expected):
    assert list(learning_rounds(read_schedule(text), rounds=rounds)) == expected


@pytest.mark.parametrize("text", ["50", "2:4,3:9,5", "1:3", "10:200,20:1000,50:2000,100"])
def test_the_next_lesson_is_the_first_of_those_to_come(text):
    schedule = read_schedule(text)
    lessons = learning_rounds(schedule, rounds=2500).tolist()
    for since in range(2300):
        later = [t for t in lessons if t > since]
        assert next_due(schedule, since=since) == (later[0] if later else None)


def test_the_real_schedule_is_every_round_to_2000_and_every_100_after():
    chosen = list(learning_rounds(read_schedule("real"), rounds=2300))
    assert chosen == [*range(1, 2001), 2100, 2200, 2300]


def test_a_phase_may_forget_the_rounds_between_trainings():
    schedule = read_schedule("2:4,3!")
    ends = [int(t) for t in learning_rounds(schedule, rounds=12)]
    assert ends == [2, 4, 6, 9, 12]
    assert remembered(schedule, ends).tolist() == [2, 2, 1, 1, 1]
    assert remembered(read_schedule("1:3"), [1, 2, 3, 10]).tolist() == [1, 1, 1, 7]


@pytest.mark.parametrize("text", ["!", "!5", "5!!", "", "0", "a", "5:", "-1", "50,10:20", "10:500,5:100", "1.5"])
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(ValueError, match="schedule"):
        read_schedule(text)


def test_a_schedule_that_was_read_is_itself():
    read = read_schedule("10:500,50!")
    assert read_schedule(read) is read


@pytest.mark.parametrize("other", [(), (10, 20), None, [Phase(10)]])
def test_phases_of_something_else_are_refused(other):
    with pytest.raises(InputError, match="schedule must be one of"):
        read_schedule(other)
