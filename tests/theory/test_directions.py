"""Contexts of the same direction are found, whatever their norms."""

import numpy as np
import pytest

from neuralucb import theory
from neuralucb.policy import Slot
from neuralucb.theory import tangent_kernel
from tests.theory.helpers import sphere


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_parallel_contexts_are_named(scale):
    x = sphere(30, 4)
    x[17] = scale * x[5]
    assert theory.parallel_pair(x) == (5, 17)
    assert theory.parallel_pair(x.astype(np.float32)) == (5, 17)
    with pytest.raises(ValueError, match="contexts 5 and 17 have the same direction"):
        theory.require_regular(x)
    with pytest.raises(ValueError, match="H is singular"):
        theory.smallest_eigenvalue(tangent_kernel(x, depth=2))
    x[5] = 0
    with pytest.raises(ValueError, match="context 5 is 0"):
        theory.require_regular(x)
    assert theory.parallel_pair(Slot(np.ones((3, 2)), np.arange(3))) is None
    assert theory.parallel_pair(Slot(np.ones((3, 2)), np.array([0, 1, 0]))) == (0, 2)


@pytest.mark.parametrize("scale", [1e-200, 1e160])
def test_directions_do_not_depend_on_the_scale(scale):
    x = sphere(20, 3)
    assert theory.parallel_pair(scale * x) is None
    assert theory.parallel_pair(scale * np.concatenate([x, x[3:4]])) == (3, 20)


@pytest.mark.parametrize("made", ["abc", [[1.0, 2.0], [3.0]], np.array([["a", "b"]])])
def test_contexts_that_are_no_numbers_are_refused(made):
    with pytest.raises(ValueError, match="contexts must be a table of numbers"):
        tangent_kernel(made, depth=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tangent_kernel(np.ones(3), depth=2), "contexts must be a table"),
        (lambda: tangent_kernel(np.full((2, 2), np.nan), depth=2), "finite, got NaN or infinity in row 0"),
        (lambda: tangent_kernel(Slot(np.ones((2, 2)), np.ones(3)), depth=2), "one arm for each of the 2 rows"),
        (lambda: theory.parallel_pair(np.full((2, 3), 1.7e308)), "norms within float64, got one beyond it in row 0"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()
