"""Classification as a bandit, and the data it comes from."""

import json
import sys
import zlib
from contextlib import suppress
from http.client import IncompleteRead
from pathlib import Path
from zipfile import ZipFile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import compare, run
from neuralucb.algorithms import ALGORITHMS
from neuralucb.problems import find_problem, from_file, labelled
from neuralucb.problems.datasets import BUNDLED, SETS, data_folder, data_path, fetch, find_set, load
from neuralucb.problems.labelled import scale_rows
from neuralucb.problems.labelled_files import read_table

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def test_a_round_is_a_row_its_arms_and_its_label():
    problem = labelled(X, np.array(["no", "yes"])[Y], scaling="none")
    world = problem.init(jax.random.key(0), problem.data)
    assert_array_equal(np.sort(world), np.arange(40))
    for t in range(40):
        now = problem.draw(jax.random.key(1), problem.data, world, jnp.int32(t))
        row = int(world[t])
        assert_allclose(now.contexts.x, np.tile(X[row], (2, 1)), rtol=1e-6)
        assert_array_equal(now.contexts.arm, [0, 1])
        assert_array_equal(now.expected, [1 - Y[row], Y[row]])
        assert now.noise == 0


def test_scaling_does_what_its_name_says():
    rows = np.array([[1.0, 5, 7], [3, 5, 9], [5, 5, 8], [0, 5, 1]])
    assert_allclose(scale_rows(rows, "none"), rows)
    assert_allclose(np.linalg.norm(scale_rows(rows, "unit"), axis=1), 1, rtol=1e-6)
    standard = scale_rows(rows, "standard")
    assert_allclose(np.linalg.norm(standard, axis=1), 1, rtol=1e-6)
    assert_array_equal(standard[:, 1], 0)  # a constant column says nothing
    for value in (0.1, 1 / 3, 1e9 + 0.1):
        with_constant = scale_rows(np.c_[X, np.full(40, value)], "standard")
        assert_array_equal(with_constant[:, 3], 0)
        assert_allclose(with_constant[:, :3], scale_rows(X, "standard"), rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.where(np.arange(120).reshape(40, 3) == 7, np.nan, X), Y, "X must be finite, got nan in row 2, column 1"),
        (X, np.zeros(40), "at least 2 classes"),
        (X, Y[:-1], "one label for each of the 40 rows"),
        (X[0], Y, "table of at least 2 rows"),
        (X.astype(complex), Y, "column 0 of X must be numbers or words, got complex128"),
        (
            np.where(np.arange(120).reshape(40, 3) == 7, "?", X.astype(str)),
            Y,
            "column 1 of X has a missing value in row 2",
        ),
        (np.ma.masked_greater(X, 1), Y, "must not have masked values"),
        (X, np.ma.masked_equal(Y, 1), "must not have masked values"),
        (X, np.where(np.arange(40) == 3, np.nan, Y), "missing labels, got '.*' in row 3"),
        (X, np.where(np.arange(40) == 3, None, Y), "missing labels, got '.*' in row 3"),
        (X, np.where(np.arange(40) == 3, "NA", Y.astype(str)), "missing labels, got '.*' in row 3"),
        (X, np.arange(40.0), "y must be classes, got 40 different values in 40 rows"),
        (X * 1e300, Y, "size that can be scaled"),
    ],
)
def test_tables_that_cannot_be_played_are_refused(rows, labels, message):
    with pytest.raises(ValueError, match=message):
        labelled(rows, labels)


def test_columns_of_words_are_one_hot_in_python_too():
    colour = np.array(["red", "blue"])[Y]
    mixed = np.column_stack([X.astype(object), colour])
    by_hand = np.c_[X, colour == "blue", colour == "red"]
    assert_array_equal(labelled(mixed, Y).data[0], labelled(by_hand, Y).data[0])
    assert_array_equal(labelled(X.astype(str), Y).data[0], labelled(X, Y).data[0])  # numbers, as in a file of text


