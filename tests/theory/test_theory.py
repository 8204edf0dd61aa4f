"""The theory against identities, quadrature, wide networks and the paper's own inequalities."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from neuralucb import build, synthetic, theory
from neuralucb.experiments import plan
from neuralucb.networks.encodings import disjoint
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.problems import build_problem, labelled
from neuralucb.schedules import read_schedule
from neuralucb.simulation import draw_rounds, simulate
from neuralucb.theory import Assumptions, Horizon, tangent_kernel
from neuralucb.theory import kernel as empirical
from neuralucb.theory import linalg as cholesky
from neuralucb.theory.log_det import estimate_log_det

quick = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
lambdas = st.floats(1e-3, 1e3)


def sphere(count, dim, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def at_angle(alpha):
    return np.array([[1.0, 0.0], [math.cos(alpha), math.sin(alpha)]])


# --- the kernel -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "depth", "by_hand"),
    [
        (0, 2, 3 / 2),
        (0, 3, 2.0),
        (0, 7, 4.0),
        (math.pi / 2, 2, 1 / math.pi),
        (math.pi / 3, 2, 1 / 2 + math.sqrt(3) / (2 * math.pi)),
        (math.pi, 2, 0.0),
        # L = 3 at a right angle: Σ^(2) = H̃^(2) = 1/π, α = arccos(1/π) = 1.2468502, Σ^(3) = 0.4937311, H̃^(3) = 0.6857086
        (math.pi / 2, 3, 0.5897199),
        # L = 3 at 60°: Σ^(2) = 0.6089978, H̃^(2) = 0.9423311, α = 0.9159999, Σ^(3) = 0.6839057, H̃^(3) = 1.3514796
        (math.pi / 3, 3, 1.0176926),
        (math.pi, 3, 0.5 * (2 / math.pi)),
    ],
)
def test_kernel_has_the_values_computed_by_hand(alpha, depth, by_hand):
    assert_allclose(tangent_kernel(at_angle(alpha), depth=depth)[0, 1], by_hand, atol=1e-7)


def expectations(alpha):
    """2E[σ(u)σ(v)] and 2E[σ'(u)σ'(v)] of unit Gaussians at angle α, by quadrature in polar coordinates."""
    node, weight = np.polynomial.legendre.leggauss(60)
    low, high = alpha - math.pi / 2, math.pi / 2  # where both are positive
    phi, arc = (high - low) / 2 * node + (high + low) / 2, (high - low) / 2 * weight
    s, radial = np.polynomial.laguerre.laggauss(40)  # s = r²/2
    r_squared = (radial * 2 * s).sum()
    both = 2 * r_squared * (arc * np.cos(phi) * np.cos(phi - alpha)).sum() / (2 * math.pi)
    return both, 2 * radial.sum() * arc.sum() / (2 * math.pi)


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("alpha", [1e-4, 0.3, 1.0, 2.0, 3.0, 3.14159])
def test_kernel_agrees_with_quadrature_of_the_gaussian_expectations(alpha, depth):
    angle, tangent = alpha, math.cos(alpha)
    for _ in range(depth - 1):
        sigma, derivative = expectations(angle)
        tangent = tangent * derivative + sigma
        angle = math.acos(min(1, sigma))
    for initialization, value in (("gaussian", (tangent + sigma) / 2), ("symmetric", tangent)):
        found = tangent_kernel(at_angle(alpha), depth=depth, initialization=initialization)[0, 1]
        assert_allclose(found, value, atol=1e-10)


def test_kernel_scales_with_the_norms():
    x, c = sphere(6, 4), np.array([0.1, 1, 2, 3, 0.5, 7])
    assert_allclose(tangent_kernel(c[:, None] * x, depth=3), np.outer(c, c) * tangent_kernel(x, depth=3), rtol=1e-12)


def test_kernel_of_two_sets_is_a_block_of_the_kernel_of_both(monkeypatch):
    x = sphere(23, 5)
    monkeypatch.setattr("neuralucb.theory.kernel.TILE", 4)
    whole = tangent_kernel(x, depth=4)
    assert_allclose(tangent_kernel(x[:9], x[9:], depth=4), whole[:9, 9:], rtol=1e-12)
    assert_allclose(whole, whole.T, rtol=0, atol=0)
    v = np.random.default_rng(1).normal(size=(23, 3))
    assert_allclose(theory.kernel_product(x, depth=4)(v), whole @ v, rtol=1e-10)


def padded(slots, arms):
    rows = np.zeros((len(slots.arm), arms, slots.x.shape[1]))
    rows[np.arange(len(slots.arm)), slots.arm] = slots.x
    return rows.reshape(len(rows), -1)


def test_kernel_of_slots_is_that_of_zero_padded_contexts():
    slots = Slot(np.repeat(sphere(5, 3), 2, axis=0), np.tile([0, 2], 5))
    assert_allclose(tangent_kernel(slots, depth=3), tangent_kernel(padded(slots, 3), depth=3), atol=1e-14)


def test_angles_keep_their_digits_between_nearly_parallel_contexts():
    tiny = 1e-7
    found = tangent_kernel(np.array([[1.0, 0.0], [1.0, tiny]]), depth=3)
    # H̃ falls by α/π a layer where α is small: H̃^(3) = 3 - 3α/π + O(α²)
    assert_allclose((2 - found[0, 1]) / (1.5 * tiny / math.pi), 1, atol=1e-5)


def distance(width, depth, initialization, duplicate, limit, x, repeats):
    network = mlp(x.shape[1], width=width, depth=depth, initialization=initialization, duplicate=duplicate)
    kernel = tangent_kernel(x, depth=depth, initialization=limit)
    contexts = jnp.asarray(x, jnp.float32)
    errors = [
        np.linalg.norm(theory.empirical_kernel(network, network.init(jax.random.key(seed)), contexts) - kernel)
        for seed in range(repeats)
    ]
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize(("depth", "widths"), [(2, (64, 512, 4096, 32768)), (3, (32, 128, 512, 1024))])
def test_wide_networks_approach_the_kernel_as_one_over_the_root_of_the_width(depth, widths):
    x = sphere(6, 4)
    errors = [distance(width, depth, "gaussian", False, "gaussian", x, 6) for width in widths]
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35


@pytest.mark.parametrize(("initialization", "duplicate"), [("symmetric", False), ("paper", True)])
def test_networks_of_two_halves_approach_the_other_kernel(initialization, duplicate):
    x = sphere(5, 4)
    assert distance(20_000, 2, initialization, duplicate, initialization, x, 2) < 0.2
    assert distance(20_000, 2, initialization, duplicate, "gaussian", x, 2) > 1  # the control: not Definition 1's


@pytest.mark.usefixtures("wide")
def test_empirical_kernel_is_the_product_of_explicit_gradients(monkeypatch, key):
    monkeypatch.setattr(empirical, "TILE", 3)
    network = mlp(4, width=6, depth=3, dtype="float64")
    params, x = network.init(key), jnp.asarray(sphere(7, 4))
    gradients = [
        np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(jax.grad(network.apply)(params, row))]) for row in x
    ]
    G = np.stack(gradients) / math.sqrt(6)
    assert_allclose(theory.empirical_kernel(network, params, x), G @ G.T, rtol=1e-12)
    assert_allclose(theory.empirical_kernel(network, params, x[:2], x[2:]), G[:2] @ G[2:].T, rtol=1e-12)


def test_empirical_kernel_of_a_disjoint_network_knows_its_arms(key):
    network = disjoint(mlp(3, width=4096, fan_in=6), 2)
    slots = Slot(np.repeat(sphere(3, 3), 2, axis=0).astype(np.float32), np.tile(np.int32([0, 1]), 3))
    found = theory.empirical_kernel(network, network.init(key), slots)
    assert_allclose(found, tangent_kernel(slots, depth=2), atol=0.15)


# --- log det, d̃, λ_0, S ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regularization", [1e-6, 1e-2, 1.0, 1e3])
def test_dimension_by_cholesky_is_that_by_eigenvalues(monkeypatch, regularization):
    monkeypatch.setattr(cholesky, "BLOCK", 7)
    kernel = tangent_kernel(sphere(60, 3), depth=2)
    kept = kernel.copy()
    by_values = theory.dimension_from_eigenvalues(np.linalg.eigvalsh(kernel), regularization=regularization)
    assert_allclose(theory.effective_dimension(kernel, regularization=regularization), by_values, rtol=1e-9)
    assert_allclose(kernel, kept, atol=0)
    over = theory.dimensions_over_rounds(kernel.copy(), arms=3, regularization=regularization)
    short = [theory.effective_dimension(kernel[:n, :n], regularization=regularization) for n in (3, 30, 60)]
    assert_allclose(over[[0, 9, 19]], short, rtol=1e-9)
    exact = theory.effective_dimension_of(sphere(60, 3), depth=2, regularization=regularization)
    assert_allclose(exact, (by_values, 0), rtol=1e-9)


def test_factor_solves_and_refuses(monkeypatch):
    monkeypatch.setattr(cholesky, "BLOCK", 7)
    kernel, h = tangent_kernel(sphere(40, 5), depth=2), np.random.default_rng(2).normal(size=40)
    assert_allclose(theory.rkhs_norm_squared(kernel, h), h @ np.linalg.solve(kernel, h), rtol=1e-9)
    assert_allclose(theory.norm_bound(kernel, h) ** 2, 2 * h @ np.linalg.solve(kernel, h), rtol=1e-9)
    with pytest.raises(ValueError, match="positive definite"):
        cholesky.factor_in_place(kernel - 2 * np.eye(40))


def test_estimate_is_within_its_error_of_the_truth():
    x = sphere(400, 6)
    values = np.linalg.eigvalsh(tangent_kernel(x, depth=2))
    for regularization in (0.1, 10.0):
        truth = np.log1p(values / regularization).sum()
        found = estimate_log_det(theory.kernel_product(x, depth=2), 400, regularization=regularization)
        assert abs(found.value - truth) < 4 * found.error
        assert found.error < 0.02 * truth


def test_what_does_not_fit_into_memory_is_estimated(monkeypatch):
    x, told = sphere(300, 5), []
    truth = theory.effective_dimension(tangent_kernel(x, depth=2), regularization=1.0)
    monkeypatch.setattr("neuralucb.theory.dimension.host_bytes", lambda: 1000)
    found = theory.effective_dimension_of(x, depth=2, regularization=1.0, progress=lambda *at: told.append(at))
    assert 0 < found.error < 0.02 * truth
    assert abs(found.value - truth) < 4 * found.error
    assert told[-1] == (25, 25)


def test_estimate_of_a_matrix_of_low_rank_is_exact():
    a = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 3)))[0]
    low = estimate_log_det(lambda v: a @ (a.T @ v), 50, regularization=0.5)
    assert_allclose(low.value, 3 * math.log(3), rtol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_parallel_contexts_are_named(scale):
    x = sphere(30, 4)
    x[17] = scale * x[5]
    assert theory.parallel_pair(x) == (5, 17)
    assert theory.parallel_pair(x.astype(np.float32)) == (5, 17)
    with pytest.raises(ValueError, match="contexts 5 and 17 have the same direction"):
        theory.require_regular(x)
    with pytest.raises(ValueError, match="H is singular"):
        theory.smallest_eigenvalue(tangent_kernel(x, depth=2))
    x[5] = 0
    with pytest.raises(ValueError, match="context 5 is 0"):
        theory.require_regular(x)
    assert theory.parallel_pair(Slot(np.ones((3, 2)), np.arange(3))) is None
    assert theory.parallel_pair(Slot(np.ones((3, 2)), np.array([0, 1, 0]))) == (0, 2)


def test_opposite_contexts_are_regular_until_there_are_more_than_the_dimension():
    x = sphere(5, 3)
    few, many = np.concatenate([x[:3], -x[:3]]), np.concatenate([x, -x])
    theory.require_regular(many)
    assert theory.smallest_eigenvalue(tangent_kernel(few, depth=2)) > 0.01
    with pytest.raises(ValueError, match="H is singular"):
        theory.smallest_eigenvalue(tangent_kernel(many, depth=2))
    assert theory.smallest_eigenvalue(tangent_kernel(many, depth=3)) > 1e-3


# --- the paper's inequalities ---------------------------------------------------------------------------------------


def gram(seed, contexts, features):
    """A kernel of ψ(x) of so many features, ‖ψ(x)‖ ≤ 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(contexts, features))
    rows *= rng.uniform(size=(contexts, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


@quick
@given(seeds, st.integers(1, 30), st.integers(1, 6), lambdas)
def test_dimension_is_at_most_the_number_of_features(seed, contexts, features, regularization):
    kernel = gram(seed, contexts, features)
    assert theory.effective_dimension(kernel, regularization=regularization) <= min(contexts, features) + 1e-9


def test_dimension_may_exceed_it_where_the_diagonal_is_above_one():
    """The control: the paper's inequality needs ‖ψ(x)‖ ≤ 1, and H has (L + 1)/2 on its diagonal."""
    ones = np.ones((10, 10)) * tangent_kernel(sphere(1, 3), depth=2)[0, 0]
    assert theory.effective_dimension(ones, regularization=1.0) > 1.05


@quick
@given(seeds, st.integers(1, 20), lambdas, st.floats(1.01, 10))
def test_dimension_falls_as_the_regularization_grows(seed, contexts, regularization, factor):
    kernel = gram(seed, contexts, 5)
    small, large = (theory.effective_dimension(kernel, regularization=regularization * f) for f in (1, factor))
    assert large <= small + 1e-9


@quick
@given(seeds, st.integers(2, 20), lambdas, st.integers(2, 4))
def test_information_grows_with_contexts_and_falls_with_regularization(seed, contexts, regularization, depth):
    kernel = tangent_kernel(sphere(contexts, 4, seed), depth=depth)
    values = np.linalg.eigvalsh(kernel)
    assert values[0] > -1e-12
    assert_allclose(np.diagonal(kernel), (depth + 1) / 2, rtol=1e-12)
    logs = theory.dimensions_over_rounds(kernel.copy(), arms=1, regularization=regularization)
    logs *= np.log1p(np.arange(1, contexts + 1) / regularization)
    assert (np.diff(logs) > -1e-9).all()
    assert np.log1p(values / (2 * regularization)).sum() <= logs[-1] + 1e-9


@quick
@given(seeds, st.integers(2, 12), st.floats(0, 1))
def test_lemma_5_1_bounds_the_norm_of_the_solution(seed, contexts, share):
    """‖GᵀG - H‖_F ≤ λ_0/2 gives a θ* with ⟨g, θ* - θ_0⟩ = h and m‖θ* - θ_0‖² = hᵀ(GᵀG)⁻¹h ≤ 2hᵀH⁻¹h."""
    rng = np.random.default_rng(seed)
    H, h = tangent_kernel(sphere(contexts, 4, seed), depth=2), rng.normal(size=contexts)
    E = rng.normal(size=(contexts, contexts))
    E = (E + E.T) * share * theory.smallest_eigenvalue(H) / 2 / np.linalg.norm(E + E.T)
    G = np.linalg.cholesky(H + E).T
    root_m_star = G @ np.linalg.solve(G.T @ G, h)
    assert_allclose(G.T @ root_m_star, h, atol=1e-6)
    assert root_m_star @ root_m_star <= 2 * theory.rkhs_norm_squared(H, h) * (1 + 1e-6)


def test_lemma_5_1_holds_for_a_wide_network(key):
    x = sphere(5, 4)
    network = mlp(4, width=20_000)
    K = theory.empirical_kernel(network, network.init(key), jnp.asarray(x, jnp.float32))
    H, h = tangent_kernel(x, depth=2), np.random.default_rng(0).normal(size=5)
    assert np.linalg.norm(K - H) < theory.smallest_eigenvalue(H) / 2
    assert h @ np.linalg.solve(K, h) <= 2 * theory.rkhs_norm_squared(H, h)


@quick
@given(seeds, st.integers(1, 15), st.floats(1, 100))
def test_log_det_is_concave_as_lemma_5_4_uses_it(seed, contexts, regularization):
    """log det(I + (H + E)/λ) ≤ log det(I + H/λ) + √n ‖E‖_F for λ ≥ 1."""
    H, other = gram(seed, contexts, 5), gram(seed ^ 1, contexts, 5)
    left = np.linalg.slogdet(np.eye(contexts) + other / regularization)[1]
    right = np.linalg.slogdet(np.eye(contexts) + H / regularization)[1]
    assert left <= right + math.sqrt(contexts) * np.linalg.norm(other - H) + 1e-9


@quick
@given(seeds, st.integers(1, 30), st.floats(0.01, 10), st.floats(0.1, 10))
def test_widths_add_up_to_at_most_twice_the_log_det(seed, rounds, regularization, size):
    """Lemma 11 of Abbasi-Yadkori et al.: Σ min(‖g‖²_{Z⁻¹}, 1) ≤ 2 log(det Z_T/det λI)."""
    rng = np.random.default_rng(seed)
    Z, total = regularization * np.eye(4), 0.0
    for g in size * rng.normal(size=(rounds, 4)):
        total += min(g @ np.linalg.solve(Z, g), 1)
        Z += np.outer(g, g)
    assert total <= 2 * (np.linalg.slogdet(Z)[1] - 4 * math.log(regularization)) + 1e-9


@quick
@given(seeds, st.integers(1, 15))
def test_norm_grows_with_contexts_and_stays_below_that_of_the_function(seed, contexts):
    """Remark 4.8: hᵀH⁻¹h ≤ ‖h‖² for h = Σ α_j k(·, z_j), and more contexts only add to it."""
    rng = np.random.default_rng(seed)
    x, z = sphere(contexts, 4, seed), sphere(3, 4, seed ^ 1)
    alpha = rng.normal(size=3)
    h = tangent_kernel(x, z, depth=2) @ alpha
    norms = theory.norm.squared_norms(tangent_kernel(x, depth=2), h)
    assert (np.diff(norms) > -1e-9).all()
    assert norms[-1] <= alpha @ tangent_kernel(z, depth=2) @ alpha * (1 + 1e-6)


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
    whole = nu * math.sqrt(D + 2 - 2 * math.log(delta)) + error + 2 * math.sqrt(lam) * S
    theorem = 3 * math.sqrt(T) * math.sqrt(D + 2) * whole + 1
    assert_allclose(theory.theorem_1(d, assumed, over, steps=J), theorem)
    at_one_over_T = theory.theorem_1(d, assumed._replace(failure=1 / T), over, steps=J)
    assert_allclose(theory.corollary_1(d, assumed, over, steps=J), at_one_over_T + 1)


def test_conditions_are_those_of_the_lemmas():
    asked = theory.conditions(Assumptions(norm=0.5), Horizon(10, 2, 2, 1.0), width=20, smallest_eigenvalue=0.1)
    assert_allclose(asked.width_for_kernel, 20**4 * 2**6 * math.log(20**2 * 2 / 0.1) / 0.1**4)
    assert_allclose(asked.width_for_training, 10**7 * 2**21 * math.log(asked.width_for_training) ** 3, rtol=1e-6)
    assert_allclose(asked.width_for_regret, 40**6 * math.log(20 * 4 / 0.1) ** 1.5)
    assert_allclose(asked.step_size, 1 / (20 * 10 * 2 + 20))
    assert asked.width == max(asked[1:5])
    assert asked.regularization == 4.0
    infinite = theory.conditions(Assumptions(), Horizon(10, 2, 2, 1.0), width=20, smallest_eigenvalue=0.0)
    assert infinite.width == math.inf


@pytest.mark.usefixtures("wide")
def test_self_normalised_radius_is_that_of_neural_ucb_0():
    assumed = Assumptions(noise_bound=0.5, failure=0.05, norm=3.0)
    radius = theory.self_normalised(assumed, ridge=2.5)(jnp.int32(100), jnp.float64(30))
    assert_allclose(radius, 0.5 * math.sqrt(30 - 2 * math.log(0.05)) + math.sqrt(2.5) * 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tangent_kernel(np.ones(3), depth=2), "contexts must be a table"),
        (lambda: tangent_kernel(np.ones((2, 2)), depth=1), "depth must be at least 2, got 1"),
        (lambda: tangent_kernel(np.ones((2, 2)), depth=2, initialization="uniform"), "one of gaussian"),
        (lambda: tangent_kernel(np.full((2, 2), np.nan), depth=2), "finite, got NaN or infinity in row 0"),
        (lambda: tangent_kernel(np.ones((2, 2)), np.ones((2, 3)), depth=2), "others must be contexts of the same"),
        (lambda: tangent_kernel(Slot(np.ones((2, 2)), np.ones(3)), depth=2), "an arm for each of the 2 rows"),
        (
            lambda: theory.effective_dimension(np.eye(3), regularization=0),
            "regularization must be positive and finite, got 0",
        ),
        (lambda: theory.effective_dimension(np.ones((2, 3)), regularization=1), "square matrix in float64"),
        (lambda: theory.dimensions_over_rounds(np.eye(3), arms=2, regularization=1), "arms must divide the 3"),
        (lambda: theory.rkhs_norm_squared(np.eye(3), np.ones(2)), "a reward for each of the 3 contexts"),
        (lambda: theory.theorem_1(1.0, Assumptions(), Horizon(1, 2, 2, 3.0), steps=1), "at most rounds · depth = 2"),
        (lambda: theory.theorem_1(1.0, Assumptions(failure=1), Horizon(9, 2, 2, 1.0), steps=1), "between 0 and 1"),
        (lambda: theory.least_steps(Assumptions(norm=0), Horizon(9, 2, 2, 1.0)), "norm must be positive, got 0"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- problems, reports, coverage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["h1", "iris"])
def test_drawn_rounds_are_those_that_a_run_meets(name, key):
    problem = build_problem(name, {"dim": 3} if name == "h1" else {})
    policy = build("uniform", dim=problem.dim, shared_by=problem.shared_by)
    drawn = draw_rounds(key, problem, rounds=20)
    with jax.enable_x64(True):
        shown = problem._replace(data=jax.device_put(problem.data))
        trace = jax.jit(lambda key: simulate(key, policy, shown, rounds=20, schedule=read_schedule("10")))(key).trace
    chosen = np.take_along_axis(np.asarray(drawn.expected), np.asarray(trace.arm)[:, None], axis=1)[:, 0]
    assert_allclose(trace.regret, drawn.expected.max(axis=1) - chosen, atol=1e-5)


def planned(problem, **options):
    options = {"rounds": 20, "seeds": 1} | options
    rounds, seeds_ = options.pop("rounds"), options.pop("seeds")
    return plan(problem, ["neural-ucb"], options, rounds=rounds, seeds=seeds_)


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


def test_repeated_rows_make_lambda_0_zero_and_leave_the_rest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), np.arange(8) % 2
    twice = labelled(np.concatenate([X, X]), np.concatenate([y, y]), scaling="unit")
    report = theory.analyse(planned(twice, rounds=16, depth=2, regularization=1.0))
    once = theory.analyse(planned(labelled(X, y, scaling="unit"), rounds=8, depth=2, regularization=1.0))
    assert report.lambda_0 == 0
    assert report.repeated == 16
    assert any("S is taken over the first of each" in note for note in report.notes)
    assert_allclose(report.norm, once.norm, rtol=1e-5)
    assert report.effective_dimension > once.effective_dimension
    assert report.bound is not None
    assert report.conditions.width == math.inf


def test_rewards_that_contradict_each_other_have_no_norm():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 2, axis=0)
    report = theory.analyse(planned(labelled(X, np.arange(8) % 2, scaling="unit"), rounds=8, depth=2))
    assert report.norm is None
    assert report.bound is None
    assert any("S is infinite" in note for note in report.notes)


