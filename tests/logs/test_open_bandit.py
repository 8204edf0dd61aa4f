"""The Open Bandit Dataset's CSV: read and written, no value cut and no torn line believed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, convert, read_chunks, write_log
from tests.logs.examples import OPEN_BANDIT, decisions, lines_kept, repeated


def test_the_open_bandit_datasets_form_is_read_and_written(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT)
    (chunk,) = read_chunks(tmp_path / "obd.csv")
    assert chunk.names.shared == ("user_feature_0=aa", "user_feature_0=bb", "user_feature_1=x")
    assert_array_equal(chunk.shared, [[1, 0, 1], [0, 1, 1]])
    assert_array_equal(chunk.own[:, 0], [0, 1, 0.5, 0, 0, 2])
    assert_array_equal(chunk.arm, [2, 0])
    assert_array_equal(chunk.position, [1, 3])
    assert_array_equal(chunk.propensity, [0.25, 0.5])
    assert [str(time)[11:19] for time in chunk.time] == ["00:00:34", "00:00:00"]
    for name in ("obd.parquet", "again.csv"):
        convert(tmp_path / "obd.csv", tmp_path / name)
        (again,) = read_chunks(tmp_path / name)
        assert_array_equal(again.shared, chunk.shared)
        assert_array_equal(again.position, chunk.position)
        assert_array_equal(again.time, chunk.time)
    with pytest.raises(ValueError, match="Open Bandit Dataset's form"):
        write_log(tmp_path / "other.csv", [decisions()])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2,2019-11-24,1,1,0,0.0,aa,x,0,0,0", "propensity must be above 0"),
        ("2,2019-11-24,7,1,0,0.5,aa,x,0,0,0", "arm 7 is not among the 3"),
        ("2,2019-11-24,1,1,maybe,0.5,aa,x,0,0,0", "click must be a number, got 'maybe'"),
        ("2,2019-11-24,1,1,0,0.5,aa,x,0,nan,0", "user-item_affinity_1 must be a number"),
        ("2,2019-11-24,1", "it has 3 values, the first line has 11"),
    ],
)
def test_a_bad_line_of_the_open_bandit_dataset_is_refused(tmp_path, row, reason):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT + row + "\n")
    with pytest.raises(ValueError, match=f"obd.csv line 4: {reason}"):
        list(read_chunks(tmp_path / "obd.csv"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2,2019-11-24,1.7,1,0,0.5,aa,x,0,0,0\n", "item_id must be a whole number, got '1.7'"),
        ("2,2019-11-24,4294967296,1,0,0.5,aa,x,0,0,0\n", "item_id must be a whole number, got '4294967296'"),
        ("2,2019-11-24,1,0.5,0,0.5,aa,x,0,0,0\n", "position must be a whole number, got '0.5'"),
        ("2,yesterday,1,1,0,0.5,aa,x,0,0,0\n", "timestamp must be a time, got 'yesterday'"),
        ("2,0001-01-01 00:00:00+14:00,1,1,0,0.5,aa,x,0,0,0\n", "timestamp must be a time"),
        ("2,2019-11-24,1,1,0,0.5,aa,x,0,0,0.2", "the last line is incomplete"),
    ],
)
def test_no_value_of_a_csv_is_cut_and_no_torn_line_is_believed(tmp_path, row, reason):
    path = tmp_path / "obd.csv"
    path.write_text(OPEN_BANDIT + row)
    with pytest.raises(ValueError, match=f"obd.csv line 4: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert (lines_kept(path, skipped), skipped.count) == ([2, 3], 1)
    path.write_text(OPEN_BANDIT + "\n")  # a blank line at the end is nothing
    assert lines_kept(path, None) == [2, 3]


def test_clicks_may_be_whole_at_first_and_fractions_later(tmp_path):
    head, row, _ = OPEN_BANDIT.splitlines(keepends=True)
    (tmp_path / "obd.csv").write_text(head + row * 5000 + row.replace(",1,0,0.25", ",1,0.5,0.25"))
    for name in ("log.parquet", "again.csv"):
        assert convert(tmp_path / "obd.csv", tmp_path / name) == 5001
        assert np.concatenate([chunk.reward for chunk in read_chunks(tmp_path / name)])[-1] == 0.5
    assert (tmp_path / "again.csv").read_text().splitlines()[1].startswith("0,2019-11-24 00:00:34.831996+00:00,2,1,0,")


def test_a_csv_is_written_in_pieces(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT)
    from neuralucb.logs import open_bandit as openbandit

    (chunk,) = read_chunks(tmp_path / "obd.csv")
    sizes = []

    def chunks():
        for _ in range(3):
            sizes.append((tmp_path / "out.csv").stat().st_size if (tmp_path / "out.csv").exists() else 0)
            yield chunk._replace(own=np.tile(chunk.own, (2000, 1)), **repeated(chunk, 2000))

    assert openbandit.write_csv(tmp_path / "out.csv", chunks()) == 12_000
    assert sizes[2] > sizes[1]  # the second piece was on its way before the third was asked for


def test_a_csv_with_a_column_twice_is_refused(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT.replace("user_feature_1", "click"))
    with pytest.raises(ValueError, match="obd.csv has more than one column click"):
        list(read_chunks(tmp_path / "obd.csv"))


def test_a_csv_is_not_written_with_positions_that_nobody_knows(tmp_path):
    (tmp_path / "log.csv").write_text(OPEN_BANDIT)
    convert(tmp_path / "log.csv", tmp_path / "log.dsjson")
    with pytest.raises(ValueError, match="a .csv must have the position of every decision, and some are not known"):
        convert(tmp_path / "log.dsjson", tmp_path / "again.csv")