def test_every_algorithm_plays_shared_contexts(tmp_path):
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    toy = from_file(tmp_path / "toy.npz", None)
    small = {"width": 4, "steps": 3, "batch_size": 4, "networks": 2, "budget": 10}
    results = compare(toy, list(ALGORITHMS), rounds=30, seeds=2, schedule="10", **small)
    assert {result.algorithm for result in results} == set(ALGORITHMS)
    assert {result.problem for result in results} == {"toy"}
    assert all(np.isfinite(result.final_regret).all() and result.diverged == 0 for result in results)
    assert not results[-1].regret.any()
    with pytest.raises(ValueError, match="rounds must be at most 40, the rows of toy, got 50; .* --repeat"):
        run("lin-ucb", toy, rounds=50, seeds=1)
    assert run("lin-ucb", toy, rounds=50, seeds=1, repeat=True).rounds == 50


def test_a_problem_itself_can_be_run_and_is_that_of_the_file(tmp_path):
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    of_file = run("lin-ucb", from_file(tmp_path / "toy.npz", None), rounds=30, seeds=3)
    given = run("lin-ucb", labelled(X, Y, name="mine"), rounds=30, seeds=3)
    assert_array_equal(of_file.regret, given.regret)
    assert given.problem == "mine"
    with pytest.raises(ValueError, match="repeat: not a setting of lin-ucb"):
        run("lin-ucb", labelled(X, Y), rounds=30, repeat=True)


def test_columns_can_be_dropped(tmp_path):
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    toy = from_file(tmp_path / "toy.npz", None)
    shorter = run("lin-ucb", labelled(X[:, 1:2], Y), rounds=30, seeds=2)
    assert_array_equal(run("lin-ucb", toy, rounds=30, seeds=2, drop="0+2").regret, shorter.regret)
    for bad, message in (("3", "drop must name columns of toy.npz, got 3; it has: 0, 1"), ("0+1+2", "no column left")):
        with pytest.raises(ValueError, match=message):
            run("lin-ucb", toy, rounds=30, drop=bad)


def test_an_intercept_is_one_more_column_of_a_scaled_row():
    rows = scale_rows(X, "standard", intercept=True)
    assert rows.shape == (40, 4)
    assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert_allclose(rows[:, :3] / rows[:, 3:], (X - X.mean(0)) / X.std(0), rtol=1e-4, atol=1e-5)
    assert labelled(X, Y, intercept=True).dim == 4


@pytest.mark.parametrize("side", [4, 5])
def test_smooth_rows_are_blurred_images_of_half_the_size(side):
    images = np.random.default_rng(1).random((3, side, side))
    kept = range(0, side, 2)
    expected = []
    for image in images:
        for row in kept:
            for column in kept:
                weights = [
                    [np.exp(-((i - row) ** 2 + (j - column) ** 2) / 2) for j in range(side)] for i in range(side)
                ]
                expected.append(np.average(image, weights=weights))
    whole = np.reshape(expected, (3, len(kept) ** 2))
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    assert_allclose(scale_rows(images.reshape(3, -1), "smooth"), whole, rtol=1e-5)


def test_smooth_needs_square_images():
    with pytest.raises(ValueError, match="scaling smooth needs rows that are square images, got 3 columns; use unit"):
        labelled(X, Y, scaling="smooth")
    assert run("lin-ucb", "digits", rounds=20, seeds=1, input_scaling="smooth").rounds == 20


def test_a_bundled_set_needs_no_download():
    result = run("lin-ucb", "wine", rounds=150, seeds=2, exploration=0.1)
    assert result.final_regret.max() < 60  # chance would lose 100 of 150


def test_files_of_the_users_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("colour,size,kind\nred,1,x\nblue,2,y\nred,3,x\n")
    table = read_table(tmp_path / "a.csv", "kind")
    rows, labels = table.rows(), table.labels
    assert_array_equal(rows, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])  # colour as one-hot, blue before red
    assert labels.tolist() == ["x", "y", "x"]


