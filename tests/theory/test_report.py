"""Reports: they agree with the functions, heed every setting, and note where the theorem does not apply."""

import json
import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build, synthetic, theory
from neuralucb.experiments import plan
from neuralucb.experiments.statistics import finite_or_none
from neuralucb.problems import build_problem, labelled
from neuralucb.simulation import draw_rounds, simulate
from neuralucb.theory import Assumptions, Horizon, tangent_kernel
from tests.theory.helpers import planned, sphere

OWN = {"noise": 0.25, "noise_bound": 0.5, "failure": 0.05, "constant_1": 2.0, "constant_2": 3.0, "constant_3": 5.0}


@pytest.mark.parametrize("name", ["h1", "iris"])
def test_drawn_rounds_are_those_that_a_run_meets(name, key):
    problem = build_problem(name, {"dim": 3} if name == "h1" else {})
    policy = build("uniform", dim=problem.dim, shared_by=problem.shared_by)
    drawn = draw_rounds(key, problem, rounds=20)
    with jax.enable_x64(True):
        shown = problem._replace(data=jax.device_put(problem.data))
        trace = jax.jit(lambda key: simulate(key, policy, shown, rounds=20, schedule="10"))(key).trace
    chosen = np.take_along_axis(np.asarray(drawn.expected), np.asarray(trace.arm)[:, None], axis=1)[:, 0]
    assert_allclose(trace.regret, drawn.expected.max(axis=1) - chosen, atol=1e-5)


def test_report_agrees_with_the_functions():
    report = theory.analyse(planned("h1", dim=5, regularization=2.0))
    drawn = draw_rounds(jax.random.key(0), synthetic("h1", dim=5), rounds=20)
    kernel = tangent_kernel(np.asarray(drawn.contexts).reshape(-1, 5), depth=2)
    h = np.asarray(drawn.expected, np.float64).ravel()
    S, d = theory.norm_bound(kernel, h), theory.effective_dimension(kernel, regularization=2.0)
    assert_allclose([report.effective_dimension, report.norm], [d, S], rtol=1e-9)
    assert_allclose(report.lambda_0, theory.smallest_eigenvalue(kernel), rtol=1e-9)
    assumed, over = Assumptions(norm=S), Horizon(20, 4, 2, 2.0)
    steps = theory.least_steps(assumed, over)
    assert report.steps == steps
    assert_allclose(report.bound, theory.theorem_1(d, assumed, over, steps=steps), rtol=1e-9)
    lambdas_, found = report.dimensions_by_regularization()
    assert_allclose(found[lambdas_ == 2.0], d, rtol=1e-9)
    assert (np.diff(report.bounds[np.isfinite(report.bounds)]) > 0).all()
    assert [note[:19] for note in report.notes] == ["the bound is stated"]  # h1 lives in the ball and goes beyond 1


def test_report_heeds_noise_failure_and_constants():
    report = theory.analyse(planned("h1", dim=5, regularization=2.0, **OWN))
    assumed = Assumptions(0.5, 0.05, report.norm, (2.0, 3.0, 5.0))
    steps = theory.least_steps(assumed, report.over)
    d = report.effective_dimension
    assert report.steps == steps
    assert_allclose(report.bound, theory.theorem_1(d, assumed, report.over, steps=steps), rtol=1e-12)
    assert_allclose(report.expected_bound, theory.corollary_1(d, assumed, report.over, steps=steps), rtol=1e-12)


def test_curves_of_a_report_are_reports_of_fewer_rounds():
    long = theory.analyse(planned("h1", dim=5, regularization=2.0, **OWN))
    for t in (4, 11, 20):
        short = theory.analyse(planned("h1", dim=5, regularization=2.0, rounds=t, **OWN))
        (index,) = np.flatnonzero(long.rounds == t)
        assert_allclose(long.dimensions[index], short.effective_dimension, rtol=1e-9)
        assert_allclose(long.bounds[index], short.bound, rtol=1e-9)


