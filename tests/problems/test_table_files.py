"""Files as tables: what is read, what is taken out of it, and what is refused with a reason."""

from contextlib import suppress
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb import InputError
from neuralucb.problems.table_files import read_table
from tests.problems.rows import X, Y


def read_labelled(path, label):
    return read_table(path, {"label": label})


def labels_of(table):
    (labels,) = table.taken.values()
    return labels


def test_files_of_the_users_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("colour,size,kind\nred,1,x\nblue,2,y\nred,3,x\n")
    table = read_labelled(tmp_path / "a.csv", "kind")
    rows, labels = table.rows(), labels_of(table)
    assert_array_equal(rows, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])  # colour as one-hot, blue before red
    assert labels.tolist() == ["x", "y", "x"]


def test_parquet_is_read_like_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"colour": ["red", "blue", "red"], "size": [1.0, 2.0, 3.0], "kind": ["x", "y", "x"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    read = read_labelled(tmp_path / "a.parquet", "kind")
    rows, labels = read.rows(), labels_of(read)
    assert_array_equal(rows, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])
    assert labels.tolist() == ["x", "y", "x"]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"b.parquet cannot be read"):
        read_labelled(tmp_path / "b.parquet", "kind")
    with_hole = pyarrow.table({"size": [1.0, None, 3.0], "colour": ["red", None, "red"], "kind": ["x", "y", "x"]})
    parquet.write_table(with_hole, tmp_path / "c.parquet")
    with pytest.raises(InputError, match="column colour of c.parquet has a missing value in row 1"):
        read_labelled(tmp_path / "c.parquet", "kind").rows("size")


