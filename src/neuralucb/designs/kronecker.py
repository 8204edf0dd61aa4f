"""Z_l as λI and one Kronecker product per layer, in the spirit of K-FAC (Martens & Grosse 2015)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs.design import Design, by_layer, when
from neuralucb.designs.factorizations import eigenvectors
from neuralucb.gradients import Outer
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Kronecker", "kronecker"]

CURE = "take design='diagonal', or a smaller network"

PATIENCE = 20
"""Eigenvectors are computed again when the observations have grown by one in so many: always, up to the 20th."""


@brief
class Kronecker(NamedTuple):
    """One layer: L = Σ GGᵀ and R = Σ GᵀG of its gradients G, as matrices, and their eigenvectors a little earlier."""

    left: jax.Array
    right: jax.Array
    left_basis: jax.Array
    right_basis: jax.Array
    left_values: jax.Array
    right_values: jax.Array
    """eigenvalues of R, divided by tr R"""
    seen: jax.Array
    fresh: jax.Array
    """how many had been seen when the eigenvectors were computed"""


def kronecker(like: Any, *, ridge: Number, dtype: Any = "float64") -> Design:
    """Z_l = λI + L ⊗ R/tr R for each layer of m × d parameters, with L = Σ GGᵀ, R = Σ GᵀG: O(m² + d² + md) per round.

    G is one gradient of the layer as a matrix, δaᵀ for a dense layer. Of all Kronecker products this is the one with
    the partial traces of Σ ggᵀ: L and R. K-FAC has Σ δδᵀ ⊗ Σ aaᵀ/n instead, which weighs all gradients alike and needs
    δ and a; both agree where ‖δ‖ and ‖a‖ do not vary.

    Exact for one gradient δaᵀ; for gradients of which all δ, or all a, are parallel; so for every layer that is a
    vector, such as the output layer. λ is exact: it is not split between the factors.

    Eigenvectors cost O(m³ + d³). They are computed again whenever the observations have grown by a twentieth, so about
    110 times in 2000 rounds; between, widths are those of the last time.
    Departure: blocks beside the diagonal are left out, and each block is one Kronecker product.

    Args:
        like: A gradient, or its shapes. Each array of it is a layer; where it is a `Block`, each arm has its own.
            Arrays of more than two axes are matrices of their first axis by all others.
        ridge: λ.
        dtype: Of all that is kept.

    Returns:
        The design; Z is a tuple with a `Kronecker` per layer.

    Example:
        >>> import jax
        >>> from neuralucb.networks import mlp
        >>> network = mlp(4, width=8)
        >>> params = network.init(jax.random.key(0))
        >>> design = kronecker(jax.eval_shape(network.tangent, params, network.example)[1], ridge=1.0)
        >>> with jax.enable_x64(True):
        ...     [(z.left.shape, z.right.shape) for z in design.init()]
        [((8, 8), (4, 4)), ((1, 1), (8, 8))]
    """
    return by_layer(like, lambda layer: _of_layer(layer, ridge, dtype))


def _of_layer(like: Any, ridge: Number, dtype: Any) -> Design:
    rows, columns = _shape(like)

    def init() -> Kronecker:
        require(dtype)
        needed = 2 * (rows**2 + columns**2) * jnp.dtype(dtype).itemsize
        require_memory(needed, what=f"the Kronecker factors of a layer of {rows} × {columns}", cure=CURE)
        zero = jnp.int32(0)
        return Kronecker(
            left=jnp.zeros((rows, rows), dtype),
            right=jnp.zeros((columns, columns), dtype),
            left_basis=jnp.eye(rows, dtype=dtype),
            right_basis=jnp.eye(columns, dtype=dtype),
            left_values=jnp.zeros(rows, dtype),
            right_values=jnp.zeros(columns, dtype),
            seen=zero,
            fresh=zero,
        )

    def eigenvalues(z: Kronecker) -> jax.Array:
        """[m, d] those of Z_l."""
        return jnp.asarray(ridge, dtype) + jnp.outer(z.left_values, z.right_values)

    def width(z: Kronecker, gradient: Any) -> jax.Array:
        return jnp.sqrt((squares(z, gradient) / eigenvalues(z)).sum())

    def squares(z: Kronecker, gradient: Any) -> jax.Array:
        """[m, d] the squared coordinates of a gradient in the eigenvectors of Z_l."""
        if isinstance(gradient, Outer):
            left, right = gradient.left.astype(dtype) @ z.left_basis, gradient.right.astype(dtype) @ z.right_basis
            return jnp.outer(left**2, right**2)
        return (z.left_basis.T @ gradient.reshape(rows, columns).astype(dtype) @ z.right_basis) ** 2

    def add(z: Kronecker, gradient: Any) -> Kronecker:
        left, right = _moments(gradient, rows, columns, dtype)
        z = z._replace(left=z.left + left, right=z.right + right, seen=z.seen + 1)
        grown = z.seen * PATIENCE > z.fresh * (PATIENCE + 1)
        return when(grown, _refresh, z)

    def log_det(z: Kronecker) -> jax.Array:
        return jnp.log1p(jnp.outer(z.left_values, z.right_values) / jnp.asarray(ridge, dtype)).sum()

    def solve(z: Kronecker, b: jax.Array) -> jax.Array:
        turned = z.left_basis.T @ b.astype(dtype).reshape(rows, columns) @ z.right_basis
        return (z.left_basis @ (turned / eigenvalues(z)) @ z.right_basis.T).ravel()

    return Design(init, width, add, log_det, solve)


def _refresh(z: Kronecker) -> Kronecker:
    """With the eigenvectors of L and R as they are now."""
    left_values, left_basis = eigenvectors(z.left)
    right_values, right_basis = eigenvectors(z.right)
    trace = jnp.trace(z.right)
    share = right_values / jnp.where(trace > 0, trace, 1)
    return z._replace(
        left_basis=left_basis,
        right_basis=right_basis,
        left_values=_positive(left_values),
        right_values=_positive(share),
        fresh=z.seen,
    )


def _positive(values: jax.Array) -> jax.Array:
    """Eigenvalues of a sum of squares: below 0 by rounding alone. NaN stays NaN."""
    return jnp.where(values < 0, jnp.zeros_like(values), values)


def _moments(gradient: Any, rows: int, columns: int, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """GGᵀ and GᵀG."""
    if isinstance(gradient, Outer):
        left, right = gradient.left.astype(dtype), gradient.right.astype(dtype)
        return jnp.outer(left, left) * (right @ right), jnp.outer(right, right) * (left @ left)
    matrix = gradient.reshape(rows, columns).astype(dtype)
    return matrix @ matrix.T, matrix.T @ matrix


def _shape(layer: Any) -> tuple[int, int]:
    """A layer as a matrix: one row if it is a vector."""
    if isinstance(layer, Outer):
        return layer.left.shape[0], layer.right.shape[0]
    if len(layer.shape) < 2:
        return 1, layer.size
    return layer.shape[0], layer.size // layer.shape[0]
