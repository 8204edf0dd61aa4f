"""Figures: every line can be told from the others without colour, and names are drawn as they are."""

from itertools import pairwise

import numpy as np
import pytest

from neuralucb.algorithms import ALGORITHMS
from neuralucb.display.figures import BASELINES, DASHES, INNER_LEGEND, Curve, draw_regret, style_of


def curve(algorithm, problem):
    regret = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    return Curve(algorithm, problem, np.arange(1, 4), regret, None, 0)


def test_every_algorithm_has_a_pattern_of_its_own():
    patterns = [style_of(place)[1] for place in range(len(ALGORITHMS) - len(BASELINES))]
    assert len(set(patterns)) == len(patterns)
    assert BASELINES["uniform"][1] not in DASHES
    dots = [pattern for pattern in [*patterns, BASELINES["uniform"][1]] if pattern != "-" and max(pattern[1][::2]) <= 1]
    gaps = sorted(min(pattern[1][1::2]) for pattern in dots)
    assert all(wide >= 2 * narrow for narrow, wide in pairwise(gaps)), "dots like other dots"


@pytest.mark.parametrize("name", ["us$_vs_$eu_", "a$b", r"\frac$1$"])
def test_a_name_with_dollars_is_no_formula(tmp_path, name):
    draw_regret([[curve("lin-ucb", name)]], [tmp_path / "a.svg"])
    assert name in (tmp_path / "a.svg").read_text()


def test_a_common_legend_names_an_algorithm_once_and_counts_all_its_diverged_runs(tmp_path):
    names = list(ALGORITHMS)[: INNER_LEGEND + 1]
    panels = [[curve(name, problem) for name in names] for problem in ("h1", "h2")]
    panels[1][0] = panels[1][0]._replace(diverged=1)
    draw_regret(panels, [tmp_path / "a.svg"])
    text = (tmp_path / "a.svg").read_text()
    assert text.count(f">{names[0]} (1 of 4 diverged)<") == 1
    assert f">{names[0]}<" not in text
