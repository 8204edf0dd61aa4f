"""The best setting of a grid, and its interval."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralucb.display.sweep_page import sweep_page
from neuralucb.display.sweep_report import best_table
from neuralucb.sweeps.report import read_report
from neuralucb.sweeps.selection import contests, difference, read_grids
from neuralucb.sweeps.store import SCHEMA
from tests.sweeps.helpers import stored


def test_the_best_setting_both_ways_and_paired_differences(tmp_path):
    # on all seeds 1.0 wins, on seeds 0 and 2 it is 0.1
    grids = {"lin-ucb": {0.1: [1, 9, 1, 9], 1.0: [4, 2, 4, 2]}, "uniform": {None: [14, 12, 14, 12]}}
    ours, theirs = contests(read_grids(stored(tmp_path, grids, 4)))
    assert ours.grid.settings[ours.best] == {"exploration": 1.0}
    assert ours.estimate.mean == 3
    assert ours.worst == 4
    assert ours.grid.settings[ours.chosen] == {"exploration": 0.1}
    assert ours.held_out.mean == 9
    paired = difference(theirs, ours)
    assert (paired.mean, paired.low, paired.high) == (10, 10, 10)  # paired: the seeds' own spread is gone


@pytest.mark.parametrize(
    ("cheap", "kept_above", "missing", "there"),
    [([1, 1], 1, 0, "2 of 4"), ([0, 1], 0, 1, "3 of 4")],  # the cheaper setting is lost, or one seed of it
)
def test_a_setting_with_missing_runs_cannot_win(tmp_path, cheap, kept_above, missing, there):
    store = stored(tmp_path, {"lin-ucb": {0.1: cheap, 1.0: [4, 2]}}, 2)
    table = store.read(SCHEMA.names)
    (path,) = (tmp_path / "runs").iterdir()
    parquet.write_table(table.filter(pa.compute.greater(table["final_regret"], kept_above)), path)
    (contest,) = contests(read_grids(store))
    assert contest.missing == missing  # a setting without any run is not known here, but counted on the page
    assert contest.grid.settings[contest.best] == {"exploration": 1.0}
    report = read_report(store)
    assert there in sweep_page(report, best_table(report.best), [])
