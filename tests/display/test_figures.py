"""Figures: lines can be told apart without colour and by the colour-blind, and names are drawn as they are."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from neuralucb.algorithms import ALGORITHMS
from neuralucb.display.figures import BASELINES, COLOURS, DASHES, INNER_LEGEND, draw_regret, style_of
from neuralucb.experiments.results import Curve
from neuralucb.experiments.tables import title_of

FAR_APART = 0.136
"""In OKLab; black and white are 1 apart."""
OKABE_ITO = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
MACHADO = {  # Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def oklab(colour, sight):
    """How a colour looks, in OKLab (Ottosson 2020)."""
    encoded = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(MACHADO[sight]) @ linear, 0, 1)
    to_cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return to_lab @ np.cbrt(to_cones @ seen)


def least_distance(colours, sight):
    places = [oklab(colour, sight) for colour in colours]
    return min(np.linalg.norm(one - other) for one, other in combinations(places, 2))


@pytest.mark.parametrize("sight", MACHADO)
def test_twelve_colours_stay_apart_for_every_kind_of_sight(sight):
    assert len(set(COLOURS)) == len(COLOURS) == len(DASHES) == 12
    assert least_distance(COLOURS, sight) >= FAR_APART


def test_eight_colours_of_okabe_and_ito_do_not_stay_as_far_apart():
    assert min(least_distance(OKABE_ITO, sight) for sight in MACHADO) < FAR_APART


def curve(algorithm, problem):
    regret = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    return Curve(algorithm, problem, np.arange(1, 4), regret, None, 0)


def test_every_algorithm_has_a_style_and_of_twelve_each_a_pattern_of_its_own():
    styles = [style_of(place) for place in range(len(ALGORITHMS) - len(BASELINES))]
    assert len(set(styles)) == len(styles)
    patterns = [pattern for _, pattern in styles[: len(DASHES)]]
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
    assert text.count(f">{title_of(names[0])} (1 of 4 diverged)<") == 1
    assert f">{title_of(names[0])}<" not in text
