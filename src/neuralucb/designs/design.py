"""What a design is; the empty one; and designs put together of smaller ones, by arm or by layer."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from neuralucb.gradients import Block, dense, layers
from neuralucb.runtime.records import brief

__all__ = ["Design", "by_arm", "by_layer", "none", "when"]

State = TypeVar("State")


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


def by_layer(like: Any, make: Callable[[Any], Design]) -> Design:
    """One design per layer, as if gradients of two layers were orthogonal; where a layer is a `Block`, one per arm too.

    Args:
        like: A gradient, or its shapes, as `jax.eval_shape(network.tangent, …)` gives them.
        make: One layer, in shapes -> its design; a `Block` is never asked for, only its part.

    Returns:
        A design whose Z is a tuple with that of each layer.

    Example:
        >>> import jax.numpy as jnp
        >>> from neuralucb.designs import diagonal
        >>> gradient = (jnp.ones(2), jnp.ones(3))
        >>> design = by_layer(gradient, lambda layer: diagonal(layer, ridge=1.0))
        >>> round(float(design.width(design.init(), gradient)) ** 2, 6)
        5.0
    """
    shapes = layers(like)
    parts = [_of_layer(layer, make) for layer in shapes]
    ends = list(accumulate(jax.eval_shape(dense, layer).size for layer in shapes))[:-1]

    def width(z: Any, gradient: Any) -> jax.Array:
        each = [part.width(its, g) ** 2 for part, its, g in zip(parts, z, layers(gradient), strict=True)]
        return jnp.sqrt(jnp.stack(each).sum())

    def add(z: Any, gradient: Any) -> Any:
        return tuple(part.add(its, g) for part, its, g in zip(parts, z, layers(gradient), strict=True))

    def log_det(z: Any) -> jax.Array:
        return jnp.stack([part.log_det(its) for part, its in zip(parts, z, strict=True)]).sum()

    def solve(z: Any, b: jax.Array) -> jax.Array:
        return jnp.concatenate([part.solve(*each) for part, *each in zip(parts, z, jnp.split(b, ends), strict=True)])

    return Design(lambda: tuple(part.init() for part in parts), width, add, log_det, solve)


def when(due: jax.Array, change: Callable[[State], State], z: State) -> State:
    """`change(z)` if it is due, else z; costly only then, also under `vmap`, where both branches of a `cond` are run.

    A loop of no or one turn. The barrier keeps XLA from computing before the loop what does not change within it.
    """

    def turn(index: jax.Array, now: State) -> State:
        return change(lax.optimization_barrier((index, now))[1])

    return lax.fori_loop(jnp.int32(0), due.astype(jnp.int32), turn, z)


def _of_layer(layer: Any, make: Callable[[Any], Design]) -> Design:
    return by_arm(_of_layer(layer.part, make), layer.arms) if isinstance(layer, Block) else make(layer)
