"""Settings to choose from: grids, ranges, and what is wrong with them."""

import numpy as np
import pytest

from neuralucb.experiments.candidates import SAMPLES, candidates
from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.paper import paper_grid


def test_a_grid_is_every_combination_and_by_default_the_algorithms_own():
    assert candidates("lin-ucb", {"exploration": ["0.1", 1]}) == [{"exploration": 0.1}, {"exploration": 1.0}]
    grid = paper_grid("kernel-ucb")
    assert len(candidates("kernel-ucb", None)) == np.prod([len(values) for values in grid.values()])


def test_ranges_are_drawn_evenly_on_a_logarithmic_scale_and_equally_for_equal_seeds():
    grid = {"step_size": "1e-4..1e-1", "width": "8..128", "start": ["warm", "initial"]}
    found = candidates("neural-ucb", grid, samples=200)
    assert found == candidates("neural-ucb", grid, samples=200) != candidates("neural-ucb", grid, samples=200, seed=1)
    steps = np.log10([point["step_size"] for point in found])
    assert -4 <= steps.min() < -3.8 < -2.7 < steps.mean() < -2.3 < -1.2 < steps.max() <= -1
    assert all(isinstance(point["width"], int) and 8 <= point["width"] <= 128 for point in found)
    assert {point["start"] for point in found} == {"warm", "initial"}
    assert len(candidates("lin-ucb", {"exploration": "0.01..10"})) == SAMPLES


def test_samples_of_a_small_grid_are_different():
    assert len(candidates("lin-ucb", {"exploration": [0.1, 1, 10]}, samples=50)) == 3


@pytest.mark.parametrize(
    ("grid", "samples", "match"),
    [
        ({"exploration": [1]}, None, "at least two settings to choose from, got .*'exploration': 1.0.*such as"),
        ({"alpha": [1, 2]}, None, "alpha is not a setting of lin-ucb, which has: exploration"),
        ({"exploration": [1, 1.0]}, None, "exploration has the value 1.0 twice"),
        ({"exploration": [1, -1]}, None, "grid: exploration .*-1"),
        ({"exploration": []}, None, "exploration must be a list of values, got \\[\\]"),
        ({"exploration": "1..0.1"}, None, "must begin above 0 and end later, got '1..0.1'"),
        ({"exploration": "high"}, None, "a range such as 1e-4..1e-1, got 'high'"),
        ({"design_precision": "1..2"}, None, "design_precision has no ranges"),
        ({"exploration": [1, 2]}, 1, "samples must be .* at least 2, got 1"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused_with_its_name_and_value(grid, samples, match):
    with pytest.raises(InputError, match=match):
        candidates("lin-ucb", grid, samples=samples)


def test_an_algorithm_without_a_grid_needs_one():
    with pytest.raises(InputError, match="grid must be given for uniform, .* settings: none"):
        candidates("uniform", None)
