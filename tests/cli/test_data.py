"""`neuralucb data`, `neuralucb table1`, and files of the user's, as a stranger uses them."""

import json

import numpy as np
import pytest

from tests.problems.rows import X, Y


def test_a_set_that_is_there_is_not_fetched_again(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    (tmp_path / "magic.npz").write_bytes(b"mine")
    code, out, _ = command("data", "fetch", "magic")
    assert (code, (tmp_path / "magic.npz").read_bytes()) == (0, b"mine")
    assert "exists already; to fetch it again, delete it first" in " ".join(out.split())


def test_a_file_is_played(command, tmp_path):
    lines = ["a,b,c,kind", *(f"{row[0]},{row[1]},{row[2]},{'yes' if y else 'no'}" for row, y in zip(X, Y, strict=True))]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    arguments = ["run", "lin-ucb", "--data", str(tmp_path / "mine.csv"), "--label", "kind", "--seeds", "2", "--json"]
    code, out, _ = command(*arguments)
    record = json.loads(out)
    assert code == 0
    assert record["problem"] == "mine"
    assert record["rounds"] == 40


def test_data_sets_are_listed_with_their_paths_or_how_to_fetch_them(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    code, out, _ = command("data", "list")
    assert code == 0
    words = " ".join(out.split())
    assert "magic not fetched 19020 10 2" in words
    assert "iris comes with scikit-learn" in words
    assert command("data", "path", "statlog")[1] == f"{tmp_path / 'shuttle.npz'}\n"


def test_table_1_is_counted_from_the_files_and_a_damaged_one_is_named(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    np.savez(tmp_path / "magic.npz", X=X, y=Y)
    (tmp_path / "mnist.npz").write_bytes(b"damaged")
    code, out, err = command("table1", "--out", "here")
    assert code == 0
    assert "mnist.npz cannot be read" in " ".join(err.split())
    table = (tmp_path / "here" / "table1.md").read_text()
    assert "| magic | 3 | 2 | 40 | 10, 2, 19020 |\n" in table
    assert "| mnist | damaged |" in table
    assert "| shuttle | not fetched |" in table
    assert "magic 3 2 40 10, 2, 19020" in " ".join(out.split())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npz", b"text"),
        ("a.npz", b"PK\x03\x04 a broken archive"),
        ("a.csv", b"\xff\xfe"),
        ("a.csv", b'kind,size\n"x,1\n'),
        ("a.parquet", b"PAR1 not really PAR1"),
        ("a.xlsx", b""),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(command, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    label = [] if name.endswith("npz") else ["--label", "kind"]
    code, out, err = command("run", "lin-ucb", "--data", name, *label)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