def test_parquet_is_read_like_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"colour": ["red", "blue", "red"], "size": [1.0, 2.0, 3.0], "kind": ["x", "y", "x"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet", "kind")
    rows, labels = read.rows(), read.labels
    assert_array_equal(rows, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])
    assert labels.tolist() == ["x", "y", "x"]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ValueError, match=r"b.parquet cannot be read"):
        read_table(tmp_path / "b.parquet", "kind")
    with_hole = pyarrow.table({"size": [1.0, None, 3.0], "colour": ["red", None, "red"], "kind": ["x", "y", "x"]})
    parquet.write_table(with_hole, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="column colour of c.parquet has a missing value in row 1"):
        read_table(tmp_path / "c.parquet", "kind").rows("size")


def test_categories_in_parquet_are_words_and_their_holes_are_missing(tmp_path):
    """pyarrow hands a dictionary's holes to NumPy as some other word of it."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    colours, kinds = (pyarrow.array(words).dictionary_encode() for words in (["red", "blue", "red"], ["x", "y", "x"]))
    parquet.write_table(pyarrow.table({"colour": colours, "kind": kinds}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", "kind")
    assert_array_equal(table.rows(), [[0, 1], [1, 0], [0, 1]])
    assert table.labels.tolist() == ["x", "y", "x"]
    with_hole = pyarrow.array(["red", None, "blue"]).dictionary_encode()
    parquet.write_table(pyarrow.table({"colour": with_hole, "kind": kinds}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="column colour of b.parquet has a missing value in row 1"):
        read_table(tmp_path / "b.parquet", "kind").rows()
    with pytest.raises(ValueError, match="label colour of b.parquet is missing in row 1"):
        read_table(tmp_path / "b.parquet", "colour")


def test_two_columns_of_one_name_in_parquet_are_told(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 3, ["a", "a", "kind"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="more than one column named a"):
        read_table(tmp_path / "a.parquet", "kind")


def test_holes_are_named_by_column_also_where_all_are_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.where(np.arange(120).reshape(40, 3) == 7, np.nan, X), y=Y)
    with pytest.raises(ValueError, match=r"column 1 of a.npz has a missing value in row 2; fill it"):
        read_table(tmp_path / "a.npz", None).rows()
    (tmp_path / "a.csv").write_text("colour,size,kind\nred,1,x\nblue,inf,y\n")
    with pytest.raises(ValueError, match=r"column size of a.csv must be finite, got inf in row 1"):
        read_table(tmp_path / "a.csv", "kind").rows()


def test_lists_records_and_bytes_in_parquet_are_refused_or_dropped(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"size": [1.0, 2.0], "list": [[1, 2], [3]], "record": [{"q": 1}, {"q": 2}], "kind": ["x", "y"]}
    columns |= {"bytes": [b"a", b"b"], "codes": pyarrow.array([b"aa", b"bb"], pyarrow.binary(2)).dictionary_encode()}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column list of a.parquet must be numbers or words, got list<.*drop=list"):
        read_table(tmp_path / "a.parquet", "kind").rows()
    with pytest.raises(ValueError, match="column record of a.parquet must be numbers or words, got struct<"):
        read_table(tmp_path / "a.parquet", "kind").rows("list")
    with pytest.raises(ValueError, match="column bytes of a.parquet must be numbers or words, got binary"):
        read_table(tmp_path / "a.parquet", "kind").rows("list+record")
    with pytest.raises(ValueError, match="column codes of a.parquet must be numbers or words, got fixed_size_binary"):
        read_table(tmp_path / "a.parquet", "kind").rows("list+record+bytes")
    assert_array_equal(read_table(tmp_path / "a.parquet", "kind").rows("list+record+bytes+codes"), [[1], [2]])
    with pytest.raises(ValueError, match="label list of a.parquet must be numbers or words, got list<"):
        read_table(tmp_path / "a.parquet", "list")


def test_rows_that_are_all_alike_are_told_so():
    with pytest.raises(ValueError, match="every column is constant"):
        labelled(np.full((4, 2), 5.0), [0, 1, 0, 1])
    labelled(np.full((4, 2), 5.0), [0, 1, 0, 1], intercept=True)
    labelled(np.full((4, 2), 5.0), [0, 1, 0, 1], scaling="unit")


def test_numbers_too_small_to_scale_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="of a size that can be scaled"):
        labelled(np.arange(8).reshape(4, 2) * 1e-310, [0, 1, 0, 1])


@pytest.mark.parametrize("ask", [find_set, fetch, data_path])
def test_a_bundled_set_has_nothing_to_fetch(ask):
    with pytest.raises(ValueError, match="digits comes with scikit-learn: there is nothing to fetch"):
        ask("digits")


def test_a_set_that_is_there_is_not_fetched_again(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    (tmp_path / "magic.npz").write_bytes(b"mine")
    code, out, _ = command("data", "fetch", "magic")
    assert (code, (tmp_path / "magic.npz").read_bytes()) == (0, b"mine")
    assert "exists already; to fetch it again, delete it first" in " ".join(out.split())


@pytest.mark.parametrize(
    ("name", "content", "label", "message"),
    [
        ("a.csv", b"p,q\n1,2\n", "kind", "label must name a column of a.csv, got 'kind'; it has: p, q"),
        ("a.csv", b"p,q\n1\n", "q", "line 2 has 1 values"),
        ("a.csv", b"p,q\n,2\n1,3\n", "q", "column p of a.csv has a missing value in row 0"),
        ("a.csv", b"p,q\n", "q", "line of names and lines of values"),
        ("a.csv", b"p,q\n1,\n1,NA\n", "q", "label q of a.csv is missing in row 0"),
        (
            "a.csv",
            b"p,q\n1,None\n1,b\n",
            "q",
            "label q of a.csv is missing in row 0: 'None' counts as missing; fill",
        ),
        (
            "a.csv",
            b"p,q\nnull,1\n1,2\n",
            "q",
            "column p of a.csv has a missing value in row 0: 'null' counts as missing",
        ),
        ("a.csv", b",p,q\n0,1,2\n1,4,5\n", "q", "column 1 of a.csv has no name; name it, or save the file without"),
        ("a.csv", b"p,q,\n0,1,\n1,4,\n", "q", "column 3 of a.csv has no name"),
        ("a.csv", b"p,p,q\n1,2,3\n4,5,6\n", "q", "more than one column named p"),
        ("a.csv", b"p;q\n1;2\n", "q", r"it has: p;q. Are its values separated by something other than commas\?$"),
        ("a.csv", b"p;q\n1,5;2\n", "q", r"line 2 has 2 values, the first has 1. Are its values separated by"),
        ("a.csv", "p,q\n1,2\n".encode("utf-16"), "q", "cannot be read: it is not UTF-8 text"),
        ("a.csv", b"p,q\n1,2\n2,2\n3..5,2\n", "q", "column p of a.csv has '3..5' among numbers, in row 2"),
        (
            "a.csv",
            b"p,q\n" + b"".join(b"w%d,2\n" % i for i in range(200)),
            "q",
            "200 different words, more than the 100",
        ),
        ("a.csv", b"p,q\n" + b"x" * 200_000 + b",2\n", "q", "cannot be read: field larger"),
        ("a.npz", b"not a zip", None, "cannot be read: it is not a NumPy file"),
        ("a.npz", b"not a zip", "q", "label must not be given with a .npz"),
        ("a.txt", b"", None, "must be a file .npz, .csv or .parquet"),
        ("gone.csv", None, "q", "gone.csv cannot be read: it was not found"),
        ("gone.parquet", None, "q", "gone.parquet cannot be read: it was not found"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, label, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, label).rows()


def test_csv_of_all_sorts(tmp_path):
    plain = b"a,b,kind\n1,x,1\n2,y,1.0\n3,x,2\n"
    for text in (plain, b"\xef\xbb\xbf" + plain, plain + b"\n\n", plain.replace(b",", b", ")):
        (tmp_path / "t.CSV").write_bytes(text)
        table = read_table(tmp_path / "t.CSV", "kind")
        assert table.names == ["a", "b"]
        assert table.labels.tolist() == [1, 1, 2]  # 1 and 1.0 are one class
        assert_array_equal(table.rows("b"), [[1], [2], [3]])
        assert_array_equal(table.rows("a"), [[1, 0], [0, 1], [1, 0]])


def test_long_numbers_as_labels_stay_apart(tmp_path):
    (tmp_path / "a.csv").write_text("a,id\n1,9007199254740992\n2,9007199254740993\n")
    assert len(np.unique(read_table(tmp_path / "a.csv", "id").labels)) == 2


def test_damaged_archives_say_so(tmp_path):
    np.save(tmp_path / "array.npy", X)
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(ValueError, match="must have the keys X and y, got one array"):
        read_table(tmp_path / "array.npz", None)
    np.savez_compressed(tmp_path / "good.npz", X=X, y=Y)
    whole = (tmp_path / "good.npz").read_bytes()
    for place in range(60, len(whole) - 200, 40):
        (tmp_path / "bad.npz").write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with suppress(ValueError):  # a byte that no one reads may pass; nothing else may be raised
            read_table(tmp_path / "bad.npz", None)
    with ZipFile(tmp_path / "junk.npz", "w") as archive:
        archive.writestr("X.npy", b"junk")
        archive.writestr("y.npy", b"junk")
    with pytest.raises(ValueError, match="not a NumPy file of plain arrays"):
        read_table(tmp_path / "junk.npz", None)
    np.savez(tmp_path / "objects.npz", X=np.array([[None]]), y=Y)
    with pytest.raises(ValueError, match="not a NumPy file of plain arrays"):
        read_table(tmp_path / "objects.npz", None)


@pytest.mark.parametrize(("rows", "labels", "name"), [(X[:, 0], Y, "X"), (X, Y[:, None], "y"), (X, Y[:-1], "y")])
def test_archives_of_another_shape_are_named(tmp_path, rows, labels, name):
    np.savez(tmp_path / "mine.npz", X=rows, y=labels)
    with pytest.raises(ValueError, match=rf"{name} in .*mine.npz must .*, got shape \("):
        read_table(tmp_path / "mine.npz", None)


def test_a_file_named_like_a_data_set_is_not_that_data_set(tmp_path):
    np.savez(tmp_path / "magic.npz", X=X, y=Y)
    ours = run("neural-ucb", from_file(tmp_path / "magic.npz", None), rounds=5, seeds=1, steps=2)
    assert ours.settings["optimizer"] == "plain"  # magic's own is adam


def test_presets_leave_the_numbers_of_other_algorithms_alone():
    for preset in ("paper", "best", "uclaml"):
        result = run("lin-ucb", "wine", rounds=5, seeds=1, preset=preset)
        assert (result.settings["regularization"], result.settings["exploration"]) == (1.0, 0.1)
    with pytest.raises(
        ValueError, match="sets input_scaling='unit', which a problem that is already built cannot take"
    ):
        run("lin-ucb", labelled(X, Y), rounds=5, preset="uclaml")


def test_the_rounds_are_all_rows_where_there_are_few():
    assert run("uniform", labelled(X, Y), seeds=1).rounds == 40


def test_a_missing_set_says_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"neuralucb data fetch magic.*magic.npz"):
        load("magic")
    with pytest.raises(ValueError, match="known: covertype, magic, shuttle, mnist"):
        fetch("irises")


@pytest.mark.parametrize(
    "problem", [EOFError("cut off"), IncompleteRead(b""), zlib.error("bad"), OSError("no route"), KeyError("url")]
)
def test_a_download_that_breaks_leaves_nothing(monkeypatch, tmp_path, problem):
    import sklearn.datasets

    def breaks(**_):
        raise problem

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", breaks)
    with pytest.raises(ValueError, match="magic could not be downloaded"):
        fetch("magic")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_under_the_users_own_is_not_one_named_after_the_sign(monkeypatch, tmp_path):
    """Only a shell turns ~ into the home folder, and not within quotes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NEURALUCB_DATA", "~/sets")
    assert data_path("statlog") == tmp_path / "sets" / "shuttle.npz"


