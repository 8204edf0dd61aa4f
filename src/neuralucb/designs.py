"""Z, the design matrix λI + Σ ggᵀ, behind one interface: full (exact) or diagonal (the paper's, for real data)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.memory import require_memory
from neuralucb.precision import Number, require

__all__ = ["Design", "Full", "Outer", "dense", "diagonal", "full", "inner", "none"]


CURE = "take design='diagonal', or a smaller network"


class Outer(NamedTuple):
    """The gradient of one dense layer, left rightᵀ: two vectors instead of a matrix for every arm."""

    left: jax.Array
    right: jax.Array


class Design(NamedTuple):
    """A gradient g is a pytree whose leaves are arrays or `Outer`, already divided by sqrt(m)."""

    init: Callable[[], Any]
    """-> Z_0 = λI"""
    width: Callable[[Any, Any], jax.Array]
    """Z, g -> sqrt(gᵀ Z⁻¹ g)"""
    add: Callable[[Any, Any], Any]
    """Z, g -> Z + ggᵀ"""
    log_det: Callable[[Any], jax.Array]
    """Z -> log(det Z / det λI)"""
    solve: Callable[[Any, Any], Any]
    """Z, b -> Z⁻¹ b, for a b shaped like the dense gradient"""


class Full(NamedTuple):
    """Z⁻¹ and log(det Z / det λI), both kept up to date."""

    inverse: jax.Array
    log_det: jax.Array


def full(size: int, *, ridge: Number, dtype: Any = "float64") -> Design:
    """The exact Z of `size` parameters: O(p²) a round, by Sherman and Morrison and the matrix determinant lemma.

    Departure: none. float64 by default, because on nearly low-rank gradients float32 ends in negative variances.
    """

    def init() -> Full:
        require(dtype)
        require_memory(size**2 * jnp.dtype(dtype).itemsize, what=f"the full Z of {size} parameters", cure=CURE)
        inverse = jnp.eye(size, dtype=dtype) / jnp.asarray(ridge, dtype=dtype)
        return Full(inverse, jnp.zeros((), dtype=dtype))

    def width(z: Full, gradient: Any) -> jax.Array:
        g = dense(gradient).astype(dtype)
        return jnp.sqrt(g @ (z.inverse @ g))

    def add(z: Full, gradient: Any) -> Full:
        g = dense(gradient).astype(dtype)
        w = z.inverse @ g  # named, so that the update costs O(p²)
        growth = g @ w
        return Full(z.inverse - jnp.outer(w, w / (1 + growth)), z.log_det + jnp.log1p(growth))

    def solve(z: Full, b: jax.Array) -> jax.Array:
        return z.inverse @ b.astype(dtype)

    return Design(init, width, add, lambda z: z.log_det, solve)


def diagonal(like: Any, *, ridge: Number, dtype: Any = "float32") -> Design:
    """Only diag(Z), in the shape of the parameters (`like` gives their shapes): O(p) memory and time.

    Departure: the paper's own approximation for its real data sets (Section 7.2).
    """

    def init() -> Any:
        require(dtype)
        start = jnp.asarray(ridge, dtype=dtype)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(start, leaf.shape), like)

    def width(z: Any, gradient: Any) -> jax.Array:
        return jnp.sqrt(_sum(jax.tree.map(_weighted_square, _cast(gradient, dtype), z, is_leaf=_is_outer)))

    def add(z: Any, gradient: Any) -> Any:
        return jax.tree.map(lambda g, old: old + _square(g), _cast(gradient, dtype), z, is_leaf=_is_outer)

    def log_det(z: Any) -> jax.Array:
        return _sum(jax.tree.map(lambda leaf: jnp.log(leaf / jnp.asarray(ridge, dtype=dtype)).sum(), z))

    def solve(z: Any, b: jax.Array) -> jax.Array:
        return b.astype(dtype) / dense(z)

    return Design(init, width, add, log_det, solve)


def none() -> Design:
    """No Z at all: every width is 0. For rules that do not ask for it."""
    zero = lambda *_: jnp.zeros((), dtype=jnp.float32)  # noqa: E731
    return Design(lambda: (), zero, lambda z, _: z, zero, lambda z, b: b)


def dense(gradient: Any) -> jax.Array:
    """The gradient as one vector of length p."""
    leaves = jax.tree.leaves(gradient, is_leaf=_is_outer)
    return jnp.concatenate([_matrix(leaf).ravel() for leaf in leaves])


def inner(a: Any, b: Any) -> jax.Array:
    """⟨a, b⟩ of two gradients; for a dense layer ⟨left, left⟩⟨right, right⟩, without its matrix."""
    leaves = zip(jax.tree.leaves(a, is_leaf=_is_outer), jax.tree.leaves(b, is_leaf=_is_outer), strict=True)
    return jnp.stack([_inner_leaf(x, y) for x, y in leaves]).sum()


def _inner_leaf(x: Any, y: Any) -> jax.Array:
    return (x.left @ y.left) * (x.right @ y.right) if _is_outer(x) else x.ravel() @ y.ravel()


def _is_outer(leaf: Any) -> bool:
    return isinstance(leaf, Outer)


def _matrix(leaf: Any) -> jax.Array:
    return jnp.outer(leaf.left, leaf.right) if _is_outer(leaf) else leaf


def _square(leaf: Any) -> jax.Array:
    return jnp.outer(leaf.left**2, leaf.right**2) if _is_outer(leaf) else leaf**2


def _weighted_square(leaf: Any, z: jax.Array) -> jax.Array:
    """Σ g²/Z; for a dense layer (left²)ᵀ (1/Z) (right²), so that many arms read Z once, in a matrix product."""
    if _is_outer(leaf):
        return leaf.left**2 @ ((1 / z) @ leaf.right**2)
    return (leaf**2 / z).sum()


def _cast(tree: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def _sum(tree: Any) -> jax.Array:
    return jnp.stack(jax.tree.leaves(tree)).sum()