def test_categories_in_parquet_are_words_and_their_holes_are_missing(tmp_path):
    """pyarrow hands a dictionary's holes to NumPy as some other word of it."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    colours, kinds = (pyarrow.array(words).dictionary_encode() for words in (["red", "blue", "red"], ["x", "y", "x"]))
    parquet.write_table(pyarrow.table({"colour": colours, "kind": kinds}), tmp_path / "a.parquet")
    table = read_labelled(tmp_path / "a.parquet", "kind")
    assert_array_equal(table.rows(), [[0, 1], [1, 0], [0, 1]])
    assert labels_of(table).tolist() == ["x", "y", "x"]
    with_hole = pyarrow.array(["red", None, "blue"]).dictionary_encode()
    parquet.write_table(pyarrow.table({"colour": with_hole, "kind": kinds}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="column colour of b.parquet has a missing value in row 1"):
        read_labelled(tmp_path / "b.parquet", "kind").rows()
    with pytest.raises(InputError, match="label colour of b.parquet is missing in row 1"):
        read_labelled(tmp_path / "b.parquet", "colour")


def test_two_columns_of_one_name_in_parquet_are_told(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * 3, ["a", "a", "kind"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="more than one column named a"):
        read_labelled(tmp_path / "a.parquet", "kind")


def test_holes_are_named_by_column_also_where_all_are_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.where(np.arange(120).reshape(40, 3) == 7, np.nan, X), y=Y)
    with pytest.raises(InputError, match=r"column 1 of a.npz has a missing value in row 2; fill it"):
        read_labelled(tmp_path / "a.npz", None).rows()
    (tmp_path / "a.csv").write_text("colour,size,kind\nred,1,x\nblue,inf,y\n")
    with pytest.raises(InputError, match=r"column size of a.csv must be finite, got inf in row 1"):
        read_labelled(tmp_path / "a.csv", "kind").rows()


def test_lists_records_and_bytes_in_parquet_are_refused_or_dropped(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"size": [1.0, 2.0], "list": [[1, 2], [3]], "record": [{"q": 1}, {"q": 2}], "kind": ["x", "y"]}
    columns |= {"bytes": [b"a", b"b"], "codes": pyarrow.array([b"aa", b"bb"], pyarrow.binary(2)).dictionary_encode()}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="column list of a.parquet must be numbers or words, got list<.*drop=list"):
        read_labelled(tmp_path / "a.parquet", "kind").rows()
    with pytest.raises(InputError, match="column record of a.parquet must be numbers or words, got struct<"):
        read_labelled(tmp_path / "a.parquet", "kind").rows("list")
    with pytest.raises(InputError, match="column bytes of a.parquet must be numbers or words, got binary"):
        read_labelled(tmp_path / "a.parquet", "kind").rows("list+record")
    with pytest.raises(InputError, match="column codes of a.parquet must be numbers or words, got fixed_size_binary"):
        read_labelled(tmp_path / "a.parquet", "kind").rows("list+record+bytes")
    assert_array_equal(read_labelled(tmp_path / "a.parquet", "kind").rows("list+record+bytes+codes"), [[1], [2]])
    with pytest.raises(InputError, match="label list of a.parquet must be numbers or words, got list<"):
        read_labelled(tmp_path / "a.parquet", "list")


@pytest.mark.parametrize(
    ("name", "content", "label", "message"),
    [
        ("a.csv", b"p,q\n1,2\n", "kind", "label must name a column of a.csv, got 'kind'; it has: p, q"),
        ("a.csv", b"p,q\n1\n", "q", "line 2 has 1 values"),
        ("a.csv", b"p,q\n,2\n1,3\n", "q", "column p of a.csv has a missing value in row 0"),
        ("a.csv", b"p,q\n", "q", "line of names and lines of values, got only names"),
        ("a.csv", b"", "q", "line of names and lines of values, got none"),
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
        ("a.txt", b"", None, "must be a .npz, .csv or .parquet file"),
        ("gone.csv", None, "q", "gone.csv cannot be read: it was not found"),
        ("gone.parquet", None, "q", "gone.parquet cannot be read: it was not found"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, label, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_labelled(tmp_path / name, label).rows()


def test_csv_of_all_sorts(tmp_path):
    plain = b"a,b,kind\n1,x,1\n2,y,1.0\n3,x,2\n"
    for text in (plain, b"\xef\xbb\xbf" + plain, plain + b"\n\n", plain.replace(b",", b", ")):
        (tmp_path / "t.CSV").write_bytes(text)
        table = read_labelled(tmp_path / "t.CSV", "kind")
        assert table.names == ["a", "b"]
        assert labels_of(table).tolist() == [1, 1, 2]  # 1 and 1.0 are one class
        assert_array_equal(table.rows("b"), [[1], [2], [3]])
        assert_array_equal(table.rows("a"), [[1, 0], [0, 1], [1, 0]])


def test_long_numbers_as_labels_stay_apart(tmp_path):
    (tmp_path / "a.csv").write_text("a,id\n1,9007199254740992\n2,9007199254740993\n")
    assert len(np.unique(labels_of(read_labelled(tmp_path / "a.csv", "id")))) == 2


def test_damaged_archives_say_so(tmp_path):
    np.save(tmp_path / "array.npy", X)
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(InputError, match="must have the keys X and y, got one array"):
        read_labelled(tmp_path / "array.npz", None)
    np.savez_compressed(tmp_path / "good.npz", X=X, y=Y)
    good = (tmp_path / "good.npz").read_bytes()
    for place in range(0, len(good), 7):
        (tmp_path / "bad.npz").write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
        with suppress(InputError):  # a byte that no one reads may pass; nothing else may be raised
            read_labelled(tmp_path / "bad.npz", None)
    with ZipFile(tmp_path / "junk.npz", "w") as archive:
        archive.writestr("X.npy", b"junk")
        archive.writestr("y.npy", b"junk")
    with pytest.raises(InputError, match="not a NumPy file of plain arrays"):
        read_labelled(tmp_path / "junk.npz", None)
    np.savez(tmp_path / "objects.npz", X=np.array([[None]]), y=Y)
    with pytest.raises(InputError, match="not a NumPy file of plain arrays"):
        read_labelled(tmp_path / "objects.npz", None)


@pytest.mark.parametrize(("rows", "labels", "name"), [(X[:, 0], Y, "X"), (X, Y[:, None], "y"), (X, Y[:-1], "y")])
def test_archives_of_another_shape_are_named(tmp_path, rows, labels, name):
    np.savez(tmp_path / "mine.npz", X=rows, y=labels)
    with pytest.raises(InputError, match=rf"{name} in .*mine.npz must .*, got shape \("):
        read_labelled(tmp_path / "mine.npz", None)


def test_damaged_parquet_says_so(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"size": X[:, 0], "colour": ["red", "blue"] * 20, "kind": Y}), tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    for place in range(0, len(good), 7):
        (tmp_path / "bad.parquet").write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
        with suppress(InputError):  # a byte that no one reads may pass; nothing else may be raised
            read_labelled(tmp_path / "bad.parquet", "kind").rows()


def test_an_archive_takes_a_label_of_any_name(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y, kind=np.array(["no", "yes"])[Y], short=Y[:-1])
    assert labels_of(read_labelled(tmp_path / "a.npz", "kind"))[0] in ("no", "yes")
    assert_array_equal(labels_of(read_labelled(tmp_path / "a.npz", None)), Y)
    with pytest.raises(InputError, match="a.npz must have the keys X and sort, got X, y, kind, short"):
        read_labelled(tmp_path / "a.npz", "sort")
    with pytest.raises(
        InputError, match=r"short in .*a.npz must have one label for each of the 40 rows, got shape \(39,\)"
    ):
        read_labelled(tmp_path / "a.npz", "short")


def test_several_columns_are_taken_out_and_numbers_are_checked(tmp_path):
    (tmp_path / "a.csv").write_text("size,mail,call,kind\n1,10,-3.5,x\n2,20,1e3,y\n")
    table = read_table(tmp_path / "a.csv", {"rewards": ["mail", "call"]})
    assert table.names == ["size", "kind"]
    assert {name: column.tolist() for name, column in table.taken.items()} == {"mail": [10, 20], "call": [-3.5, 1000]}
    assert table.features("none").names == ("size", "kind=x", "kind=y")
    for names, message in (
        (["mail", "mail"], "rewards must name a column that nothing else names, got 'mail' twice"),
        (["mail", "post"], "rewards must name a column of a.csv, got 'post'; it has: size, mail, call, kind"),
        (["mail", "kind"], "rewards kind of a.csv must be numbers, got 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / "a.csv", {"rewards": names})


def test_times_in_parquet_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"at": pyarrow.array([3, 4], pyarrow.time32("s")), "kind": ["x", "y"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match=r"column at of a.parquet must be numbers or words, got dates or times .*drop=at"
    ):
        read_labelled(tmp_path / "a.parquet", "kind").rows()
