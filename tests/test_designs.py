"""Identities of Z: its inverse, its determinant, its widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.designs import diagonal, full, none
from neuralucb.gradients import Outer, dense
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
