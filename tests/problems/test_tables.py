"""Arrays and DataFrames as tables: words become one-hot, dates and nested values are refused as in a file."""

import datetime

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from neuralucb import InputError, labelled
from neuralucb.problems import rewards
from neuralucb.problems.tables import read_rows
from tests.problems.rows import X, Y

DAYS = pd.date_range("2024-01-01", periods=40)


def frame(**columns):
    return pd.DataFrame({"size": X[:, 0], **columns})


def test_columns_of_a_frame_keep_their_types():
    colour = np.array(["red", "blue"])[Y]
    wanted = np.c_[X[:, 0], Y, colour == "blue", colour == "red", Y]
    as_pandas = frame(many=Y, colour=pd.Categorical(colour), big=Y > 0)
    assert_array_equal(read_rows(as_pandas), wanted)  # true and false are numbers, as in a Parquet file
    assert_array_equal(read_rows(as_pandas.convert_dtypes()), wanted)
    assert_array_equal(read_rows(polars.DataFrame(as_pandas.to_dict("list"))), wanted)
    assert_array_equal(read_rows(as_pandas.to_numpy()), wanted)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (DAYS, "datetime64"),
        (DAYS.tz_localize("Europe/Oslo"), "date"),
        (DAYS - DAYS[0], "timedelta64"),
        (DAYS.to_period("D"), r"periods of time \(2024-01-01\)"),
        ([day.date() for day in DAYS], r"dates or times \(2024-01-01\)"),
        ([datetime.time(3, minute) for minute in range(40)], r"dates or times \(03:00:00\)"),
        ([[1, 2]] * 40, "list"),
        ([{"a": 1}] * 40, "dict"),
        ([b"ab"] * 40, "bytes"),
    ],
)
def test_dates_and_nested_values_in_a_frame_are_refused(column, kind):
    given = frame(odd=column)
    for make in (lambda: labelled(given, Y), lambda: rewards(given, X)):
        with pytest.raises(
            InputError, match=f"column odd of X must be numbers or words, got .*{kind}.*; leave the column"
        ):
            make()


def test_dates_in_an_array_of_objects_are_refused():
    given = frame(when=DAYS).to_numpy()
    with pytest.raises(InputError, match=r"column 1 of X must be numbers or words, got dates or times \(2024-01-01"):
        labelled(given, Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (frame(odd=[None, *["a"] * 39]), "column odd of X has a missing value in row 0"),
        (frame(odd=pd.array([1, None] * 20, "Int64")), "column odd of X has a missing value in row 1"),
        (frame(odd=[np.inf] * 40), "column odd of X must be finite, got inf in row 0"),
        (frame(odd=[f"w{row}" for row in range(40)] * 1), None),
        (pd.DataFrame(np.ones((40, 2)), columns=["a", "a"]), "X has more than one column named a; rename them"),
        (pd.DataFrame(index=range(40)), r"X must be a table of rows and columns, got shape \(40, 0\)"),
        (np.ma.masked_greater(X, 1), "X must not have masked values"),
        (csr_array(X), r"X must be a dense array, got a sparse csr_array; give X\.toarray\(\)"),
    ],
)
def test_frames_that_cannot_be_used_say_why(given, message):
    if message is None:
        assert read_rows(given).shape == (40, 41)
        return
    with pytest.raises(InputError, match=message):
        labelled(given, Y)


def test_decimal_commas_are_no_categories():
    for odd in (["1,5", "2"] * 20, ["-1,5", "2,25"] * 20):
        with pytest.raises(InputError, match=r"column odd of X has '-?1,5' in row 0, .* write numbers as -?1\.5, and"):
            labelled(frame(odd=odd), Y)
    assert read_rows(frame(odd=["1,5", "a"] * 20)).shape == (40, 3)  # a word among them: categories


def test_the_old_name_of_input_scaling_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="scaling is now called input_scaling"):
        old = labelled(X, Y, scaling="unit")
    assert_array_equal(old.data[0], labelled(X, Y, input_scaling="unit").data[0])
