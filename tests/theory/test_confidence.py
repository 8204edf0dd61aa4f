"""γ_t of Algorithm 1 and of NeuralUCB_0, against the formulas computed by hand."""

import math

import jax.numpy as jnp
import pytest
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.theory import Assumptions


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


@pytest.mark.usefixtures("wide")
def test_self_normalised_radius_is_that_of_neural_ucb_0():
    assumed = Assumptions(noise_bound=0.5, failure=0.05, norm=3.0)
    radius = theory.self_normalised(assumed, ridge=2.5)(jnp.int32(100), jnp.float64(30))
    assert_allclose(radius, 0.5 * math.sqrt(30 - 2 * math.log(0.05)) + math.sqrt(2.5) * 3)
