"""Clicks that mostly never come: with a default reward it is learned as if every 0 had been told at once."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the source distribution has no benchmarks", allow_module_level=True)

sys.path.insert(0, str(FOLDER))
clicks = import_module("default_reward")
sys.path.remove(str(FOLDER))

ROUNDS, ERRORS = 3000, 5


@pytest.mark.slow
def test_a_default_reward_is_within_5_percent_of_being_told_and_clicks_alone_are_not():
    told = clicks_of("told", 5)

    def missing(kind, seeds):
        """The share of clicks that are missing, and its standard error over seeds."""
        shares = 1 - clicks_of(kind, seeds) / told[:seeds]
        return shares.mean(), shares.std(ddof=1) / seeds**0.5

    share, error = missing("default", 5)
    assert share + ERRORS * error < 0.05, (share, error)
    share, error = missing("clicks only", 3)  # the control: without zeros there is nothing to learn
    assert share - ERRORS * error > 0.05, (share, error)


def clicks_of(kind, seeds):
    return np.array([clicks.play(kind, seed, ROUNDS)[0] for seed in range(seeds)])
