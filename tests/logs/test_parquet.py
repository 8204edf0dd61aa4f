"""Parquet: the schema, the types of other tools, and rows that cannot be used."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, check_log, convert, from_obp, open_log, read_chunks, to_obp, write_log
from tests.logs.examples import decisions, feedback, lines_kept, other_parquet, parquet_with, together


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"propensity": [0.5, 0.0, 0.5]}, "propensity must be above 0"),
        ({"propensity": [0.5, float("nan"), 0.5]}, "propensity is NaN"),
        ({"reward": [1.0, float("inf"), 0.0]}, "reward must be finite"),
        ({"reward": [1.0, float("nan"), 0.0]}, "reward is NaN"),
        ({"arm": [0, 9, 1]}, "arm 9 is not among the 2 available"),
        ({"arm": [0, None, 1]}, "a reward without a decision"),
        ({"arms": [[0, 1], [1, 1], [0, 1]]}, "an arm is listed twice"),
        ({"arms": [[0, 1], None, [0, 1]]}, "arms is missing"),
        ({"own": [[1.0, 2.0], [float("nan"), 2.0], [1.0, 2.0]]}, "a feature is NaN"),
        ({"own": [[1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0]]}, "own has 3 numbers"),
        ({"probabilities": [None, [0.5, 0.25, 0.25], None]}, "probabilities has 3 numbers for 2 arms"),
        ({"weight": [1.0, 0.0, 1.0]}, "weight must be positive"),
    ],
)
def test_a_bad_row_of_parquet_is_refused_or_skipped(tmp_path, columns, reason):
    columns = {"probabilities": [None] * 3, "propensity": [0.5] * 3, "arm": [0, 0, 0]} | columns
    path = parquet_with(tmp_path, **columns)
    with pytest.raises(ValueError, match=f"bad.parquet row 2: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert_array_equal(np.concatenate([chunk.line for chunk in read_chunks(path, skipped)]), [1, 3])
    assert skipped.count == 1


def test_parquet_of_other_tools_is_read_and_its_types_are_checked(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"arms": [[0, 1], [1]], "arm": [1, 1], "reward": [1, 0], "propensity": [0.5, 1.0]}
    parquet.write_table(pa.table(columns), tmp_path / "least.parquet")
    log = open_log(tmp_path / "least.parquet")
    assert (log.arms, log.names.shared, log.names.own) == (2, (), ())
    more = columns | {"shared": [[0.5], [1.5]], "own": [[1.0, 2.0], [3.0]]}
    parquet.write_table(pa.table(more), tmp_path / "more.parquet")
    (chunk,) = read_chunks(tmp_path / "more.parquet")
    assert chunk.names.own == ("own[0]",)
    assert_array_equal(chunk.own, [[1], [2], [3]])
    for change in ({"arm": ["a", "b"]}, {"arms": [0, 1]}, {"reward": [[1.0], [0.0]]}):
        parquet.write_table(pa.table(columns | change), tmp_path / "odd.parquet")
        with pytest.raises(ValueError, match=f"odd.parquet: column {next(iter(change))} must have"):
            open_log(tmp_path / "odd.parquet")
    for text, reason in (
        ("{", "not ours, or damaged"),
        ('{"version": 2, "shared": [], "own": [], "arms": 2}', "version 2"),
    ):
        parquet.write_table(
            pa.table(columns).replace_schema_metadata({"neuralucb.log": text}), tmp_path / "odd.parquet"
        )
        with pytest.raises(ValueError, match=reason):
            open_log(tmp_path / "odd.parquet")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"arm": [1, 2**32]}, "arm 4294967296 is not among the 2 available"),
        ({"arm": [1.0, 0.7]}, "arm must be a whole number, got 0.7"),
        ({"arms": [[0, 1], [0, 2**32 + 1]]}, "arms must be whole numbers"),
        ({"arms": [[0.0, 1.0], [0.0, 1.9]]}, "arms must be whole numbers"),
        ({"arms": [[0, 1], [0, None]]}, "arms must be whole numbers"),
        ({"arms": [[0, 1], [0, 1_999_999_999]]}, "an arm is not in 0 to 65535"),
        ({"probabilities": [[0.5, 0.5], [0.5, float("nan")]]}, "some probabilities are NaN"),
        ({"expected": [[0.5, 0.5], [0.5, float("nan")]]}, "some expected rewards are NaN"),
        ({"position": [1.0, 1.5]}, "position must be a whole number, got 1.5"),
    ],
)
def test_no_number_of_parquet_is_cut_or_wrapped(tmp_path, columns, reason):
    path = other_parquet(tmp_path / "log.parquet", **columns)
    with pytest.raises(ValueError, match=f"log.parquet row 2: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert (lines_kept(path, skipped), skipped.count) == ([1], 1)
    assert open_log(path).arms == 2


def test_a_log_without_any_arm_is_no_log(tmp_path):
    import pyarrow as pa

    path = other_parquet(tmp_path / "log.parquet", arms=pa.nulls(2))
    with pytest.raises(ValueError, match="log.parquet has no decision that can be used"):
        open_log(path)


def test_types_of_other_tools_are_read_as_they_are_meant(tmp_path):
    import pyarrow as pa

    path = other_parquet(
        tmp_path / "log.parquet", id=[7, 8], shared=[[1], [2]], own=[[0.5, 0.1], [0.25, 0.5]], propensity=pa.nulls(2)
    )
    convert(path, tmp_path / "again.parquet")
    for name in ("log.parquet", "again.parquet"):
        (chunk,) = read_chunks(tmp_path / name)
        assert chunk.id.tolist() == ["7", "8"]
        assert np.isnan(chunk.propensity).all()  # a column without a type is one of nulls: deterministic
        assert_array_equal(chunk.own[:, 0], [0.5, 0.1, 0.25, 0.5])
        assert_array_equal(chunk.shared[:, 0], [1, 2])


def test_whole_rewards_stay_whole_where_some_were_not_seen(tmp_path):
    chunk = decisions(4)._replace(reward=np.asarray([1, 0, 1, 1]))
    later = chunk._replace(reward=np.asarray([1.0, np.nan, 0.0, 1.0]))
    write_log(tmp_path / "log.parquet", [chunk, later])
    convert(tmp_path / "log.parquet", tmp_path / "again.parquet")
    for name in ("log.parquet", "again.parquet"):
        assert_array_equal(together(tmp_path / name).reward, [1, 0, 1, 1, 1, np.nan, 0, 1])
    with pytest.raises(ValueError, match="decision 2 has the reward 0.5, but the first had whole numbers"):
        write_log(tmp_path / "odd.parquet", [chunk, later._replace(reward=np.asarray([1.0, 0.5, 0.0, 1.0]))])


@pytest.mark.parametrize("time", [["2020-01-01", "yesterday"], [1577836800000, 1577836800000]])
def test_a_column_of_times_must_have_times(tmp_path, time):
    path = other_parquet(tmp_path / "log.parquet", time=time)
    with pytest.raises(ValueError, match="log.parquet: column time must have timestamps, got"):
        list(read_chunks(path))


def test_parquet_with_a_column_twice_is_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = [pa.array([[0, 1]]), pa.array([1]), pa.array([0]), pa.array([1.0]), pa.array([0.5])]
    names = ["arms", "arm", "arm", "reward", "propensity"]
    parquet.write_table(pa.Table.from_arrays(columns, names), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="log.parquet has more than one column named arm; rename them"):
        check_log(tmp_path / "log.parquet")


def test_missing_features_are_not_zeros(tmp_path):
    path = other_parquet(tmp_path / "log.parquet", own=[[0.5, 0.1], None])
    with pytest.raises(ValueError, match="row 2: own is missing; write an empty list for no features"):
        list(read_chunks(path))


def test_arms_keep_their_type_in_memory(tmp_path):
    write_log(tmp_path / "log.parquet", from_obp(feedback()))
    assert to_obp(open_log(tmp_path / "log.parquet").chunks())["action"].dtype == feedback()["action"].dtype
