"""Identities of Z: its inverse, its determinant, its widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import OnlineBandit, build
from neuralucb.designs import diagonal, forgetting, full, has_drifted, none
from neuralucb.estimators.features import raw
from neuralucb.estimators.kernel import kernel
from neuralucb.gradients import Outer, dense, inner
from neuralucb.runtime.precision import exact

SIZE = 12


def gradients(count, *, rank=SIZE):
    generator = np.random.default_rng(0)
    return (generator.normal(size=(count, rank)) @ generator.normal(size=(rank, SIZE)) / np.sqrt(rank)).astype(
        np.float32
    )


@exact
def after(design, rows):
    return jax.jit(lambda rows: jax.lax.scan(lambda z, g: (design.add(z, g), None), design.init(), rows)[0])(rows)


@pytest.mark.parametrize("ridge", [1.0, 0.3, 1e-5])
@pytest.mark.parametrize("rank", [SIZE, 3])
def test_the_inverse_stays_the_inverse_after_thousands_of_updates(ridge, rank):
    rows = gradients(5000, rank=rank)
    z = after(full(SIZE, ridge=ridge), rows)
    explicit = ridge * np.eye(SIZE) + rows.astype(np.float64).T @ rows.astype(np.float64)
    error = np.abs(explicit @ np.asarray(z.inverse) - np.eye(SIZE)).max()
    # entries of Z⁻¹ start at 1/λ; their first rounding is never forgotten, and Z multiplies it
    rounding = np.finfo(np.float64).eps * np.linalg.norm(explicit, 2) / ridge
    assert z.inverse.dtype == np.float64
    assert error < SIZE * rounding


@pytest.mark.parametrize("ridge", [1.0, 1e-5])
def test_the_log_determinant_is_that_of_the_explicit_matrix(ridge):
    rows = gradients(3000)
    z = after(full(SIZE, ridge=ridge), rows)
    explicit = ridge * np.eye(SIZE) + rows.astype(np.float64).T @ rows.astype(np.float64)
    assert_allclose(z.log_det, np.linalg.slogdet(explicit)[1] - SIZE * np.log(ridge), rtol=1e-10)


@pytest.mark.parametrize("rank", [SIZE, 3])
def test_a_design_that_forgets_is_the_fading_sum_with_a_ridge_that_stays(rank):
    """Also in directions that no gradient has, and after a hundred memories."""
    rows, ridge, memory = gradients(4000, rank=rank), 0.3, 40
    belief = after(forgetting(SIZE, ridge=ridge, memory=memory), rows)
    weights = (1 - 1 / memory) ** np.arange(len(rows))[::-1]
    ridges = np.zeros(SIZE)
    for added in range(4000):
        ridges = (1 - 1 / memory) * ridges
        ridges[added % SIZE] += ridge * (1 - (1 - 1 / memory) ** SIZE)
    assert ridge * (1 - 1 / memory) ** SIZE <= ridges.min() < ridges.max() <= ridge * 1.0000001
    explicit = np.diag(ridges) + (weights * rows.astype(np.float64).T) @ rows.astype(np.float64)
    assert_allclose(explicit @ np.asarray(belief.z.inverse), np.eye(SIZE), atol=1e-10)
    assert_allclose(belief.z.log_det, np.linalg.slogdet(explicit)[1] - SIZE * np.log(ridge), rtol=1e-9)
    assert not exact(has_drifted)(belief)


def test_float32_drifts_where_float64_does_not():
    """Why full designs are float64: on nearly low-rank gradients float32 loses the width at a small ridge."""
    rows, ridge = gradients(3000, rank=3), 1e-5
    rows = rows + 1e-4 * gradients(3000)
    explicit = ridge * np.eye(SIZE) + rows.astype(np.float64).T @ rows.astype(np.float64)
    truth = np.sqrt(rows[0].astype(np.float64) @ np.linalg.solve(explicit, rows[0].astype(np.float64)))

    def error(dtype):
        design = full(SIZE, ridge=ridge, dtype=dtype)
        return abs(float(exact(design.width)(after(design, rows), rows[0])) / truth - 1)

    assert error("float64") < 1e-6
    assert not error("float32") < 1e-3  # NaN, from a negative variance, counts as drift too


def test_the_diagonal_is_the_diagonal_of_the_full_matrix():
    rows = gradients(200)
    z = after(diagonal(jax.ShapeDtypeStruct((SIZE,), "float32"), ridge=0.5), rows)
    assert_allclose(1 / z, 0.5 + (rows.astype(np.float64) ** 2).sum(axis=0), rtol=1e-5)


def test_an_outer_product_counts_as_the_matrix_it_stands_for(key):
    left, right = np.float32([1, -2, 3]), np.float32([0.5, 4])
    gradient, flat = (Outer(left, right), left), np.concatenate([np.outer(left, right).ravel(), left])
    assert_allclose(dense(gradient), flat)
    like = (jax.ShapeDtypeStruct((3, 2), "float32"), jax.ShapeDtypeStruct((3,), "float32"))
    design = diagonal(like, ridge=0.1)
    z = design.add(design.init(), gradient)
    assert_allclose(1 / dense(z), 0.1 + flat**2, rtol=1e-6)
    assert_allclose(design.width(z, gradient), np.sqrt((flat**2 / (0.1 + flat**2)).sum()), rtol=1e-6)
    assert_allclose(design.log_det(z), np.log((0.1 + flat**2) / 0.1).sum(), rtol=1e-6)


def test_solving_undoes_the_matrix():
    rows = gradients(50)
    b = np.arange(SIZE, dtype=np.float32)
    explicit = 0.3 * np.eye(SIZE) + rows.astype(np.float64).T @ rows.astype(np.float64)
    design = full(SIZE, ridge=0.3)
    assert_allclose(exact(design.solve)(after(design, rows), b), np.linalg.solve(explicit, b), rtol=1e-9)
    like = jax.ShapeDtypeStruct((SIZE,), "float32")
    approximate = diagonal(like, ridge=0.3)
    assert_allclose(approximate.solve(after(approximate, rows), b), b / np.diag(explicit), rtol=1e-4)


def test_no_design_has_no_width():
    design = none()
    assert design.width(design.add(design.init(), jnp.ones(3)), jnp.ones(3)) == 0


HUGE, SMALL_RIDGE = 1e7, 1e-3
"""‖g‖²/λ = 10¹⁷: more than float64 can hold between the eigenvalues of one inverse."""


def variance_along(inverse, direction):
    return float(direction @ np.asarray(inverse, np.float64) @ direction)


@pytest.mark.parametrize("size", [1e3, HUGE])
def test_an_update_of_which_no_digit_would_be_left_is_refused(size):
    direction = size * np.float64([0.6, 0.48, 0.64])  # its norm is `size`
    before = np.eye(3) / SMALL_RIDGE
    w = before @ direction
    plain = before - np.outer(w, w) / (1 + direction @ w)  # Sherman and Morrison, to the letter
    squared = direction @ direction / SMALL_RIDGE
    truth = squared / (1 + squared)
    design = full(3, ridge=SMALL_RIDGE)
    ours = variance_along(exact(lambda: design.add(design.init(), direction))().inverse, direction)
    if size == HUGE:
        assert abs(variance_along(plain, direction) - truth) > 0.1  # silently wrong
        assert np.isnan(ours)
    else:
        assert_allclose([ours, variance_along(plain, direction)], truth, rtol=1e-5)


def test_updates_are_refused_before_their_sum_makes_widths_wrong():
    """No single one is too large; together they are: the last width that is given is still right."""
    rows = 2e5 * gradients(3000)
    design = full(SIZE, ridge=SMALL_RIDGE)
    widths = exact(jax.jit(lambda: jax.lax.scan(widen(design), design.init(), rows)[1]))()
    explicit = SMALL_RIDGE * np.eye(SIZE) + np.cumsum(rows[:, :, None].astype(float) * rows[:, None].astype(float), 0)
    truth = np.sqrt([row @ np.linalg.solve(z, row) for row, z in zip(rows.astype(float), explicit, strict=True)])
    given = np.isfinite(widths)
    assert 10 < given.sum() < len(rows)
    assert not given[np.argmin(given) :].any()
    assert_allclose(np.asarray(widths)[given], truth[given], rtol=0.1)


def widen(design):
    def step(z, row):
        z = design.add(z, row)
        return z, design.width(z, row)

    return step


@pytest.mark.parametrize(("ridge", "dtype", "drifts"), [(1.0, "float64", False), (1e-6, "float32", True)])
def test_drift_tells_when_the_inverse_is_lost(ridge, dtype, drifts):
    z = after(full(SIZE, ridge=ridge, dtype=dtype), gradients(300, rank=3))
    assert bool(exact(has_drifted)({"deep": [z, np.ones(2)]})) is drifts
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), z)  # one per arm
    assert bool(exact(has_drifted)(stacked)) is drifts
    assert not has_drifted({"nothing": np.ones(2)})


def test_the_dual_form_is_refused_at_the_same_size():
    def width(size):
        estimator = kernel(raw(3), inner, ridge=SMALL_RIDGE, capacity=4)
        context = jnp.asarray(size * np.float64([0.6, 0.48, 0.64]))
        belief = estimator.observe(estimator.init(jax.random.key(0)), context, jnp.float64(1))
        return estimator.predict(belief, context).width

    assert_allclose(exact(width)(1e3), 1, rtol=1e-5)
    assert np.isnan(exact(width)(HUGE))


def test_an_online_bandit_refuses_what_its_design_cannot_hold():
    policy = build("lin-ucb", dim=3, regularization=SMALL_RIDGE)
    with OnlineBandit(policy) as bandit:
        for size in (1, HUGE, 1):
            decision = bandit.select(np.full((2, 3), size, np.float32))
            bandit.observe(decision.id, 1.0)
        assert bandit.health().refused == 1
        assert bandit.health().inverse_drift < 1e-6
        assert np.isfinite(bandit.select(np.ones((2, 3), np.float32)).score).all()
