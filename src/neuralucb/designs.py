"""Z, the design matrix λI + Σ ggᵀ, behind one interface: full (exact) or diagonal (the paper's, for real data)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.gradients import Block, Outer, cast, dense, map_layers
from neuralucb.networks.arm_blocks import block_product
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Design", "Full", "by_arm", "diagonal", "drift", "full", "has_drifted", "none"]

CURE = "take design='diagonal', a smaller network, or, for an algorithm with a dual form, say how many rounds"

LARGEST_DRIFT = 1.0
"""Beyond it Z⁻¹ has lost all digits in some direction, and widths of common gradients are off by about a hundredth."""


@brief
class Design(NamedTuple):
    """A gradient g is a pytree whose leaves are arrays, `Outer` or `Block`, already divided by sqrt(m)."""

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


@brief
class Full(NamedTuple):
    """Z⁻¹ and log(det Z / det λI), both kept up to date; and Zv for one direction v, by which `drift` checks Z⁻¹."""

    inverse: jax.Array
    log_det: jax.Array
    image: jax.Array


def full(size: int, *, ridge: Number, dtype: Any = "float64") -> Design:
    """The exact Z of `size` parameters: O(p²) per round, by Sherman–Morrison and the matrix determinant lemma.

    Departure: none. float64 by default, because on nearly low-rank gradients float32 ends in negative variances.

    A matrix kept as its inverse cannot hold more than 1/eps between its largest and smallest eigenvalue. An update of
    which no digit would be left, such as one with ‖g‖²/λ beyond 10¹⁵ in float64, turns Z⁻¹ into NaN: a simulation then
    marks the run, and an `OnlineBandit` refuses the observation, instead of going on with wrong widths.
    """

    def init() -> Full:
        require(dtype)
        require_memory(size**2 * jnp.dtype(dtype).itemsize, what=f"the full Z of {size} parameters", cure=CURE)
        lam = jnp.asarray(ridge, dtype=dtype)
        inverse = jnp.eye(size, dtype=dtype) / lam  # Algorithm 1, line 3
        return Full(inverse, jnp.zeros((), dtype=dtype), lam * _direction(size, dtype))

    def width(z: Full, gradient: Any) -> jax.Array:
        g = dense(gradient).astype(dtype)
        return jnp.sqrt(g @ (z.inverse @ g))

    def add(z: Full, gradient: Any) -> Full:
        g = dense(gradient).astype(dtype)
        w = z.inverse @ g  # named, so that the update costs O(p²)
        growth = g @ w
        image = z.image + g * (g @ _direction(size, dtype))
        divisor = jnp.where(is_lost(g @ g, growth), jnp.nan, 1 + growth)
        inverse = z.inverse - jnp.outer(w, w / divisor)  # Algorithm 1, line 11, for the inverse
        return Full(inverse, z.log_det + jnp.log1p(growth), image)

    def is_lost(squared: jax.Array, growth: jax.Array) -> jax.Array:
        """Whether rounding, eps·gᵀg/λ since Z⁻¹ began as I/λ, exceeds what is left of gᵀZ⁻¹g: growth/(1 + growth)."""
        return jnp.finfo(dtype).eps * squared * (1 + growth) > jnp.asarray(ridge, dtype=dtype) * growth

    def solve(z: Full, b: jax.Array) -> jax.Array:
        return z.inverse @ b.astype(dtype)

    return Design(init, width, add, lambda z: z.log_det, solve)


def diagonal(like: Any, *, ridge: Number, dtype: Any = "float32") -> Design:
    """Only diag(Z), in the shape of the parameters (`like` gives their shapes): O(p) memory and time.

    Kept as 1/diag(Z), since it is read far more often than it is written, and a division costs ten products.
    Departure: the paper's own approximation for its real data sets (Section 7.2).
    """

    def init() -> Any:
        require(dtype)
        start = 1 / jnp.asarray(ridge, dtype=dtype)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(start, leaf.shape), like)

    def width(z: Any, gradient: Any) -> jax.Array:
        return jnp.sqrt(_sum(map_layers(lambda g, old: _weighted_square(cast(g, dtype), old), gradient, z)))

    def add(z: Any, gradient: Any) -> Any:
        return map_layers(lambda g, old: _add_square(cast(g, dtype), old), gradient, z)

    def log_det(z: Any) -> jax.Array:
        return -_sum(jax.tree.map(lambda leaf: jnp.log(leaf * jnp.asarray(ridge, dtype=dtype)).sum(), z))

    def solve(z: Any, b: jax.Array) -> jax.Array:
        return b.astype(dtype) * dense(z)

    return Design(init, width, add, log_det, solve)


def none() -> Design:
    """No Z at all: every width is 0. For rules that do not use the width."""

    def zero(*_: Any) -> jax.Array:
        return jnp.zeros((), dtype=jnp.float32)

    return Design(lambda: (), zero, lambda z, _: z, zero, lambda z, b: b)


def by_arm(one: Design, arms: int) -> Design:
    """One design per arm, exact for gradients that are one `Block`: Z is then block-diagonal."""

    def stacked() -> Any:
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (arms, *leaf.shape)), one.init())

    def of(z: Any, arm: jax.Array) -> Any:
        return jax.tree.map(lambda leaf: leaf[arm], z)

    def add(z: Any, gradient: Block) -> Any:
        new = one.add(of(z, gradient.arm), gradient.part)
        return jax.tree.map(lambda leaf, block: leaf.at[gradient.arm].set(block), z, new)

    return Design(
        stacked,
        lambda z, gradient: one.width(of(z, gradient.arm), gradient.part),
        add,
        lambda z: jax.vmap(one.log_det)(z).sum(),
        lambda z, b: jax.vmap(one.solve)(z, b.reshape(arms, -1)).ravel(),
    )


def drift(z: Full) -> jax.Array:
    """‖Z⁻¹(Zv) - v‖_∞ for one direction v: how far rounding has carried the kept inverse away. 0 if it has not."""
    v = jnp.broadcast_to(_direction(z.image.shape[-1], z.image.dtype), z.image.shape)  # z may be one per arm
    return jnp.abs(jnp.einsum("...ij,...j->...i", z.inverse, z.image) - v).max()


def has_drifted(belief: Any) -> jax.Array:
    """Whether the `drift` of a full design anywhere in the belief is beyond LARGEST_DRIFT, or not a number."""
    designs = [leaf for leaf in jax.tree.leaves(belief, is_leaf=_is_full) if _is_full(leaf)]
    return jnp.asarray([~(drift(z) <= LARGEST_DRIFT) for z in designs], dtype=bool).any()


def _is_full(leaf: Any) -> bool:
    return isinstance(leaf, Full)


def _direction(size: int, dtype: Any) -> jax.Array:
    """A vector that no gradient is likely to be parallel or orthogonal to, with entries between -1 and 1."""
    return jnp.cos(jnp.arange(1, size + 1, dtype=dtype) ** 2)


def _add_square(layer: Any, inverse: jax.Array) -> jax.Array:
    """1/(z + g²), from 1/z."""
    if isinstance(layer, Block):
        return inverse.at[layer.arm].set(_add_square(layer.part, inverse[layer.arm]))
    square = jnp.outer(layer.left**2, layer.right**2) if isinstance(layer, Outer) else layer**2
    return inverse / (1 + square * inverse)


def _weighted_square(layer: Any, inverse: jax.Array) -> jax.Array:
    """Σ g²/z; for a dense layer (left²)ᵀ (1/z) (right²), so that many arms read z once, in a matrix product."""
    if isinstance(layer, Block) and isinstance(layer.part, Outer):
        return layer.part.left**2 @ block_product(inverse, layer.arm, layer.part.right**2)
    if isinstance(layer, Block):
        return _weighted_square(layer.part, inverse[layer.arm])
    if isinstance(layer, Outer):
        return layer.left**2 @ (inverse @ layer.right**2)
    return (layer**2 * inverse).sum()


def _sum(tree: Any) -> jax.Array:
    return jnp.stack(jax.tree.leaves(tree)).sum()
