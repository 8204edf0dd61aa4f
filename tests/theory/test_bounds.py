"""The regret bounds and their conditions, against the paper's formulas computed by hand."""

import math

import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.theory import Assumptions, Horizon
from tests.theory.helpers import quick

ONE, OVER = Assumptions(), Horizon(9, 2, 2, 1.0)


def needed(assumed=ONE, over=OVER, width=5, smallest_eigenvalue=0.1):
    return theory.conditions(assumed, over, width=width, smallest_eigenvalue=smallest_eigenvalue)


horizons = st.builds(
    Horizon, st.integers(1, 10_000), st.integers(2, 10), st.integers(2, 5), st.floats(0.01, 2, exclude_min=True)
)


@quick
@given(horizons, st.floats(1e-3, 1e3), st.floats(0, 100))
def test_corrected_steps_make_the_optimisation_error_small(over, norm, dimension):
    """(λ + C TL)(1 - λ/(TL))^(J/2) sqrt(T/λ) ≤ √λ S; the printed J, of the opposite sign, does not."""
    assumed = Assumptions(norm=norm)
    steps = theory.least_steps(assumed, over)
    T, _, L, lam = over
    error = (lam + T * L) * (1 - lam / (T * L)) ** (steps / 2) * math.sqrt(T / lam)
    assert error <= math.sqrt(lam) * norm * (1 + 1e-9)
    printed = 2 * math.log(lam * norm / (math.sqrt(T) * (lam + T * L))) * T * L / lam
    assert printed <= 0 or steps == 0
    bounds = [theory.theorem_1(dimension, assumed, over, steps=j) for j in (steps, steps + 10)]
    assert bounds[1] <= bounds[0]


def test_bounds_are_those_of_the_paper():
    assumed, over = Assumptions(noise_bound=0.5, failure=0.05, norm=3.0), Horizon(100, 4, 2, 2.0)
    d, T, K, L, lam, nu, delta, S, J = 7.0, 100, 4, 2, 2.0, 0.5, 0.05, 3.0, 50
    D = d * math.log(1 + T * K / lam)
    error = (lam + T * L) * (1 - lam / (T * L)) ** (J / 2) * math.sqrt(T / lam)
    total = nu * math.sqrt(D + 2 - 2 * math.log(delta)) + error + 2 * math.sqrt(lam) * S
    theorem = 3 * math.sqrt(T) * math.sqrt(D + 2) * total + 1
    assert_allclose(theory.theorem_1(d, assumed, over, steps=J), theorem)
    at_one_over_T = theory.theorem_1(d, assumed._replace(failure=1 / T), over, steps=J)
    assert_allclose(theory.corollary_1(d, assumed, over, steps=J), at_one_over_T + 1)


def test_bounds_take_the_third_constant():
    assumed, over = Assumptions(0.5, 0.05, 3.0, (2.0, 3.0, 5.0)), Horizon(100, 4, 3, 2.5)
    error = (2.5 + 5 * 300) * (1 - 2.5 / 300) ** 25 * math.sqrt(100 / 2.5)
    D = 7 * math.log(1 + 400 / 2.5)
    total = 0.5 * math.sqrt(D + 2 - 2 * math.log(0.05)) + error + 2 * math.sqrt(2.5) * 3
    assert_allclose(theory.theorem_1(7.0, assumed, over, steps=50), 30 * math.sqrt(D + 2) * total + 1)
    J = 2 * 300 / 2.5 * math.log(10 * (2.5 + 5 * 300) / (2.5 * 3))
    assert theory.least_steps(assumed, over) == math.ceil(J)


