"""The theory where numbers run out, where it does not hold, and the settings that its reports must heed."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from numpy.testing import assert_allclose

from neuralucb import build, synthetic, theory
from neuralucb.experiments import plan
from neuralucb.history import append, empty
from neuralucb.networks.encodings import disjoint
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.problems import labelled
from neuralucb.runtime import memory
from neuralucb.schedules import read_schedule
from neuralucb.simulation import draw_rounds, simulate
from neuralucb.theory import Assumptions, Horizon, tangent_kernel
from neuralucb.theory.linalg import finite_or_none
from neuralucb.theory.log_det import estimate_log_det

from .test_theory import planned, sphere

# --- H that is singular ---------------------------------------------------------------------------------------------


def one_again(x, rng):
    return np.concatenate([x, x[:1]])


def parallel(x, rng):
    return np.concatenate([x, x[: len(x) // 2] * rng.uniform(0.01, 100, size=(len(x) // 2, 1))])


def opposite(x, rng):
    return np.concatenate([x, -x])


def far_apart_in_norm(x, rng):
    return one_again(x, rng) * 10.0 ** rng.uniform(-6, 6, size=(len(x) + 1, 1))


@pytest.mark.parametrize("made", [one_again, parallel, opposite, far_apart_in_norm])
def test_norm_of_a_singular_kernel_is_always_refused(made):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = made(sphere(int(rng.integers(5, 60)), 4, seed), rng)
        kernel = tangent_kernel(x, depth=2)
        for ask in (theory.norm_bound, theory.rkhs_norm_squared):
            with pytest.raises(ValueError, match="singular to working precision.*parallel_pair"):
                ask(kernel, rng.normal(size=len(x)))


def test_a_report_on_more_contexts_than_memory_holds_is_refused_before_they_are_drawn(monkeypatch):
    plan = planned("h1", rounds=10**7)
    monkeypatch.setattr("neuralucb.runtime.memory.host_bytes", lambda: 20 * 10**9)
    with pytest.raises(ValueError, match="theory of 40000000 contexts needs 22.4 GB and 20.0 GB .* play fewer rounds"):
        theory.analyse(plan)


@pytest.mark.parametrize("depth", [2, 5])
def test_the_pair_that_makes_a_kernel_singular_is_found_in_it(monkeypatch, depth):
    monkeypatch.setattr("neuralucb.theory.norm.BLOCK", 7)
    x = sphere(40, 6)
    x[29] = 3 * x[11]
    for ask in (lambda H: theory.norm_bound(H, np.ones(40)), theory.smallest_eigenvalue):
        with pytest.raises(ValueError, match="Contexts 11 and 29 have the same direction, or nearly"):
            ask(tangent_kernel(x, depth=depth))
        with pytest.raises(ValueError, match="Context 0 is 0"):
            ask(tangent_kernel(np.eye(40, 6, k=-1) + 0.1 * np.tril(np.ones((40, 6)), -1), depth=depth))


def test_norm_of_a_regular_kernel_is_not_refused_whatever_the_norms():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, c, h = sphere(50, 3, seed), 10.0 ** rng.uniform(-6, 6, size=50), rng.normal(size=50)
        plain = theory.rkhs_norm_squared(tangent_kernel(x, depth=2), h)
        assert_allclose(theory.rkhs_norm_squared(tangent_kernel(c[:, None] * x, depth=2), c * h), plain, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_report_of_a_singular_kernel_has_no_norm_and_no_bound(seed):
    x = sphere(4 + seed % 2, 3, seed)
    y = np.random.default_rng(seed).integers(0, 2, 2 * len(x))
    y[:2] = [0, 1]
    problem = labelled(np.concatenate([x, -x]), y, scaling="none")
    report = theory.analyse(planned(problem, rounds=len(y), depth=2, regularization=1.0))
    assert (report.lambda_0, report.repeated) == (0, 0)
    assert (report.norm, report.steps, report.bound, report.expected_bound) == (None,) * 4
    assert any("H is singular to working precision" in note for note in report.notes)
    assert report.effective_dimension > 0


def test_report_of_a_kernel_that_stays_singular_without_its_repeats_has_no_norm():
    for seed in range(4):
        x, y = sphere(5, 3, seed), np.arange(10) % 2
        problem = labelled(np.concatenate([x, -x, x]), np.concatenate([y, y[:5]]), scaling="none")
        report = theory.analyse(planned(problem, rounds=15, depth=2, regularization=1.0))
        assert report.repeated == 10
        assert (report.norm, report.bound) == (None, None)
        assert any("S cannot be computed: kernel must be regular" in note for note in report.notes)


def test_regularization_below_rounding_is_refused():
    twice = tangent_kernel(np.repeat(sphere(30, 4), 2, axis=0), depth=2)
    for regularization in (1e-14, 1e-16, 1e-20, 1e-300):
        with pytest.raises(ValueError, match="regularization must be above what rounding leaves"):
            theory.effective_dimension(twice, regularization=regularization)


def test_report_survives_a_regularization_below_rounding():
    x, y = np.repeat(sphere(8, 3), 2, axis=0), np.repeat(np.arange(8) % 2, 2)
    tiny = {"rounds": 16, "depth": 2, "regularization": 1e-17}
    report = theory.analyse(planned(labelled(x, y, scaling="none"), **tiny))
    assert math.isnan(report.effective_dimension)
    assert (report.bound, finite_or_none(report.effective_dimension)) == (None, None)
    assert report.norm > 0
    assert any("d̃ and the bound are left out" in note for note in report.notes)


def test_a_dimension_on_which_the_two_ways_disagree_is_noted(monkeypatch):
    assert not any("by Cholesky" in note for note in theory.analyse(planned("h1", dim=5)).notes)
    monkeypatch.setattr("neuralucb.theory.report.dimension_from_eigenvalues", lambda values, regularization: 3.0)
    assert any("by Cholesky and 3 by eigenvalues" in note for note in theory.analyse(planned("h1", dim=5)).notes)


# --- what is told about each quantity --------------------------------------------------------------------------------

QUANTITIES = [
    "tangent_kernel", "empirical_kernel", "effective_dimension", "smallest_eigenvalue", "rkhs_norm_squared",
    "norm_bound", "theoretical", "self_normalised", "theorem_1", "corollary_1", "least_steps", "conditions",
]  # fmt: skip


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_has_its_departures_and_its_symbol(name):
    assert "Departure" in getattr(theory, name).__doc__
    assert f"`theory.{name}`" in (Path(__file__).parents[2] / "docs" / "symbols.md").read_text(encoding="utf-8")


# --- input at the edges ---------------------------------------------------------------------------------------------

ONE, OVER = Assumptions(), Horizon(9, 2, 2, 1.0)


def asked(assumed=ONE, over=OVER, width=5, smallest_eigenvalue=0.1):
    return theory.conditions(assumed, over, width=width, smallest_eigenvalue=smallest_eigenvalue)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: asked(width=0), "width must be at least 1, got 0"),
        (lambda: asked(smallest_eigenvalue=math.nan), "smallest_eigenvalue must be at least 0 and finite, got nan"),
        (lambda: asked(Assumptions(failure=0.0)), "failure must be between 0 and 1, got 0"),
        (lambda: asked(Assumptions(failure=5000.0)), "failure must be between 0 and 1, got 5000"),
        (lambda: theory.theorem_1(3.0, Assumptions(norm=math.nan), OVER, steps=1), "norm must be .* got nan"),
        (lambda: theory.theorem_1(3.0, Assumptions(noise_bound=-1), OVER, steps=1), "noise_bound must be .* got -1"),
        (lambda: theory.theorem_1(-3.0, ONE, OVER, steps=1), "effective_dimension must be .* got -3"),
        (lambda: theory.theorem_1(3.0, ONE, OVER, steps=math.nan), "steps must be at least 0, got nan"),
        (lambda: theory.corollary_1(3.0, ONE, Horizon(9, 2, 1, 1.0), steps=1), "depth must be at least 2"),
        (lambda: theory.corollary_1(3.0, Assumptions(failure=7), OVER, steps=1), "failure must be between"),
        (lambda: theory.least_steps(Assumptions(norm=math.inf), OVER), "norm must be .* got inf"),
        (lambda: theory.least_steps(ONE, Horizon(9, 2, 2, 1e-310)), "regularization must be larger, got 1e-310"),
        (lambda: theory.least_steps(ONE, Horizon(9, 2, 2, math.inf)), "regularization must be positive and finite"),
        (lambda: theory.effective_dimension(np.full((3, 3), np.nan), regularization=1.0), "NaN or infinity in row 0"),
        (lambda: theory.effective_dimension(np.eye(3), regularization=math.inf), "regularization must be positive and"),
        (lambda: theory.effective_dimension(np.zeros((0, 0)), regularization=1.0), "one row or more"),
        (lambda: theory.effective_dimension([[1.0]], regularization=1.0), "float64, got list"),
        (lambda: theory.effective_dimension(np.array([[1.0, 5], [0, 1]]), regularization=1.0), "symmetric, got 5 at"),
        (lambda: theory.smallest_eigenvalue(np.full((3, 3), np.nan)), "NaN or infinity in row 0"),
        (lambda: theory.smallest_eigenvalue(np.ones((2, 3))), "square matrix"),
        (lambda: theory.norm_bound(np.eye(3), np.array([1, np.nan, 1])), "expected must be finite, got nan for cont"),
        (lambda: theory.norm_bound(np.eye(3, dtype=int), np.ones(3)), "float64, got int64"),
        (lambda: theory.dimension_from_eigenvalues(np.array([np.nan]), regularization=1.0), "eigenvalues must be"),
        (lambda: tangent_kernel(1e200 * sphere(4, 3), depth=2), "within float64, got 1e.200 .* scale them down"),
        (lambda: tangent_kernel(1e-200 * sphere(4, 3), depth=2), "within float64, got 1e-200 .* scale them up"),
        (lambda: theory.parallel_pair(np.full((2, 3), 1.7e308)), "norms within float64, got one beyond in row 0"),
    ],
)
def test_what_means_nothing_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("made", ["abc", [[1.0, 2.0], [3.0]], np.array([["a", "b"]])])
def test_contexts_that_are_no_numbers_are_refused(made):
    with pytest.raises(ValueError, match="contexts must be a table of numbers"):
        tangent_kernel(made, depth=2)


def test_a_depth_between_whole_numbers_is_refused():
    with pytest.raises(TypeError, match="depth must be a whole number, got 2.5"):
        tangent_kernel(np.eye(2), depth=2.5)


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (np.ones((3, 2), np.float32), "a context must be 4 numbers, got shape"),
        (np.ones(4, np.float32), "a context must be 4 numbers, got shape"),
        (np.ones((0, 4), np.float32), "contexts must be an array with a row for each context"),
        ([[1.0, 2.0, 3.0, 4.0]], "contexts must be an array with a row for each context.* got list"),
        (np.array([[1, 2, 3, 4], [1, 2, np.inf, 4]], np.float32), "finite, got NaN or infinity in row 1"),
    ],
)
def test_contexts_that_a_network_cannot_take_have_no_empirical_kernel(key, contexts, message):
    network = mlp(4, width=6)
    with pytest.raises(ValueError, match=message):
        theory.empirical_kernel(network, network.init(key), contexts)
    with pytest.raises(ValueError, match=message.replace("contexts", "others")):
        theory.empirical_kernel(network, network.init(key), np.ones((1, 4), np.float32), contexts)


def test_an_arm_that_a_network_does_not_have_is_refused(key):
    network = disjoint(mlp(3, width=6), 2)
    with pytest.raises(ValueError, match="arm must be from 0 to 1, got 7"):
        theory.empirical_kernel(network, network.init(key), Slot(np.ones((2, 3), np.float32), np.int32([0, 7])))


def test_conditions_beyond_float64_are_infinite():
    assert asked(smallest_eigenvalue=1e-90).width_for_kernel == math.inf
    assert asked(over=Horizon(500, 4, 2, 1e-45)).width_for_training == math.inf
    assert asked(over=Horizon(500, 4, 2, 1e50)).width_for_training == 1
    assert asked(Assumptions(norm=1e-200)).regularization == math.inf


@pytest.mark.parametrize("scale", [1e-200, 1e160])
def test_directions_do_not_depend_on_the_scale(scale):
    x = sphere(20, 3)
    assert theory.parallel_pair(scale * x) is None
    assert theory.parallel_pair(scale * np.concatenate([x, x[3:4]])) == (3, 20)


def test_very_small_and_large_norms_keep_their_digits():
    x = sphere(6, 4)
    for c in (1e-150, 1e150):
        assert_allclose(tangent_kernel(c * x, depth=3) / c / c, tangent_kernel(x, depth=3), rtol=1e-12)


def test_estimate_for_contexts_that_are_all_zero_is_zero():
    found = estimate_log_det(theory.kernel_product(np.zeros((8, 3)), depth=2), 8, regularization=1.0)
    assert_allclose(found, (0, 0), atol=1e-12)


@pytest.mark.parametrize(("dim", "decades", "regularization"), [(8, 3, 1e-4), (2, 0, 1e-8), (20, 0, 1e-8)])
def test_error_of_an_estimate_is_honest_where_lanczos_has_not_converged(dim, decades, regularization):
    norms = 10.0 ** np.random.default_rng(1).uniform(-decades, decades, size=(300, 1))
    kernel = tangent_kernel(norms * sphere(300, dim), depth=2)
    truth = np.log1p(np.maximum(np.linalg.eigvalsh(kernel), 0) / regularization).sum()
    for seed in range(5):
        found = estimate_log_det(lambda v: kernel @ v, 300, regularization=regularization, seed=seed)
        assert abs(found.value - truth) < 3 * found.error < 1.5 * truth


def test_an_estimate_refuses_a_regularization_below_rounding():
    with pytest.raises(ValueError, match="above what rounding leaves of 80 contexts' eigenvalues, up to .* got 1e-16"):
        estimate_log_det(theory.kernel_product(sphere(80, 3), depth=2), 80, regularization=1e-16)


def test_kernels_are_judged_by_the_memory_of_the_machine_not_of_a_gpu(monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 10, "bytes_in_use": 0}

    monkeypatch.setattr(memory.jax, "devices", lambda: [Device()])
    monkeypatch.setattr(memory.jax, "default_backend", lambda: "gpu")
    assert memory.available_bytes() == 10
    assert memory.host_bytes() > 1e6
    assert tangent_kernel(sphere(9, 3), depth=2).shape == (9, 9)
    assert theory.effective_dimension_of(sphere(9, 3), depth=2, regularization=1.0).error == 0
    monkeypatch.setattr(memory, "host_bytes", lambda: 10)
    with pytest.raises(ValueError, match="a kernel matrix of 9 × 9 needs"):
        tangent_kernel(sphere(9, 3), depth=2)


def test_progress_goes_on_to_the_end(monkeypatch):
    monkeypatch.setattr("neuralucb.theory.kernel.TILE", 8)
    told, bars = [], {}
    theory.effective_dimension_of(sphere(40, 3), depth=2, regularization=1.0, progress=lambda *at: told.append(at))
    shares = [done / whole for done, whole in told]
    assert len(told) > 10  # the kernel's tiles, too
    assert shares == sorted(shares)
    assert shares[-1] == 1
    theory.analyse(planned("h1", dim=3), lambda what: lambda *at: bars.update({what: at}))
    assert set(bars) == {"kernel", "eigenvalues", "d̃", "S"}
    assert all(done == whole for done, whole in bars.values())


# --- numbers that must heed their settings --------------------------------------------------------------------------

OWN = {"noise": 0.25, "noise_bound": 0.5, "failure": 0.05, "constant_1": 2.0, "constant_2": 3.0, "constant_3": 5.0}


def test_bounds_take_the_third_constant():
    assumed, over = Assumptions(0.5, 0.05, 3.0, (2.0, 3.0, 5.0)), Horizon(100, 4, 3, 2.5)
    error = (2.5 + 5 * 300) * (1 - 2.5 / 300) ** 25 * math.sqrt(100 / 2.5)
    D = 7 * math.log(1 + 400 / 2.5)
    whole = 0.5 * math.sqrt(D + 2 - 2 * math.log(0.05)) + error + 2 * math.sqrt(2.5) * 3
    assert_allclose(theory.theorem_1(7.0, assumed, over, steps=50), 30 * math.sqrt(D + 2) * whole + 1)
    J = 2 * 300 / 2.5 * math.log(10 * (2.5 + 5 * 300) / (2.5 * 3))
    assert theory.least_steps(assumed, over) == math.ceil(J)


def test_width_for_the_start_is_the_one_that_its_proof_needs():
    for lam in (1e-4, 2.5, 1e6):
        found = theory.conditions(Assumptions(), Horizon(10, 2, 3, lam), width=20, smallest_eigenvalue=0.1)
        doubt = math.log(10 * 2 * 3**2 / 0.1) ** 1.5
        assert_allclose(found.width_for_start, math.sqrt(lam) * 3**-1.5 * doubt)
        m = found.width_for_start
        assert 2 * math.sqrt(1 / (m * lam)) >= m**-1.5 * 3**-1.5 * doubt
    printed = 1e6**-0.5 * 3**-1.5 * doubt  # the control: λ^(-1/2), at λ = 1e6
    assert 2 * math.sqrt(1 / (printed * 1e6)) < printed**-1.5 * 3**-1.5 * doubt


@pytest.mark.usefixtures("wide")
def test_theoretical_scale_is_the_number_of_algorithm_1():
    assumed = Assumptions(0.5, 0.05, 3.0, (2.0, 3.0, 5.0))
    t, m, L, lam, eta, J = 100, 20, 3, 2.5, 0.01, 50
    c = m ** (-1 / 6) * math.sqrt(math.log(m))
    inflation = math.sqrt(1 + 2 * c * L**4 * t ** (7 / 6) * lam ** (-7 / 6))
    evidence = math.sqrt(30 + 3 * c * L**4 * t ** (5 / 3) * lam ** (-1 / 6) - 2 * math.log(0.05))
    linear = c * L**3.5 * t ** (5 / 3) * lam ** (-5 / 3) * (1 + math.sqrt(t / lam))
    rest = (lam + 5 * t * L) * ((1 - eta * m * lam) ** (J / 2) * math.sqrt(t / lam) + linear)
    found = theory.theoretical(assumed, ridge=lam, width=m, depth=L, step_size=eta, steps=J)
    by_hand = inflation * (0.5 * evidence + math.sqrt(lam) * 3) + rest
    assert_allclose(found(jnp.int32(t), jnp.float64(30)), by_hand, rtol=1e-12)


def test_report_heeds_noise_failure_and_constants():
    report = theory.analyse(planned("h1", dim=5, regularization=2.0, **OWN))
    assumed = Assumptions(0.5, 0.05, report.norm, (2.0, 3.0, 5.0))
    steps = theory.least_steps(assumed, report.over)
    d = report.effective_dimension
    assert report.steps == steps
    assert_allclose(report.bound, theory.theorem_1(d, assumed, report.over, steps=steps), rtol=1e-12)
    assert_allclose(report.expected_bound, theory.corollary_1(d, assumed, report.over, steps=steps), rtol=1e-12)


@pytest.mark.parametrize("regularization", [1e-9, 0.5, 1e7])
def test_the_curve_against_regularization_reaches_the_one_that_is_played(regularization):
    report = theory.analyse(planned("h1", dim=5, rounds=4, regularization=regularization))
    lambdas, found = report.dimensions_by_regularization()
    assert lambdas[0] <= min(1e-3, regularization * 1.01)
    assert lambdas[-1] >= max(1e3, regularization * 0.99)
    assert np.diff(np.log10(lambdas)).max() < 0.26  # no chord across decades
    assert_allclose(found[np.isclose(lambdas, regularization, rtol=1e-12)][0], report.effective_dimension, rtol=1e-6)


def test_curves_of_a_report_are_reports_of_fewer_rounds():
    long = theory.analyse(planned("h1", dim=5, regularization=2.0, **OWN))
    for t in (4, 11, 20):
        short = theory.analyse(planned("h1", dim=5, regularization=2.0, rounds=t, **OWN))
        (index,) = np.flatnonzero(long.rounds == t)
        assert_allclose(long.dimensions[index], short.effective_dimension, rtol=1e-9)
        assert_allclose(long.bounds[index], short.bound, rtol=1e-9)


# --- where the theorem is not about the run -------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["h1", synthetic("h1", dim=4, noise=10.0)], ids=["named", "made"])
def test_the_noise_of_the_problem_is_in_the_bound(given):
    options = {"dim": 4, "noise": 10.0} if given == "h1" else {}
    quiet = theory.analyse(planned("h1", dim=4))
    loud = theory.analyse(planned(given, **options))
    assert loud.bound > 1.5 * quiet.bound
    assert any("ν is the problem's noise" in note for note in loud.notes)
    assert not any("ν is" in note for note in quiet.notes)


def test_rows_without_noise_leave_the_noise_bound_as_it_is():
    problem = labelled(sphere(8, 3), np.arange(8) % 2, scaling="none")
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


def test_halves_without_duplicated_contexts_are_told_to_have_another_limit():
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

    told = json.loads(json.dumps(report.as_json(Measured()), allow_nan=False))
    assert (told["bound"], told["expected_bound"], told["measured_regret"]) == (None, None, None)


def test_dimension_of_one_context_grows_with_the_regularization_and_of_a_repeated_one_falls_with_rounds():
    """The control of "usually": H has (L + 1)/2 on its diagonal, not 1."""
    one = tangent_kernel(sphere(1, 3), depth=2)
    over_lambda = [theory.effective_dimension(one, regularization=lam) for lam in (0.01, 1.0, 100.0, 1e6)]
    assert (np.diff(over_lambda) > 0).all()
    assert_allclose(over_lambda[-1], 1.5, rtol=1e-5)
    again = tangent_kernel(np.repeat(sphere(1, 3), 40, axis=0), depth=2)
    assert (np.diff(theory.dimensions_over_rounds(again, arms=4, regularization=1.0)) < 0).all()


# --- coverage, replayed round by round ------------------------------------------------------------------------------

ROUNDS, EVERY, SEED = 60, 20, 4


def replayed(policy, problem):
    """Arms played, and error and width of every arm in every round, from a plain loop."""
    key = random.key(SEED)
    _, _, init, select, learn = random.split(key, 5)
    drawn = draw_rounds(key, problem, rounds=ROUNDS)
    choose, observe, train = jax.jit(policy.select), jax.jit(policy.observe), jax.jit(policy.learn)
    belief = policy.init(init)
    history = empty(jax.ShapeDtypeStruct((problem.dim,), jnp.float32), capacity=ROUNDS)
    arms, errors, widths = [], [], []
    for t in range(ROUNDS):
        choice = choose(random.fold_in(select, t), belief, drawn.contexts[t])
        arm = int(choice.arm)
        arms.append(arm)
        errors.append(np.abs(choice.mean - drawn.expected[t]))
        widths.append(np.asarray(choice.width))
        context, reward = drawn.contexts[t, arm], drawn.expected[t, arm] + drawn.noise[t]
        belief, history = observe(belief, context, reward), append(history, context, reward)
        if (t + 1) % EVERY == 0:
            belief, _ = train(random.fold_in(learn, t + 1), belief, history)
    return np.asarray(arms), np.stack(errors), np.stack(widths)


def test_coverage_is_what_a_replay_of_every_round_finds():
    problem, when = synthetic("h1", dim=4), read_schedule(str(EVERY))
    policy = build("neural-ucb", dim=4, width=8, steps=10, batch_size=8, step_size=0.02, exploration=0.1)
    found = theory.measure_coverage(policy, problem, rounds=ROUNDS, schedule=when, seeds=[SEED])
    with jax.enable_x64(True):
        trace = jax.jit(lambda key: simulate(key, policy, problem, rounds=ROUNDS, schedule=when))(
            random.key(SEED)
        ).trace
        arms, errors, widths = replayed(policy, problem)
    assert (arms == trace.arm).all()
    at = np.arange(ROUNDS)
    assert_allclose(found.error[0, :, 0], errors[at, arms], rtol=1e-3, atol=1e-5)
    assert_allclose(found.width[0, :, 0], widths[at, arms], rtol=1e-3)
    near = np.isclose(found.error[0, :, 1, None], errors, rtol=1e-3, atol=1e-5)
    near &= np.isclose(found.width[0, :, 1, None], widths, rtol=1e-3)
    assert (near.sum(axis=1) == 1).all()  # the other column is one arm's own prediction, error and width alike
    counts, fair = near.sum(axis=0), ROUNDS / problem.arms
    assert (np.abs(counts - fair) < 5 * math.sqrt(fair * (1 - 1 / problem.arms))).all()
    assert 0 < (near.argmax(axis=1) == arms).sum() < ROUNDS / 2  # drawn whatever was chosen
