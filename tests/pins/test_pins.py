"""Every algorithm and `OnlineBandit` still give the numbers that version 0.1 gave.

Arms are equal and numbers within 1e-5, since another processor rounds otherwise; `benchmarks/same_numbers.py` compares
two source trees on one machine bit for bit. `python -m tests.pins.test_pins` records anew, for a change that moves
results.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.nightly import in_ci
from tests.pins.play import BANDITS, cases, fingerprint, label, play, play_online

RECORDED = Path(__file__).with_name("numbers.npz")


def recorded(run):
    with np.load(RECORDED) as numbers:
        return {name.split("|")[1]: numbers[name] for name in numbers.files if name.split("|")[0] == run}


def assert_same(run, numbers):
    found, expected = fingerprint(numbers), recorded(run)
    assert set(found) == set(expected)
    for name, value in expected.items():
        if value.dtype.kind == "f":
            assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            assert_array_equal(found[name], value, err_msg=name)


def is_played_in_ci(case):
    """Of an algorithm with several designs and scalings, each of these once; at night every pair of them."""
    settings = case[2]
    return len(settings) < 2 or (settings["design"] == "full") == (settings["scaling"] == "tangent")


@pytest.mark.parametrize("case", in_ci(list(cases()), *filter(is_played_in_ci, cases())), ids=lambda case: label(*case))
def test_runs_of_every_algorithm_are_as_recorded(case):
    assert_same(label(*case), play(*case))


@pytest.mark.parametrize("kind", BANDITS)
def test_an_online_bandit_is_as_recorded_through_a_crash(kind):
    assert_same(f"online/{kind}", play_online(kind))


def test_every_recorded_run_is_played():
    with np.load(RECORDED) as numbers:
        runs = {name.split("|")[0] for name in numbers.files}
    assert runs == {label(*case) for case in cases()} | {f"online/{kind}" for kind in BANDITS}


if __name__ == "__main__":
    played = {label(*case): play(*case) for case in cases()} | {f"online/{kind}": play_online(kind) for kind in BANDITS}
    flat = {f"{run}|{name}": value for run, numbers in played.items() for name, value in fingerprint(numbers).items()}
    np.savez_compressed(RECORDED, **flat)
