"""Recording decisions: a propensity only where there was chance, and nothing that no log may hold."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import recorded


def test_the_only_arm_there_is_has_a_true_propensity_of_one():
    able = np.asarray([[True, False], [True, True]])
    chunk = recorded(np.ones((2, 2, 1)), np.zeros(2, int), np.ones(2), np.asarray([[1.0, 0], [1, 0]]), available=able)
    assert_array_equal(chunk.propensity, [1.0, np.nan])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"propensity": [[0.5, 0.5], [0.0, 1.0]]}, "decision 2: propensity must be above 0 and at most 1, got 0"),
        ({"propensity": [[0.5, 0.5], [-0.5, 1.5]]}, "decision 2: propensity must be above 0 and at most 1, got -0.5"),
        ({"propensity": [[0.5, 0.5], [0.5, 0.1]]}, "decision 2: probabilities must sum to 1, got 0.6"),
        ({"propensity": [[0.5, 0.5], [np.nan, np.nan]]}, "decision 2: propensity is NaN"),
        ({"reward": [1.0, np.inf]}, "decision 2: reward must be finite, .*, got inf"),
        ({"reward": [1.0]}, r"reward must have shape \(2,\)"),
        ({"arm": [0, -1]}, "decision 2: arm must be a whole number in 0 to 1, got -1"),
        ({"arm": [0, 2]}, "decision 2: arm must be a whole number in 0 to 1, got 2"),
        ({"arm": [0, 0.5]}, "decision 2: arm must be a whole number in 0 to 1, got 0.5"),
        ({"arm": [[0, 0]]}, r"arm must have shape \(2,\)"),
        ({"contexts": [[[1.0], [1.0]], [[np.nan], [1.0]]]}, "decision 2: a feature is NaN"),
        ({"available": [[True, True], [False, True]]}, "decision 2: arm 0 is not among the 1 available"),
        ({"available": [[True, True]]}, r"available must have shape \(2, 2\)"),
    ],
)
def test_nothing_is_recorded_that_no_log_may_hold(changes, reason):
    given = {"contexts": np.ones((2, 2, 1)), "arm": [0, 0], "reward": [1.0, 0.0], "propensity": np.full((2, 2), 0.5)}
    with pytest.raises(ValueError, match=reason):
        recorded(**(given | {name: np.asarray(value) for name, value in changes.items()}))
