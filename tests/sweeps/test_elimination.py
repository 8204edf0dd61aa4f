"""What is dropped between the stages of a race: the leader never is, ties are not, and what is clearly worse is."""

import numpy as np
import pytest
from scipy import stats

from neuralucb.sweeps.elimination import project, verdicts


def noise(settings, seeds, seed=0):
    return np.random.default_rng(seed).normal(size=(settings, seeds))


def test_the_test_is_students_where_all_differences_vary_alike():
    regret = np.asarray([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 3.5, 6.0]])
    (verdict,) = verdicts(regret, regret, np.zeros(2, bool), error=0.5).values()
    difference = regret[1] - regret[0]
    t = difference.mean() / (difference.std(ddof=1) / 2)
    assert verdict.p == pytest.approx(stats.t.sf(t, 6))
    assert verdict.difference == pytest.approx(difference.mean())
    assert verdict.leader == 0


def test_a_setting_that_is_behind_but_catching_up_stays_and_so_does_one_that_slows_down():
    so_far = np.asarray([[100.0], [200.0], [90.0], [300.0]]) + noise(4, 5)
    projected = np.asarray([[400.0], [410.0], [900.0], [900.0]]) + 20 * noise(4, 5, 1)
    assert set(verdicts(so_far, projected, np.zeros(4, bool), error=0.01)) == {3}


def test_a_run_is_projected_at_its_latest_pace():
    made = project(np.float64([[100]]), np.float64([[80]]), played=200, half=100, rounds=1000)
    np.testing.assert_allclose(made, [[100 + 800 * 0.2]])


def test_what_diverged_is_dropped_and_never_leads():
    regret = np.asarray([[1.0], [100.0], [101.0]]) + noise(3, 4)
    found = verdicts(regret, regret, np.asarray([True, False, False]), error=0.01)
    assert {row: verdict.why for row, verdict in found.items()} == {0: "diverged"}


def test_equal_settings_and_single_seeds_drop_nothing():
    same = np.tile(noise(1, 4), (3, 1))
    assert not verdicts(same, same, np.zeros(3, bool), error=0.5)
    one = np.asarray([[1.0], [1000.0]])
    assert not verdicts(one, one, np.zeros(2, bool), error=0.5)


def test_a_setting_as_good_as_the_others_is_dropped_as_seldom_as_promised():
    """And a control: one that is worse by three deviations is dropped nearly always."""
    dropped, control, trials = 0, 0, 2000
    for trial in range(trials):
        regret = noise(2, 5, trial)
        dropped += bool(verdicts(regret, regret, np.zeros(2, bool), error=0.02))
        worse = np.concatenate([regret, noise(1, 5, trials + trial) + 6])
        control += 2 in verdicts(worse, worse, np.zeros(3, bool), error=0.02)
    # the leader of two equals is the luckier one: twice the error; variances of two are one and the same, so that
    # Student's own degrees of freedom are half of ours
    assert dropped / trials < 0.08
    assert control / trials > 0.9
