"""Comparisons: by name, paired differences, ranking, aggregates over problems, old order, files."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, compare, labelled, synthetic
from neuralucb.experiments import Comparison
from neuralucb.experiments.statistics import estimate_mean
from tests.experiments.results import made_up

SPREAD = np.array([0.0, 100, 200, 300, 400])
"""Seeds differ far more than algorithms do."""


@pytest.fixture
def two():
    """Two algorithms on problems of scales 1 and 1000, and uniform for scale."""
    results = [
        made_up(name, problem, scale * (ends + 1))
        for problem, scale in (("h1", 1), ("h2", 1000))
        for name, ends in (("neural-ucb", SPREAD), ("lin-ucb", SPREAD + 10))
    ]
    scale = [made_up("uniform", "h1", [500, 500]), made_up("uniform", "h2", [500_000, 500_000])]
    return Comparison(tuple(results), tuple(scale))


def test_it_is_a_sequence_of_results_by_place_and_by_name(two):
    assert len(two) == len(list(two)) == 4
    assert two.algorithms == ("neural-ucb", "lin-ucb")
    assert two.problems == ("h1", "h2")
    assert two[1] is two["lin-ucb", "h1"]
    assert two[-1:] == two.results[-1:]
    with pytest.raises(KeyError, match="several problems; name one too"):
        _ = two["lin-ucb"]
    with pytest.raises(KeyError, match="'glm-ucb' is not in this comparison: neural-ucb, lin-ucb on h1, h2"):
        _ = two["glm-ucb"]


def test_differences_are_paired_by_seed(two):
    first, second = two.differences()
    assert (first.algorithm, first.minus, first.problem, first.seeds) == ("lin-ucb", "neural-ucb", "h1", 5)
    assert_allclose(first.estimate, (10, 10, 10))  # the spread of the seeds is gone
    assert_allclose(second.estimate, (10_000, 10_000, 10_000))
    assert_allclose(two.differences(to="lin-ucb")[0].estimate.mean, -10)
    with pytest.raises(InputError, match="to must be one of neural-ucb, lin-ucb, got 'glm-ucb'"):
        two.differences(to="glm-ucb")


def test_the_ranking_has_the_least_regret_first_and_ties_share_a_place(two):
    ranks = two.ranking()
    assert [(one.place, one.algorithm, one.problem) for one in ranks] == [
        (1, "neural-ucb", "h1"),
        (2, "lin-ucb", "h1"),
        (1, "neural-ucb", "h2"),
        (2, "lin-ucb", "h2"),
    ]
    assert ranks[0].regret == estimate_mean(SPREAD + 1)
    tied = Comparison(tuple(made_up(name, final=ends) for name, ends in (("a", [2]), ("b", [1]), ("c", [1]))))
    assert [(one.place, one.algorithm) for one in tied.ranking()] == [(1, "b"), (1, "c"), (3, "a")]


def test_aggregates_count_regret_as_a_share_of_uniforms(two):
    best, other = two.aggregates()
    assert (best.algorithm, other.algorithm) == ("neural-ucb", "lin-ucb")
    pooled = np.sort(np.tile(SPREAD + 1, 2) / 500)
    assert_allclose(best.share.mean, pooled[2:-2].mean())
    assert best.share.low < best.share.mean < best.share.high
    (chance,) = two.improvements()
    assert (chance.algorithm, chance.over) == ("lin-ucb", "neural-ucb")
    assert_allclose(chance.probability, 10 / 25)  # of 25 pairs, those in which neural-ucb has a larger seed
    assert chance.low <= chance.probability <= chance.high


def test_without_a_scale_aggregates_say_what_is_missing(two):
    with pytest.raises(InputError, match="aggregates need 'uniform' on h1, h2"):
        Comparison(two.results).aggregates()
    flat = [made_up("uniform", problem, [0, 0]) for problem in two.problems]
    with pytest.raises(InputError, match="'uniform' has no regret on h1: all arms are equal"):
        Comparison(two.results, tuple(flat)).aggregates()


def test_it_is_printed_as_a_ranking_that_fits_a_screen(two):
    text = str(two)
    assert text.splitlines()[0] == "NeuralUCB and LinUCB on h1 and h2, 4 rounds, 5 seeds"
    assert "minus NeuralUCB" in text
    assert "over all problems" in text
    assert "too few" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert repr(two) == "Comparison(NeuralUCB and LinUCB on h1 and h2, 4 rounds, 5 seeds)"
    assert two._repr_html_().count("<table>") == 3
    alone = Comparison((made_up("lin-ucb", final=[1, 2]),))
    assert "2 seeds: too few" in str(alone)
    assert "2 seeds: too few" in alone._repr_html_()
    assert "minus" not in str(alone)


def test_a_frame_and_a_figure_hold_all_results(two):
    frame = two.to_frame(every=4)
    assert len(frame) == 20
    assert set(frame.problem) == {"h1", "h2"}
    axes = two.plot()
    assert [one.get_title() for one in axes] == ["h1 (5 seeds)", "h2 (5 seeds)"]
    single = Comparison(two.results[:2]).plot()
    assert [text.get_text() for text in single.get_legend().get_texts()] == ["NeuralUCB", "LinUCB"]
    for wrong in (single, 3, [single, "right"]):
        with pytest.raises(InputError, match=r"ax must be axes of matplotlib, one per problem \(2\), got"):
            two.plot(wrong)
    pyplot.close("all")


def test_a_file_gives_back_all_of_the_comparison(two, tmp_path):
    found = Comparison.load(two.save(tmp_path / "two.parquet"))
    assert str(found) == str(two)
    assert [one.as_json() for one in (*found, *found.scale)] == [one.as_json() for one in (*two, *two.scale)]


def test_several_problems_get_the_settings_they_have_and_uniform_is_played_along():
    told = []
    comparison = compare(
        ["lin-ucb"], ["h1", "iris"], rounds=10, seeds=2, arms=3, intercept=True, trace=True,
        progress=lambda stage, done, total: told.append(stage),
    )  # fmt: skip
    assert [(one.algorithm, one.problem) for one in comparison] == [("lin-ucb", "h1"), ("lin-ucb", "iris")]
    assert comparison["lin-ucb", "h1"].settings["arms"] == 3
    assert comparison["lin-ucb", "iris"].settings["intercept"] is True
    assert comparison["lin-ucb", "iris"].trace.arm.shape == (2, 10)
    assert [one.algorithm for one in comparison.scale] == ["uniform", "uniform"]
    assert list(dict.fromkeys(told)) == [
        f"{who} on {where}" for where in ("h1", "iris") for who in ("lin-ucb", "uniform")
    ]
    assert comparison.aggregates()[0].share.mean > 0
    with pytest.raises(InputError, match="nose .* is not a setting of any of these"):
        compare(["lin-ucb"], ["h1", "iris"], rounds=10, nose=1)


@pytest.mark.parametrize("problem", ["h1", synthetic("h1", dim=4)], ids=["name", "problem"])
def test_the_old_order_still_works_and_warns(problem):
    settings = {"dim": 4} if isinstance(problem, str) else {}
    with pytest.warns(DeprecationWarning, match=r"write compare\(algorithms, problem\)"):
        old = compare(problem, ["uniform"], rounds=5, seeds=1, **settings)
    new = compare(["uniform"], problem, rounds=5, seeds=1, **settings)
    assert_array_equal(old[0].regret, new[0].regret)


def test_problems_of_one_name_are_refused_and_a_mapping_names_them():
    rows, labels = np.eye(6), np.arange(6) % 2
    first, second = labelled(rows, labels), labelled(2 * rows, labels)
    with pytest.raises(InputError, match="problems must have different names, got .* more than once"):
        compare(["uniform"], [first, second])
    with pytest.raises(InputError, match="at least one"):
        compare(["uniform"], [])
    comparison = compare(["uniform"], {"once": first, "twice": second}, seeds=1)
    assert comparison.problems == ("once", "twice")
    assert comparison.scale == ()  # it is one of those compared
