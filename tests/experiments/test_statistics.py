"""Statistics over seeds: Student's interval, and the aggregates of Agarwal et al. 2021, each against its definition."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.experiments.statistics import (
    band,
    estimate_mean,
    few_seeds,
    interquartile_mean,
    interval,
    probability_of_improvement,
    stratified_bootstrap,
)


def test_the_interval_is_students():
    low, high = interval(np.array([1.0, 2.0, 3.0, 4.0]))
    half = 3.182446305284263 * np.std([1, 2, 3, 4], ddof=1) / 2  # t quantile 0.975 with 3 degrees of freedom
    assert_allclose([low, high], [2.5 - half, 2.5 + half])
    assert all(math.isnan(end) for end in interval(np.array([1.0])))


@pytest.mark.parametrize("seeds", [5, 10])
def test_the_interval_covers_the_mean_as_often_as_it_says_and_a_wrong_mean_less(seeds):
    low, high = interval(np.random.default_rng(3).normal(5, 2, (seeds, 4000)))
    error = np.sqrt(0.95 * 0.05 / 4000)
    assert abs(((low <= 5) & (high >= 5)).mean() - 0.95) < 5 * error
    assert ((low <= 7) & (high >= 7)).mean() < 0.95 - 5 * error


@pytest.mark.parametrize(
    ("seeds", "begins"), [(1, "1 seed: no interval"), (2, "2 seeds: too few"), (4, "4 seeds: too few"), (5, "")]
)
def test_few_seeds_are_remarked(seeds, begins):
    assert few_seeds(seeds).startswith(begins)
    assert bool(few_seeds(seeds)) is bool(begins)


def test_the_band_is_students_interval_at_every_point_and_needs_five_seeds():
    curves = np.random.default_rng(1).random((7, 5)).cumsum(axis=1)
    low, high = band(curves)
    for point in range(5):
        assert (low[point], high[point]) == pytest.approx(estimate_mean(curves[:, point])[1:])
    assert band(curves[:4]) is None


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert interquartile_mean(np.array([1000.0, 3, 2, 1, 5, 4, -1000, 6])) == np.mean([2, 3, 4, 5])
    assert interquartile_mean(np.array([1.0, 2, 9])) == 4  # three have no quarter


def test_the_probability_of_improvement_is_over_all_pairs_and_ties_count_half():
    ours, theirs = np.array([1.0, 2, 2, 7]), np.array([2.0, 3, 1])
    pairs = [(one < other) + 0.5 * (one == other) for one in ours for other in theirs]
    assert_allclose(probability_of_improvement(ours, theirs), np.mean(pairs))
    assert probability_of_improvement(ours, ours) == 0.5
    assert probability_of_improvement(ours, ours + 10) == 1


def test_the_bootstrap_resamples_each_group_for_itself():
    """Two groups far apart, each without spread: a pooled bootstrap would mix them, a stratified one cannot."""
    groups = [np.zeros(10), np.full(10, 100.0)]
    assert stratified_bootstrap(groups, lambda drawn: float(np.concatenate(drawn).mean())) == (50, 50)
    generator = np.random.default_rng(0)
    normal = [generator.normal(3, 1, 200)]
    low, high = stratified_bootstrap(normal, lambda drawn: float(drawn[0].mean()))
    assert_allclose([low, high], estimate_mean(normal[0])[1:], atol=0.02)
    assert (low, high) == stratified_bootstrap(normal, lambda drawn: float(drawn[0].mean()))
