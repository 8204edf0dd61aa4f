"""Properties over many drawn cases: Z and its dual, whatever the ridge and the directions."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from neuralucb.designs import diagonal, full
from neuralucb.estimators.features import raw
from neuralucb.estimators.kernel import kernel
from neuralucb.estimators.ridge import ridge
from neuralucb.gradients import Outer, dense, inner

SIZE = 4
numbers = st.floats(-3, 3, width=32)
vectors = st.lists(numbers, min_size=SIZE, max_size=SIZE).map(np.float32)
ridges = st.floats(1e-3, 10)
cases = settings(max_examples=25, deadline=None)


@cases
@given(st.lists(vectors, min_size=1, max_size=8), ridges, vectors)
def test_full_and_diagonal_are_what_their_names_say(rows, lam, direction):
    wide = [row.astype(np.float64) for row in rows]
    explicit = lam * np.eye(SIZE) + sum(np.outer(row, row) for row in wide)
    with jax.enable_x64(True):
        exact, approximate = (
            full(SIZE, ridge=lam),
            diagonal(jax.ShapeDtypeStruct((SIZE,), "float64"), ridge=lam, dtype="float64"),
        )
        z, d = exact.init(), approximate.init()
        for row in rows:
            z, d = exact.add(z, row), approximate.add(d, row)
        assert_allclose(explicit @ z.inverse, np.eye(SIZE), atol=1e-8)
        assert_allclose(z.log_det, np.linalg.slogdet(explicit / lam)[1], rtol=1e-8, atol=1e-8)
        assert_allclose(1 / d, np.diag(explicit), rtol=1e-10)
        assert exact.width(z, direction) >= 0
        # a matrix knows at least what its own next observation tells: widths only shrink
        assert exact.width(exact.add(z, rows[0]), direction) <= exact.width(z, direction) * (1 + 1e-9) + 1e-12


@cases
@given(st.lists(st.tuples(vectors, numbers), min_size=1, max_size=6), ridges, vectors)
def test_the_dual_gives_the_numbers_of_the_primal(observations, lam, direction):
    with jax.enable_x64(True):
        primal = ridge(raw(SIZE), full(SIZE, ridge=lam))
        dual = kernel(raw(SIZE), inner, ridge=lam, capacity=8)
        a, b = primal.init(jax.random.key(0)), dual.init(jax.random.key(0))
        for context, reward in observations:
            a = primal.observe(a, jnp.asarray(context), jnp.float64(reward))
            b = dual.observe(b, jnp.asarray(context), jnp.float64(reward))
        ours, theirs = primal.predict(a, jnp.asarray(direction)), dual.predict(b, jnp.asarray(direction))
        assert_allclose(ours.mean, theirs.mean, rtol=1e-6, atol=1e-7)
        assert_allclose(ours.width**2, theirs.width**2, rtol=1e-6, atol=1e-7)
        assert_allclose(ours.log_det, theirs.log_det, rtol=1e-8, atol=1e-8)


@cases
@given(vectors, vectors, vectors, vectors)
def test_inner_products_of_outer_products_need_no_matrix(a, b, c, d):
    x, y = (Outer(a, b), a), (Outer(c, d), c)
    expected = np.asarray(dense(x), np.float64) @ np.asarray(dense(y), np.float64)
    assert_allclose(inner(x, y), expected, rtol=1e-4, atol=1e-3)