def test_conditions_are_those_of_the_lemmas():
    needed = theory.conditions(Assumptions(norm=0.5), Horizon(10, 2, 2, 1.0), width=20, smallest_eigenvalue=0.1)
    assert_allclose(needed.width_for_kernel, 20**4 * 2**6 * math.log(20**2 * 2 / 0.1) / 0.1**4)
    assert_allclose(needed.width_for_training, 10**7 * 2**21 * math.log(needed.width_for_training) ** 3, rtol=1e-6)
    assert_allclose(needed.width_for_regret, 40**6 * math.log(20 * 4 / 0.1) ** 1.5)
    assert_allclose(needed.step_size, 1 / (20 * 10 * 2 + 20))
    assert needed.width == max(needed[1:5])
    assert needed.regularization == 4.0
    infinite = theory.conditions(Assumptions(), Horizon(10, 2, 2, 1.0), width=20, smallest_eigenvalue=0.0)
    assert infinite.width == math.inf


def test_width_for_the_start_is_the_one_that_its_proof_needs():
    for lam in (1e-4, 2.5, 1e6):
        found = theory.conditions(Assumptions(), Horizon(10, 2, 3, lam), width=20, smallest_eigenvalue=0.1)
        doubt = math.log(10 * 2 * 3**2 / 0.1) ** 1.5
        assert_allclose(found.width_for_start, math.sqrt(lam) * 3**-1.5 * doubt)
        m = found.width_for_start
        assert 2 * math.sqrt(1 / (m * lam)) >= m**-1.5 * 3**-1.5 * doubt
    printed = 1e6**-0.5 * 3**-1.5 * doubt  # the control: λ^(-1/2), at λ = 1e6
    assert 2 * math.sqrt(1 / (printed * 1e6)) < printed**-1.5 * 3**-1.5 * doubt


def test_conditions_beyond_float64_are_infinite():
    assert needed(smallest_eigenvalue=1e-90).width_for_kernel == math.inf
    assert needed(over=Horizon(500, 4, 2, 1e-45)).width_for_training == math.inf
    assert needed(over=Horizon(500, 4, 2, 1e50)).width_for_training == 1
    assert needed(Assumptions(norm=1e-200)).regularization == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.theorem_1(1.0, Assumptions(), Horizon(1, 2, 2, 3.0), steps=1), "at most rounds · depth = 2"),
        (lambda: theory.theorem_1(1.0, Assumptions(failure=1), Horizon(9, 2, 2, 1.0), steps=1), "between 0 and 1"),
        (lambda: theory.least_steps(Assumptions(norm=0), Horizon(9, 2, 2, 1.0)), "norm must be positive, got 0"),
        (lambda: needed(width=0), "width must be at least 1, got 0"),
        (lambda: needed(smallest_eigenvalue=math.nan), "smallest_eigenvalue must be at least 0 and finite, got nan"),
        (lambda: needed(Assumptions(failure=0.0)), "failure must be between 0 and 1, got 0"),
        (lambda: needed(Assumptions(failure=5000.0)), "failure must be between 0 and 1, got 5000"),
        (lambda: theory.theorem_1(3.0, Assumptions(norm=math.nan), OVER, steps=1), "norm must be .* got nan"),
        (lambda: theory.theorem_1(3.0, Assumptions(noise_bound=-1), OVER, steps=1), "noise_bound must be .* got -1"),
        (lambda: theory.theorem_1(-3.0, ONE, OVER, steps=1), "effective_dimension must be .* got -3"),
        (lambda: theory.theorem_1(3.0, ONE, OVER, steps=math.nan), "steps must be at least 0, got nan"),
        (lambda: theory.corollary_1(3.0, ONE, Horizon(9, 2, 1, 1.0), steps=1), "depth must be at least 2"),
        (lambda: theory.corollary_1(3.0, Assumptions(failure=7), OVER, steps=1), "failure must be between"),
        (lambda: theory.least_steps(Assumptions(norm=math.inf), OVER), "norm must be .* got inf"),
        (lambda: theory.least_steps(ONE, Horizon(9, 2, 2, 1e-310)), "regularization must be larger, got 1e-310"),
        (lambda: theory.least_steps(ONE, Horizon(9, 2, 2, math.inf)), "regularization must be positive and finite"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()