@pytest.mark.parametrize("regularization", [1e-9, 0.5, 1e7])
def test_the_curve_against_regularization_reaches_the_one_that_is_played(regularization):
    report = theory.analyse(planned("h1", dim=5, rounds=4, regularization=regularization))
    lambdas, found = report.dimensions_by_regularization()
    assert lambdas[0] <= min(1e-3, regularization * 1.01)
    assert lambdas[-1] >= max(1e3, regularization * 0.99)
    assert np.diff(np.log10(lambdas)).max() < 0.26  # no chord across decades
    assert_allclose(found[np.isclose(lambdas, regularization, rtol=1e-12)][0], report.effective_dimension, rtol=1e-6)


def test_progress_goes_on_to_the_end(monkeypatch):
    monkeypatch.setattr("neuralucb.theory.linalg.TILE", 8)
    seen, bars = [], {}
    theory.effective_dimension_of(sphere(40, 3), depth=2, regularization=1.0, progress=lambda *at: seen.append(at))
    shares = [done / total for done, total in seen]
    assert len(seen) > 10  # the kernel's tiles, too
    assert shares == sorted(shares)
    assert shares[-1] == 1
    theory.analyse(planned("h1", dim=3), lambda what: lambda *at: bars.update({what: at}))
    assert set(bars) == {"kernel", "eigenvalues", "d̃", "S"}
    assert all(done == total for done, total in bars.values())


def test_repeated_rows_make_lambda_0_zero_and_leave_the_rest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), np.arange(8) % 2
    twice = labelled(np.concatenate([X, X]), np.concatenate([y, y]), input_scaling="unit")
    report = theory.analyse(planned(twice, rounds=16, depth=2, regularization=1.0))
    once = theory.analyse(planned(labelled(X, y, input_scaling="unit"), rounds=8, depth=2, regularization=1.0))
    assert report.lambda_0 == 0
    assert report.repeated == 16
    assert any("S is computed from the first of each" in note for note in report.notes)
    assert_allclose(report.norm, once.norm, rtol=1e-5)
    assert report.effective_dimension > once.effective_dimension
    assert report.bound is not None
    assert report.conditions.width == math.inf


def test_rewards_that_contradict_each_other_have_no_norm():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 2, axis=0)
    report = theory.analyse(planned(labelled(X, np.arange(8) % 2, input_scaling="unit"), rounds=8, depth=2))
    assert report.norm is None
    assert report.bound is None
    assert any("S is infinite" in note for note in report.notes)


def test_a_row_of_zeros_is_noticed():
    X = np.eye(6)[:, :4]
    report = theory.analyse(planned(labelled(X, np.arange(6) % 2, input_scaling="none"), rounds=6, depth=2))
    assert report.lambda_0 == 0
    assert report.norm is None


@pytest.mark.parametrize("seed", range(6))
def test_report_of_a_singular_kernel_has_no_norm_and_no_bound(seed):
    x = sphere(4 + seed % 2, 3, seed)
    y = np.random.default_rng(seed).integers(0, 2, 2 * len(x))
    y[:2] = [0, 1]
    problem = labelled(np.concatenate([x, -x]), y, input_scaling="none")
    report = theory.analyse(planned(problem, rounds=len(y), depth=2, regularization=1.0))
    assert (report.lambda_0, report.repeated) == (0, 0)
    assert (report.norm, report.steps, report.bound, report.expected_bound) == (None,) * 4
    assert any("H is singular to working precision" in note for note in report.notes)
    assert report.effective_dimension > 0


def test_report_of_a_kernel_that_stays_singular_without_its_repeats_has_no_norm():
    for seed in range(4):
        x, y = sphere(5, 3, seed), np.arange(10) % 2
        problem = labelled(np.concatenate([x, -x, x]), np.concatenate([y, y[:5]]), input_scaling="none")
        report = theory.analyse(planned(problem, rounds=15, depth=2, regularization=1.0))
        assert report.repeated == 10
        assert (report.norm, report.bound) == (None, None)
        assert any("S cannot be computed: kernel must be regular" in note for note in report.notes)


def test_report_survives_a_regularization_below_rounding():
    x, y = np.repeat(sphere(8, 3), 2, axis=0), np.repeat(np.arange(8) % 2, 2)
    tiny = {"rounds": 16, "depth": 2, "regularization": 1e-17}
    report = theory.analyse(planned(labelled(x, y, input_scaling="none"), **tiny))
    assert math.isnan(report.effective_dimension)
    assert (report.bound, finite_or_none(report.effective_dimension)) == (None, None)
    assert report.norm > 0
    assert any("d̃ and the bound are left out" in note for note in report.notes)


