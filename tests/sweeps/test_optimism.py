"""What choosing promises of the score: checked where the answer is known."""

import numpy as np
import pytest
from scipy import stats

from neuralucb.sweeps.optimism import Sample, promise, score


def sample(regret, rows=None, rounds=1000, seed=0):
    """Curves whose rounds are right or wrong by chance, as often as the final regret says."""
    generator = np.random.default_rng(seed)
    wrong = generator.random((len(regret), rounds)) < np.asarray(regret)[:, None] / rounds
    curves = np.cumsum(wrong, axis=1).astype(float)
    return Sample(curves[:, -1], curves, rounds, rows)


def test_without_rows_the_promise_is_the_prediction_interval_of_a_new_mean():
    made = sample([100, 120, 90, 110, 105])
    estimate = promise(made, seeds=5, rows=None, finalists=1)
    reach = stats.t.ppf(0.975, 4) * made.regret.std(ddof=1) * np.sqrt(2 / 5)
    assert estimate == pytest.approx((made.regret.mean(), made.regret.mean() - reach, made.regret.mean() + reach))


def test_more_finalists_move_the_upper_end_alone():
    one, many = (promise(sample([100, 120, 90]), seeds=3, rows=None, finalists=count) for count in (1, 20))
    assert one[:2] == many[:2]
    assert many.high > one.high


def test_rows_vary_like_the_rounds_that_show_them():
    """Wrong in a share q of the rounds: variance q(1-q) per row, whatever the thinning of the curve."""
    made = sample([200] * 20, rows=500)
    assert made.row_variance == pytest.approx(1000**2 * 0.2 * 0.8 / 500, rel=0.1)
    thinned = made._replace(curves=made.curves[:, 9::10])
    assert thinned.row_variance == pytest.approx(made.row_variance, rel=0.15)
    assert score(made).high > score(made._replace(rows=None)).high


def test_the_promise_is_kept_as_often_as_it_says_although_the_best_of_twenty_equals_is_chosen():
    """And a control: without the correction it is broken far more often."""
    kept, control, trials = 0, 0, 400
    for trial in range(trials):
        generator = np.random.default_rng(trial)
        regret = 100 + 10 * generator.normal(size=(20, 6))
        best = regret[regret.mean(axis=1).argmin()]
        new = 100 + 10 * generator.normal(size=6).mean()
        corrected, bare = (
            promise(Sample(best, best[:, None], 1, None), seeds=6, rows=None, finalists=n) for n in (20, 1)
        )
        kept += corrected.low <= new <= corrected.high
        control += bare.low <= new <= bare.high
    assert kept / trials >= 0.95
    assert control / trials < 0.9
