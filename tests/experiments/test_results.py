"""Results: statistics over seeds, divergence, and JSON without NaN."""

import json
import math

import numpy as np
from numpy.testing import assert_allclose

from neuralucb import run
from neuralucb.experiments.results import interval
from tests.experiments.sizes import TINY


def test_divergence_is_counted_in_the_result():
    result = run("neural-ucb", "h2", seeds=2, **TINY | {"step_size": 100.0, "steps": 30})
    assert result.diverged == 2
    assert result.as_json()["diverged"] == 2
    assert result.as_json()["diverged_at"] == {"0": 10, "1": 10}


def test_json_has_what_it_promises_and_no_nan():
    record = json.loads(json.dumps(run("lin-ucb", "h1", rounds=20, seeds=1, dim=4).as_json(), allow_nan=False))
    assert record["final_regret"]["std"] is None
    assert record["settings"]["dim"] == 4
    assert record["seeds"] == [0]
    for name in ("algorithm", "problem", "rounds", "diverged", "compile_seconds", "seconds"):
        assert name in record


def test_the_interval_is_students():
    low, high = interval(np.array([1.0, 2.0, 3.0, 4.0]))
    half = 3.182446305284263 * np.std([1, 2, 3, 4], ddof=1) / 2  # t quantile 0.975 with 3 degrees of freedom
    assert_allclose([low, high], [2.5 - half, 2.5 + half])
    assert all(math.isnan(end) for end in interval(np.array([1.0])))
