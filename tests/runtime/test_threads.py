"""Work in threads: order, and errors."""

from functools import partial

import pytest

from neuralucb.runtime.threads import in_order


def test_results_come_in_the_order_of_the_works():
    assert list(in_order([partial(int, number) for number in range(20)])) == list(range(20))
    assert list(in_order([])) == []


def test_an_error_is_raised_where_its_result_would_have_come():
    made = in_order([partial(int, "1"), partial(int, "two"), partial(int, "3")])
    assert next(made) == 1
    with pytest.raises(ValueError, match="two"):
        next(made)