def test_a_folder_that_cannot_be_written_is_found_out_before_the_download(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path / "file"))
    with pytest.raises(ValueError, match="cannot be written .*NEURALUCB_DATA"):
        fetch("magic")


def test_no_network_leaves_nothing_behind(monkeypatch, tmp_path):
    import sklearn.datasets

    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    with pytest.raises(ValueError, match=r"could not be downloaded \(no route\); put .*magic.npz"):
        fetch("magic")
    assert list(tmp_path.iterdir()) == []


def test_what_was_downloaded_is_checked_and_kept_whole(monkeypatch, tmp_path):
    import sklearn.datasets

    rows = SETS["magic"].rows
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    good = np.zeros((rows, 10)), np.array(["g", "h"])[np.arange(rows) % 2]
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: good)
    assert fetch("magic") == tmp_path / "magic.npz"
    assert load("magic").rows().shape == (rows, 10)
    assert (tmp_path / "magic.sha256").exists()
    (tmp_path / "magic.npz").unlink()
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: (good[0][:9], good[1][:9]))
    with pytest.raises(ValueError, match="magic as downloaded has 9 rows"):
        fetch("magic")


def test_a_download_shows_how_far_it_is(monkeypatch, tmp_path):
    import time

    import sklearn.datasets

    def slow(*, data_home, **_):
        Path(data_home, "part").write_bytes(bytes(1000))
        time.sleep(0.5)
        raise OSError("line went dead")

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", slow)
    seen = []
    with pytest.raises(ValueError, match="line went dead"):
        fetch("magic", seen.append)
    assert seen[-1] == 1000
    assert list(tmp_path.iterdir()) == []


