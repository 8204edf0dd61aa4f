"""Logs in and out: what survives from format to format, what is refused, and each bad decision told once."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, check_log, convert, open_log, read_chunks, recorded, write_log
from tests.logs.examples import EVENT, decisions, renumbered, same, together, with_context, write_lines


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_a_log_survives_parquet_and_dsjson(tmp_path, shared, masked):
    chunk = decisions(9000, shared=shared, masked=masked)
    paths = [tmp_path / name for name in ("a.parquet", "b.dsjson", "c.parquet")]
    assert write_log(paths[0], [chunk]) == 9000
    same(together(paths[0]), chunk)
    expected = chunk if shared else renumbered(chunk)
    for source, target in pairwise(paths):
        assert convert(source, target) == 9000
        same(together(target), expected)
    log = open_log(paths[1])
    assert (log.arms, log.decisions) == (4, 9000)


def test_a_deterministic_choice_has_no_propensity_and_only_parquet_can_say_so(tmp_path):
    sure = np.eye(3)[[0, 1]]
    chunk = recorded(np.ones((2, 3, 1)), np.asarray([0, 1]), np.ones(2), sure)
    assert np.isnan(chunk.propensity).all()
    write_log(tmp_path / "log.parquet", [chunk])
    assert np.isnan(together(tmp_path / "log.parquet").propensity).all()
    assert check_log(tmp_path / "log.parquet").deterministic == 2
    for name in ("log.dsjson", "log.npz"):
        with pytest.raises(ValueError, match="decision 1 was deterministic"):
            convert(tmp_path / "log.parquet", tmp_path / name)
        assert not (tmp_path / name).exists()


def test_features_that_appear_late_keep_the_columns_before_them(tmp_path):
    quick = [with_context(User={"age": float(n)}) for n in range(5000)]
    path = write_lines(tmp_path / "log.dsjson", *quick, with_context(User={"late": 2.0, "age": 1.0}))
    convert(path, tmp_path / "log.parquet")
    chunks = list(read_chunks(tmp_path / "log.parquet"))
    assert {chunk.names.shared for chunk in chunks} == {("User/age", "User/late")}
    assert_array_equal(np.concatenate([chunk.shared for chunk in chunks])[[0, 4999, 5000]], [[0, 0], [4999, 0], [1, 2]])
    assert open_log(path).names.shared == ("User/age", "User/late")


def test_files_that_are_no_logs_say_so(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "table.npz", X=np.zeros(3))
    (tmp_path / "empty.dsjson").write_text("")
    (tmp_path / "folder.parquet").mkdir()
    for name, reason in {
        "folder.parquet": "Is a directory; name one file",
        "torn.parquet": "not a Parquet file, or truncated",
        "table.parquet": "no column arm, reward, propensity, arms",
        "table.csv": "not in the Open Bandit Dataset's form",
        "table.npz": "has no n_rounds",
        "log.txt": "a log must end in .parquet",
        "none.dsjson": "No such file",
        "none.parquet": "No such file",
        "none.npz": "No such file",
        "none.csv": "No such file",
        "empty.dsjson": "has no decision",
    }.items():
        with pytest.raises(ValueError, match=name) as refused:
            open_log(tmp_path / name)
        assert reason in str(refused.value)


def test_convert_tells_what_it_skipped(tmp_path, command):
    write_lines(tmp_path / "log.dsjson", EVENT, EVENT | {"pdrop": 2}, EVENT)
    code, _, err = command("logs", "convert", "log.dsjson", "log.parquet")
    assert code == 2
    assert "log.dsjson line 2: pdrop must be" in " ".join(err.split())
    code, out, err = command("logs", "convert", "log.dsjson", "log.parquet", "--skip-bad")
    assert code == 0
    assert "2 decisions written to log.parquet" in out
    assert "1 decisions skipped" in err
    write_lines(tmp_path / "bad.dsjson", EVENT | {"_label_probability": 2}, EVENT | {"pdrop": 2}, EVENT, [])
    _, _, err = command("logs", "convert", "bad.dsjson", "log.parquet", "--skip-bad")
    assert [f"bad.dsjson:{line}" for line in (1, 2, 4)] == [text.rpartition(":")[0] for text in err.splitlines()[1:]]
    assert command("logs", "convert", "log.dsjson", "log.dsjson")[0] == 2
    assert command("logs", "convert", "log.dsjson", "log.exe")[0] == 2
    code, _, err = command("logs", "convert", "log.parquet", "/proc/nowhere/log.dsjson")
    assert (code, "cannot be written" in err, "Traceback" in err) == (2, True, False)


def test_convert_says_why_nothing_was_left_to_write(tmp_path, command):
    write_lines(tmp_path / "log.dsjson", EVENT | {"pdrop": 1})
    code, _, err = command("logs", "convert", "log.dsjson", "log.npz", "--skip-bad")
    assert code == 2
    assert "log.dsjson:1: pdrop must be" in err
    assert "has no decision that can be used" in err


def test_memory_does_not_grow_with_the_log(tmp_path):
    """Six times the decisions, the same peak of Python's and NumPy's memory."""
    import tracemalloc

    peaks = []
    for count in (10_000, 60_000):
        path = tmp_path / f"{count}.parquet"
        write_log(path, (decisions(5000, 2, 1, seed=seed) for seed in range(count // 5000)))
        tracemalloc.start()
        convert(path, tmp_path / f"{count}.dsjson")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 1e6


@pytest.mark.parametrize("ending", ["parquet", "dsjson", "npz", "csv"])
def test_nothing_is_written_that_could_not_be_read_back(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    good = decisions(3, shared=True)
    for changes, reason in (
        (
            {"propensity": np.asarray([0.5, 1.5, 0.5]), "probabilities": None},
            "decision 2 cannot .*: propensity must be",
        ),
        ({"reward": np.asarray([1.0, 1.0, np.inf])}, "decision 3 cannot be written to .*: reward must be finite"),
        ({"shared": np.full((3, 3), np.nan)}, "decision 1 cannot be written to .*: a feature is NaN"),
        ({"arm": np.asarray([0, 9, 0])}, "decision 2 cannot be written to .*: arm 9 is not among the 4"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_log(path, [good._replace(**changes)])
    with pytest.raises(ValueError, match="no decision to write"):
        write_log(path, [])
    assert not path.exists()


@pytest.mark.parametrize("ending", ["parquet", "npz", "csv"])
def test_a_log_of_which_nothing_can_be_used_is_not_converted(tmp_path, ending):
    for events in ([EVENT | {"pdrop": 1}], []):
        path = write_lines(tmp_path / "log.dsjson", *events)
        with pytest.raises(ValueError, match="log.dsjson has no decision that can be used"):
            convert(path, tmp_path / f"out.{ending}", Skipped())
        assert not (tmp_path / f"out.{ending}").exists()
        assert not check_log(path).sound


@pytest.mark.parametrize("ending", ["parquet", "dsjson"])
def test_every_bad_decision_is_told_once_however_far_passes_go(tmp_path, ending):
    bad = np.asarray([3, 5, 9000, 19_999])
    if ending == "dsjson":
        events = [EVENT | ({"pdrop": 2} if n in bad else {}) for n in range(20_000)]
        path = write_lines(tmp_path / "log.dsjson", *events)
    else:
        import pyarrow as pa
        from pyarrow import parquet

        write_log(tmp_path / "good.parquet", [decisions(20_000, 2, 1)])
        table = parquet.read_table(tmp_path / "good.parquet")
        weight = np.where(np.isin(np.arange(20_000), bad), -1.0, 1.0)
        table = table.set_column(table.column_names.index("weight"), "weight", pa.array(weight))
        path = tmp_path / "log.parquet"
        parquet.write_table(table, path)
    skipped = Skipped()
    log = open_log(path, skipped)
    next(log.chunks())  # a pass that stops early
    for _ in range(2):
        assert sum(len(chunk.line) for chunk in log.chunks()) == 20_000 - 4
        assert skipped.count == 4
    assert [line for line, _ in skipped.first] == (bad + 1).tolist()
