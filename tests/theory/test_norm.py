"""λ_0, hᵀH⁻¹h and S: identities, the paper's inequalities, and kernels that are singular."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.networks.mlp import mlp
from neuralucb.theory import tangent_kernel
from tests.theory.helpers import quick, seeds, sphere


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


def test_opposite_contexts_are_regular_until_there_are_more_than_the_dimension():
    x = sphere(5, 3)
    few, many = np.concatenate([x[:3], -x[:3]]), np.concatenate([x, -x])
    theory.require_regular(many)
    assert theory.smallest_eigenvalue(tangent_kernel(few, depth=2)) > 0.01
    with pytest.raises(ValueError, match="H is singular"):
        theory.smallest_eigenvalue(tangent_kernel(many, depth=2))
    assert theory.smallest_eigenvalue(tangent_kernel(many, depth=3)) > 1e-3


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


def test_norm_of_a_regular_kernel_is_not_refused_whatever_the_norms():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, c, h = sphere(50, 3, seed), 10.0 ** rng.uniform(-6, 6, size=50), rng.normal(size=50)
        plain = theory.rkhs_norm_squared(tangent_kernel(x, depth=2), h)
        assert_allclose(theory.rkhs_norm_squared(tangent_kernel(c[:, None] * x, depth=2), c * h), plain, rtol=1e-6)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.rkhs_norm_squared(np.eye(3), np.ones(2)), "one reward for each of the 3 contexts"),
        (lambda: theory.smallest_eigenvalue(np.full((3, 3), np.nan)), "NaN or infinity in row 0"),
        (lambda: theory.smallest_eigenvalue(np.ones((2, 3))), "square matrix"),
        (lambda: theory.norm_bound(np.eye(3), np.array([1, np.nan, 1])), "expected must be finite, got nan for cont"),
        (lambda: theory.norm_bound(np.eye(3, dtype=int), np.ones(3)), "float64, got int64"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()
