"""Z of gradients projected to k random directions (Johnson & Lindenstrauss 1984), with the error to expect."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.designs.design import Design
from neuralucb.designs.full import Full, full
from neuralucb.gradients import Block, Outer, dense, layers
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require
from neuralucb.runtime.records import brief

__all__ = ["Projection", "projection_error", "random_projection"]

CURE = "set a smaller design_size, take design='diagonal', or a smaller network"


@brief
class Projection(NamedTuple):
    """R, drawn once, and the exact Z of the projected gradients Rg."""

    matrix: tuple[jax.Array, ...]
    """by layer, each [k, shape of the layer]"""
    z: Full


def random_projection(
    like: Any, *, size: int, ridge: Number, orthogonal: bool = False, seed: int = 0, dtype: Any = "float64"
) -> Design:
    """Z = λI + Σ Rg(Rg)ᵀ in k dimensions, R a random matrix that keeps lengths in the mean: O(pk + k²) per round.

    Entries of R are normal with variance 1/k. In the dual form λ·width² is the least of ‖g - Σ c_i g_i‖² + λ‖c‖², and
    of the same with R before the norm: where R changes no length within the span of the gradients by more than a share
    η, it changes no width by more. With probability at least 1 - δ that holds for gradients of rank r and

        η = (√r + √(2 log(2/δ)))/√k

    (Davidson & Szarek 2001), which `projection_error` computes; for all of them at once, if they do not depend on R. In
    a run of its own the choices do, a little. With k below r widths shrink too soon: k directions are soon all known.

    Args:
        like: A gradient, or its shapes.
        size: k, at most p.
        ridge: λ.
        orthogonal: Whether the rows of R are made orthogonal, all of length √(p/k): a little better, and with k = p
            exact. O(pk²) to draw.
        seed: By which R is drawn: the same for all runs unless you change it.
        dtype: Of all that is kept.

    Returns:
        The design; Z is `Projection`, and `solve` that of the projected problem, mapped back.

    Raises:
        InputError: If `size` is more than p.

    Example:
        >>> import jax.numpy as jnp
        >>> design = random_projection(jnp.zeros(4), size=4, ridge=1.0, orthogonal=True, dtype="float32")
        >>> round(float(design.width(design.init(), jnp.ones(4))), 5)
        2.0
    """
    shapes = [_dense_shape(layer) for layer in layers(like)]
    total = sum(int(np.prod(shape)) for shape in shapes)
    if not 1 <= size <= total:
        raise InputError(f"size must be from 1 to {total}, the number of parameters, got {size}.")
    projected = full(size, ridge=ridge, dtype=dtype)

    def init() -> Projection:
        require(dtype)
        needed = size * total * jnp.dtype(dtype).itemsize
        require_memory(needed, what=f"a projection of {total} parameters to {size}", cure=CURE)
        drawn = random.normal(random.key(seed), (size, total), dtype)
        rows = _orthogonal(drawn) if orthogonal else drawn / jnp.sqrt(jnp.asarray(size, dtype))
        return Projection(_split(rows, shapes), projected.init())

    def project(z: Projection, gradient: Any) -> jax.Array:
        return jnp.stack([_product(*each, dtype) for each in zip(z.matrix, layers(gradient), strict=True)]).sum(axis=0)

    def add(z: Projection, gradient: Any) -> Projection:
        return z._replace(z=projected.add(z.z, project(z, gradient)))

    def solve(z: Projection, b: jax.Array) -> jax.Array:
        rows = jnp.concatenate([part.reshape(size, -1) for part in z.matrix], axis=1)
        return projected.solve(z.z, rows @ b.astype(dtype)) @ rows

    return Design(
        init,
        lambda z, gradient: projected.width(z.z, project(z, gradient)),
        add,
        lambda z: projected.log_det(z.z),
        solve,
    )


def projection_error(size: int, *, rank: int, failure: float = 0.05) -> float:
    """The largest share by which `random_projection` changes a width, with probability at least 1 - δ.

    Args:
        size: k, to how many dimensions it projects.
        rank: r, that of all gradients together: at most the observations and the direction asked for.
        failure: δ.

    Returns:
        η = (√r + √(2 log(2/δ)))/√k; from 1 on it says nothing about the lower side.

    Raises:
        InputError: For sizes below 1, or a δ that is no probability.

    Example:
        >>> round(projection_error(4000, rank=10), 3)
        0.093
    """
    if size < 1 or rank < 1 or not 0 < failure < 1:
        raise InputError(
            f"size and rank must be at least 1 and failure between 0 and 1, got {size}, {rank} and {failure}."
        )
    return float((np.sqrt(rank) + np.sqrt(2 * np.log(2 / failure))) / np.sqrt(size))


def _dense_shape(layer: Any) -> tuple[int, ...]:
    if isinstance(layer, Block):
        return layer.arms, *_dense_shape(layer.part)
    return (layer.left.shape[0], layer.right.shape[0]) if isinstance(layer, Outer) else layer.shape


def _orthogonal(drawn: jax.Array) -> jax.Array:
    """Orthogonal rows of length √(p/k), as random as the rows drawn."""
    size, total = drawn.shape
    columns, triangle = jnp.linalg.qr(drawn.T)
    signed = columns * jnp.sign(jnp.diagonal(triangle))[None]  # without it rows would not be uniform
    return signed.T * jnp.sqrt(jnp.asarray(total / size, drawn.dtype))


def _split(rows: jax.Array, shapes: Sequence[tuple[int, ...]]) -> tuple[jax.Array, ...]:
    ends = list(accumulate(int(np.prod(shape)) for shape in shapes))[:-1]
    parts = jnp.split(rows, ends, axis=1)
    return tuple(part.reshape(len(rows), *shape) for part, shape in zip(parts, shapes, strict=True))


def _product(matrix: jax.Array, layer: Any, dtype: Any) -> jax.Array:
    """[k] the columns of R that belong to a layer, times its gradient."""
    if isinstance(layer, Block):
        return _product(matrix[:, layer.arm], layer.part, dtype)
    if isinstance(layer, Outer):
        return (matrix @ layer.right.astype(dtype)) @ layer.left.astype(dtype)
    return matrix.reshape(len(matrix), -1) @ dense(layer).astype(dtype)
