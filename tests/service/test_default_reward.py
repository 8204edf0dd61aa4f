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

SEEDS, ROUNDS, ERRORS = 6, 2000, 5


@pytest.mark.slow
def test_a_default_reward_is_within_5_percent_of_being_told_and_clicks_alone_are_not():
    found = {
        kind: np.array([clicks.play(kind, seed, ROUNDS)[0] for seed in range(SEEDS)])
        for kind in ("told", "default", "clicks only")
    }
    told = found["told"]

    def short_of(kind):
        """The share of clicks that are missing, with its standard error over seeds."""
        shares = 1 - found[kind] / told
        return shares.mean(), shares.std(ddof=1) / SEEDS**0.5

    missing, error = short_of("default")
    assert missing <= 0.05, (missing, error)
    missing, error = short_of("clicks only")  # the control: without zeros there is nothing to learn
    assert missing - ERRORS * error > 0.05, (missing, error)