def test_every_data_set_has_shared_contexts():
    """Its definition says so before anything is loaded; presets and default rounds go by it."""
    for name in (*SETS, *BUNDLED, "statlog"):
        assert find_problem(name).shared
    assert labelled(X, Y).shared


def test_statlog_is_shuttle():
    assert find_problem("statlog").make == find_problem("shuttle").make


@pytest.mark.parametrize("name", SETS)
def test_the_papers_sets_have_the_counts_of_table_1(name):
    if not (data_folder() / f"{name}.npz").exists():
        pytest.skip(f"{name} is not in {data_folder()}")
    table = load(name)
    rows, labels = table.rows(), table.labels
    assert rows.shape == (SETS[name].rows, SETS[name].features)
    assert len(np.unique(labels)) == SETS[name].classes


def test_the_command_line_plays_a_file(monkeypatch, capsys, tmp_path):
    from neuralucb.cli import app

    lines = ["a,b,c,kind", *(f"{row[0]},{row[1]},{row[2]},{'yes' if y else 'no'}" for row, y in zip(X, Y, strict=True))]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    arguments = ["run", "lin-ucb", "--data", str(tmp_path / "mine.csv"), "--label", "kind", "--seeds", "2", "--json"]
    monkeypatch.setattr(sys, "argv", ["neuralucb", *arguments])
    with pytest.raises(SystemExit) as end:
        app.main()
    assert end.value.code == 0
    record = json.loads(capsys.readouterr().out)
    assert record["problem"] == "mine"
    assert record["rounds"] == 40
