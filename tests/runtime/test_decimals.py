"""Numbers in single precision as decimals."""

import numpy as np

from neuralucb.runtime.decimals import decimal, decimals


def test_single_precision_is_printed_short_and_read_back_as_the_same():
    values = np.array([[0.15, 0.05, 1 / 3], [1e-30, 3e38, -0.0]], np.float32)
    made = decimals(values)
    assert made.tolist() == [[0.15, 0.05, 0.33333334], [1e-30, 3e38, 0.0]]
    every = np.random.default_rng(0).integers(0, 2**31 - 1, 100_000, np.int32).view(np.float32)
    assert np.array_equal(decimals(every).astype(np.float32), every, equal_nan=True)


def test_double_precision_and_what_is_not_finite_stay_as_they_are():
    assert decimals(np.array([0.1, 2.0**-30])).tolist() == [0.1, 2.0**-30]
    mixed = np.array([0.1, float(np.float32(0.15)), np.nan])
    assert decimals(mixed, by_value=True).tolist()[:2] == [0.1, 0.15]
    assert decimals(np.array([0.1, np.inf, np.nan], np.float32)).tolist()[:2] == [0.1, np.inf]


def test_one_number_is_a_decimal_if_it_is_one_in_single_precision():
    assert decimal(float(np.float32(0.15))) == 0.15
    assert decimal(0.1 + 0.2) == 0.1 + 0.2
    assert decimal(1e300) == 1e300
    assert np.isnan(decimal(float("nan")))
