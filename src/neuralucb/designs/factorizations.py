"""Factorizations of symmetric matrices, one at a time also under `vmap`.

A batch of them is one call of LAPACK's wrapper in jaxlib, which hands parts of it to the threads that programs run on
and waits for them. Two such programs side by side, as lanes of a run are, wait for each other forever (jaxlib 0.10).
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

__all__ = ["eigenvectors", "inverse_cholesky"]

Factorization: TypeAlias = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


def _eigenvectors(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


def _inverse_cholesky(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    factor = jnp.linalg.cholesky(matrix)
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(matrix), dtype=matrix.dtype), lower=True)
    return inverse, 2 * jnp.log(jnp.diagonal(factor)).sum()


eigenvectors: Factorization = jax.custom_batching.sequential_vmap(_eigenvectors)
"""matrix -> eigenvalues, ascending, and eigenvectors in columns"""

inverse_cholesky: Factorization = jax.custom_batching.sequential_vmap(_inverse_cholesky)
"""matrix -> L⁻¹ for Cholesky's LLᵀ, and log det LLᵀ"""