def test_a_row_of_zeros_is_noticed():
    X = np.eye(6)[:, :4]
    report = theory.analyse(planned(labelled(X, np.arange(6) % 2, scaling="none"), rounds=6, depth=2))
    assert report.lambda_0 == 0
    assert report.norm is None


def test_a_report_that_does_not_fit_into_memory_estimates_and_says_so(monkeypatch):
    exact = theory.analyse(planned("h1", dim=5, rounds=60))
    for module in ("report", "dimension"):
        monkeypatch.setattr(f"neuralucb.theory.{module}.host_bytes", lambda: 1000)
    report = theory.analyse(planned("h1", dim=5, rounds=60))
    assert abs(report.effective_dimension - exact.effective_dimension) < 4 * report.effective_dimension_error
    assert report.bound is None
    assert "an estimate" in report.notes[-1]


def covered(**options):
    policy = build("neural-ucb", dim=4, width=8, steps=10, batch_size=8, step_size=0.02, **options)
    problem, when = synthetic("h1", dim=4), read_schedule("20")
    return policy, theory.measure_coverage(policy, problem, rounds=60, schedule=when, seeds=[3, 4])


def test_watching_changes_nothing_and_notes_what_was_predicted():
    policy, found = covered(exploration=0.1)
    problem, when = synthetic("h1", dim=4), read_schedule("20")
    with jax.enable_x64(True):
        trace = jax.jit(lambda key: simulate(key, policy, problem, rounds=60, schedule=when))(jax.random.key(4)).trace
    drawn = draw_rounds(jax.random.key(4), problem, rounds=60)
    first = policy.select(jax.random.key(0), policy.init(jax.random.split(jax.random.key(4), 5)[2]), drawn.contexts[0])
    arm = int(trace.arm[0])
    assert_allclose(found.error[1, 0, 0], abs(first.mean[arm] - drawn.expected[0, arm]), rtol=1e-4)
    assert_allclose(found.width[1, 0, 0], first.width[arm], rtol=1e-4)
    assert found.error.shape == (2, 60, 2)
    assert_allclose(found.scale, 0.1, rtol=1e-6)
    needed = found.needed_scale(0.9)
    assert_allclose((found.error <= needed * found.width * (1 + 1e-9)).mean(axis=(0, 1)), 0.9, atol=0.02)


def test_the_theoretical_scale_covers_everything_and_none_covers_nothing():
    assert (covered(confidence="theoretical")[1].share() == 1).all()
    assert (covered(exploration=0.0)[1].share() == 0).all()


@pytest.mark.slow
def test_kernel_of_5000_contexts_takes_at_most_five_products_of_that_size():
    x, square = sphere(5000, 20), np.random.default_rng(0).normal(size=(5000, 5000))

    def fastest(work):
        times = []
        for _ in range(3):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        return min(times)

    assert fastest(lambda: tangent_kernel(x, depth=3)) < 5 * fastest(lambda: square @ square)
