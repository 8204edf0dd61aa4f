"""Figures: every line can be told from the others without colour, and names are drawn as they are."""

from itertools import pairwise

import numpy as np
import pytest

from neuralucb.algorithms import ALGORITHMS
from neuralucb.experiments.figures import DASHES, SCALE, Curve, draw_regret, style_of


def curve(algorithm, problem):
    regret = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    return Curve(algorithm, problem, np.arange(1, 4), regret, None, 0)


def test_every_algorithm_has_a_pattern_of_its_own():
    patterns = [style_of(place)[1] for place in range(len(ALGORITHMS) - len(SCALE))]
    assert len(set(patterns)) == len(patterns)
    assert SCALE["uniform"][1] not in DASHES
    dots = [pattern for pattern in [*patterns, SCALE["uniform"][1]] if pattern != "-" and max(pattern[1][::2]) <= 1]
    gaps = sorted(min(pattern[1][1::2]) for pattern in dots)
    assert all(wide >= 2 * narrow for narrow, wide in pairwise(gaps)), "dots like other dots"


@pytest.mark.parametrize("name", ["us$_vs_$eu_", "a$b", r"\frac$1$"])
def test_a_name_with_dollars_is_no_formula(tmp_path, name):
    draw_regret([[curve("lin-ucb", name)]], [tmp_path / "a.svg"])
    assert name in (tmp_path / "a.svg").read_text()
