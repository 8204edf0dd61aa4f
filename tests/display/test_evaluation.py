"""The report of an evaluation."""

import numpy as np
from numpy.testing import assert_allclose

from neuralucb.display.evaluation import report
from neuralucb.evaluation import evaluate
from tests.evaluation.worlds import (
    POLICY,
    in_memory,
    world,
)


def test_a_table_shows_errors_to_three_digits_and_says_what_is_not_known():
    rates = evaluate(POLICY, (), in_memory(world(400, 1)), methods=("ips",))
    assert_allclose([len(cell.partition(".")[2]) for cell in _cells_of(rates)], 4)
    small = rates._replace(logged=rates.logged._replace(error=0.00042))
    assert_allclose([len(cell.partition(".")[2]) for cell in _cells_of(small)], 6)
    (one,) = rates.estimates
    lost = rates._replace(estimates=(one._replace(low=np.nan, high=np.nan, error=np.nan),))
    assert "| not known |" in report([lost], title="a log")


def _cells_of(made):
    rows = [line.split(" | ") for line in report([made], title="a log").splitlines() if line.startswith("| ")]
    return [row[2] for row in (rows[2], rows[3])]