def test_a_dimension_on_which_the_two_ways_disagree_is_noted(monkeypatch):
    assert not any("by Cholesky" in note for note in theory.analyse(planned("h1", dim=5)).notes)
    monkeypatch.setattr("neuralucb.theory.report.dimension_from_eigenvalues", lambda values, regularization: 3.0)
    assert any("by Cholesky and 3 by eigenvalues" in note for note in theory.analyse(planned("h1", dim=5)).notes)


def test_a_report_that_does_not_fit_into_memory_estimates_and_says_so(monkeypatch):
    exact = theory.analyse(planned("h1", dim=5, rounds=60))
    for module in ("report", "dimension"):
        monkeypatch.setattr(f"neuralucb.theory.{module}.host_bytes", lambda: 1000)
    report = theory.analyse(planned("h1", dim=5, rounds=60))
    assert abs(report.effective_dimension - exact.effective_dimension) < 4 * report.effective_dimension_error
    assert report.bound is None
    assert "an estimate" in report.notes[-1]


def test_a_report_on_more_contexts_than_memory_holds_is_refused_before_they_are_drawn(monkeypatch):
    plan = planned("h1", rounds=10**7)
    monkeypatch.setattr("neuralucb.runtime.memory.host_bytes", lambda: 20 * 10**9)
    with pytest.raises(ValueError, match="theory of 40000000 contexts needs 22.4 GB and 20.0 GB .* play fewer rounds"):
        theory.analyse(plan)


@pytest.mark.parametrize("given", ["h1", synthetic("h1", dim=4, noise=10.0)], ids=["named", "made"])
def test_the_noise_of_the_problem_is_in_the_bound(given):
    options = {"dim": 4, "noise": 10.0} if given == "h1" else {}
    quiet = theory.analyse(planned("h1", dim=4))
    loud = theory.analyse(planned(given, **options))
    assert loud.bound > 1.5 * quiet.bound
    assert any("ν is the problem's noise" in note for note in loud.notes)
    assert not any("ν is" in note for note in quiet.notes)


def test_rows_without_noise_leave_the_noise_bound_as_it_is():
    problem = labelled(sphere(8, 3), np.arange(8) % 2, input_scaling="none")
    assert not any("ν is" in note for note in theory.analyse(planned(problem, rounds=8, depth=2)).notes)


def test_a_bound_that_may_always_fail_is_left_out():
    report = theory.analyse(planned("h1", dim=5, failure=1.0))
    assert report.bound is None
    assert report.norm > 0
    assert any("no bound: failure must be between 0 and 1" in note for note in report.notes)


def test_a_bound_that_is_not_proved_says_so():
    low, enough = (theory.analyse(planned("h1", dim=5, regularization=lam)) for lam in (0.01, 1.0))
    assert low.bound is not None
    assert any("the bound is not proved here: Theorem 1 asks for λ ≥" in note for note in low.notes)
    assert not any("not proved" in note for note in enough.notes)


def test_halves_without_duplicated_contexts_are_noted_to_have_another_limit():
    alone = theory.analyse(planned("h1", dim=4, initialization="paper"))
    twice = theory.analyse(planned("h1", dim=4, initialization="paper", duplicate=True))
    assert any("initialization=paper without duplicate" in note for note in alone.notes)
    assert not any("duplicate" in note for note in twice.notes)


def test_numbers_beyond_float64_are_null_in_json():
    record = plan("h1", ["neural-ucb"], {"dim": 3}, rounds=4, seeds=1)
    report = theory.analyse(record)._replace(bound=math.inf, expected_bound=math.nan)

    class Measured:
        seeds, final_regret = (0,), np.array([np.nan])

        def as_json(self):
            return {}

    record = json.loads(json.dumps(report.as_json(Measured()), allow_nan=False))
    assert (record["bound"], record["expected_bound"], record["measured_regret"]) == (None, None, None)
