"""Kernels for NVIDIA GPUs: products of rows with their own arm's block, and the gradient, one read of each block.

XLA alone computes every arm's product for every row, K times the arithmetic, and writes them all to memory. Here rows
are sorted by arm, and a program of the forward kernel multiplies a tile of rows of one arm by its block; one of the
backward kernel sums the gradient of one piece of a block over all rows of its arm, and, where that is all that is
wanted of it, moves the piece by it in place. `arm_blocks.every_block` computes the same in plain JAX.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas.triton import CompilerParams, dot, load, store

__all__ = ["Batch", "by_kernels", "descend", "multiply", "sort_by_arm"]

TILE = 64
"""Rows that a program of the forward kernel multiplies, and that one of the backward kernel sums at a time."""

STEP = 32
"""Inputs that are multiplied at a time."""

PIECE = 64
"""Columns of a block whose gradient a program of the backward kernel sums."""


def by_kernels(layer: jax.Array, arm: jax.Array, x: jax.Array, *, interpret: bool = False) -> jax.Array:
    """layer[arm[i]] @ x[i] for every row i of a batch.

    Args:
        layer: [K, m, d] one block per arm.
        arm: [B] the arm of each row.
        x: [B, d].
        interpret: Whether to run the kernels step by step in plain JAX, on any device: for tests.
    """
    return _products(interpret, layer, arm, x)


class Batch(NamedTuple):
    """Rows of a table, in order of their arms."""

    order: jax.Array
    """[B] their places in the batch"""
    rows: jax.Array
    """[B] and in the table"""
    first: jax.Array
    """[K] where each arm's rows begin, in this order"""
    end: jax.Array
    """[K] and where they end"""


def sort_by_arm(arm: jax.Array, rows: jax.Array, arms: int) -> Batch:
    """A batch of these rows of a table, each with its arm."""
    counts = (arm[:, None] == jnp.arange(arms, dtype=arm.dtype)[None]).sum(axis=0, dtype=jnp.int32)
    end = jnp.cumsum(counts, dtype=jnp.int32)
    order = jnp.argsort(arm).astype(jnp.int32)
    return Batch(order, rows[order].astype(jnp.int32), end - counts, end)


def multiply(layer: jax.Array, batch: Batch, table: jax.Array, *, interpret: bool = False) -> jax.Array:
    """[B, m] the product of every row of a batch and its arm's block; rows are read where they are in the table."""
    tiles = _tile(batch)
    shape = batch.order.shape[0], layer.shape[1]
    call = _call(_multiply, shape, layer.dtype, tiles.arm.shape, interpret, stages=3)
    return call(tiles.arm, tiles.first, tiles.end, batch.order, batch.rows, layer, table)


def descend(
    layer: jax.Array,
    batch: Batch,
    change: jax.Array,
    table: jax.Array,
    origin: jax.Array,
    step_size: jax.Array,
    pull: jax.Array,
    *,
    interpret: bool = False,
) -> jax.Array:
    """The layer after a step, layer - η (Σ change ⊗ x + pull (layer - origin)): each block is read and written once.

    Args:
        layer: [K, m, d].
        batch: The rows.
        change: [B, m] the derivative of the loss by each row's product.
        table: The contexts.
        origin: [K, m, d] what it is pulled to.
        step_size: η.
        pull: λ/t.
        interpret: As in `by_kernels`.
    """
    grid = (layer.shape[0], pl.cdiv(layer.shape[2], PIECE))
    call = _call(_move, layer.shape, layer.dtype, grid, interpret, in_place=7)
    sizes = jnp.stack([step_size, pull]).astype(layer.dtype)
    return call(batch.first, batch.end, batch.order, batch.rows, change, table, sizes, layer, origin)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _products(interpret: bool, layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    return _forward(interpret, layer, arm, x)[0]


def _forward(interpret: bool, layer: jax.Array, arm: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
    batch = sort_by_arm(arm, jnp.arange(x.shape[0], dtype=jnp.int32), layer.shape[0])
    return multiply(layer, batch, x, interpret=interpret), (layer, arm, x, batch)


def _backward(interpret: bool, kept: Any, change: jax.Array) -> tuple[jax.Array, None, jax.Array]:
    layer, arm, x, batch = kept
    grid = (layer.shape[0], pl.cdiv(layer.shape[2], PIECE))
    call = _call(_sum_outer_products, layer.shape, layer.dtype, grid, interpret)
    gradient = call(batch.first, batch.end, batch.order, batch.rows, change, x)
    return gradient, None, by_kernels(layer.swapaxes(1, 2), arm, change, interpret=interpret)


_products.defvjp(_forward, _backward)


class _Tiles(NamedTuple):
    """Sorted rows, cut into tiles of one arm each; the tiles after the last one are empty."""

    arm: jax.Array
    first: jax.Array
    end: jax.Array


def _tile(batch: Batch) -> _Tiles:
    """As many tiles as there can be: the full ones, and one that is not full for each arm."""
    arms, count = batch.first.shape[0], batch.order.shape[0]
    tiles_of = (batch.end - batch.first + TILE - 1) // TILE
    until = jnp.cumsum(tiles_of, dtype=jnp.int32)
    index = jnp.arange(count // TILE + arms, dtype=jnp.int32)
    arm = jnp.minimum((index[:, None] >= until[None]).sum(axis=1, dtype=jnp.int32), arms - 1)
    first = batch.first[arm] + (index - (until - tiles_of)[arm]) * TILE
    end = jnp.where(index < until[-1], jnp.minimum(batch.end[arm], first + TILE), 0)
    return _Tiles(arm, jnp.where(index < until[-1], first, 0), end)


def _call(
    kernel: Any,
    shape: tuple[int, ...],
    dtype: Any,
    grid: tuple[int, ...],
    interpret: bool,
    *,
    stages: int = 1,
    in_place: int | None = None,
) -> Any:
    """The kernel's call.

    Args:
        kernel: What a program does.
        shape: Of the result.
        dtype: Of the result.
        grid: How many programs.
        interpret: As in `by_kernels`.
        stages: Reads begun ahead in a loop; more than one pays where a loop has many turns.
        in_place: The argument whose memory the result takes.
    """
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, dtype),
        grid=grid,
        interpret=interpret,
        input_output_aliases={} if in_place is None else {in_place: 0},
        compiler_params=None if interpret else CompilerParams(num_warps=4, num_stages=stages),
    )


def _multiply(
    tile_arm: Any, tile_first: Any, tile_end: Any, order: Any, source: Any, layer: Any, x: Any, products: Any
) -> None:
    """products[rows of the tile] = x[rows of the tile] @ layer[arm of the tile]ᵀ"""
    tile = pl.program_id(0)
    first, end = tile_first[tile], tile_end[tile]

    @pl.when(first < end)
    def _() -> None:
        _, width, dim = layer.shape
        here, places = _next(first, end, TILE)
        rows = _numbers(source, here, places, x.shape[0])
        units, unit = _span(0, width, _power_of_two(width))

        def add(step: jax.Array, total: jax.Array) -> jax.Array:
            inputs, has_input = _span(step * STEP, dim, STEP)
            left = _load(x, (rows[:, None], inputs[None]), here[:, None] & has_input[None])
            blocks = (tile_arm[tile], units[:, None], inputs[None])
            return total + dot(left, _load(layer, blocks, unit[:, None] & has_input[None]), trans_b=True)

        start = jnp.zeros((TILE, _power_of_two(width)), jnp.float32)
        total = lax.fori_loop(0, pl.cdiv(dim, STEP), add, start)
        own = _numbers(order, here, places, order.shape[0])
        _store(products, (own[:, None], units[None]), total, here[:, None] & unit[None])


def _sum_outer_products(
    arm_first: Any, arm_end: Any, order: Any, source: Any, change: Any, x: Any, gradient: Any
) -> None:
    """gradient[arm][:, piece] = Σ over the arm's rows of change ⊗ x[piece]"""
    here, piece = _piece(gradient.shape)
    _store(gradient, piece, _gradient(arm_first, arm_end, order, source, change, x, gradient.shape), here)


def _move(
    arm_first: Any,
    arm_end: Any,
    order: Any,
    source: Any,
    change: Any,
    x: Any,
    sizes: Any,
    layer: Any,
    origin: Any,
    moved: Any,
) -> None:
    """moved[arm][:, piece] = the piece after a step; it lies where the layer's does."""
    gradient = _gradient(arm_first, arm_end, order, source, change, x, layer.shape)
    here, piece = _piece(layer.shape)
    before, start = _load(layer, piece, here), _load(origin, piece, here)
    _store(moved, piece, before - sizes[0] * (gradient + sizes[1] * (before - start)), here)


def _piece(shape: tuple[int, ...]) -> tuple[jax.Array, tuple[Any, ...]]:
    """This program's part of a layer, all units of one arm by PIECE inputs, and what of it exists."""
    units, unit = _span(0, shape[1], _power_of_two(shape[1]))
    inputs, has_input = _span(pl.program_id(1) * PIECE, shape[2], PIECE)
    return unit[:, None] & has_input[None], (pl.program_id(0), units[:, None], inputs[None])


def _gradient(
    arm_first: Any, arm_end: Any, order: Any, source: Any, change: Any, x: Any, shape: tuple[int, ...]
) -> jax.Array:
    """Of the piece: Σ over the arm's rows of change ⊗ x[piece]."""
    arm = pl.program_id(0)
    first, end = arm_first[arm], arm_end[arm]
    units, unit = _span(0, shape[1], _power_of_two(shape[1]))
    inputs, has_input = _span(pl.program_id(1) * PIECE, shape[2], PIECE)

    def add(step: jax.Array, total: jax.Array) -> jax.Array:
        here, places = _next(first + step * TILE, end, TILE)
        own, rows = (_numbers(of, here, places, size) for of, size in ((order, change.shape[0]), (source, x.shape[0])))
        left = _load(change, (own[:, None], units[None]), here[:, None] & unit[None])
        right = _load(x, (rows[:, None], inputs[None]), here[:, None] & has_input[None])
        return total + dot(left, right, trans_a=True)

    start = jnp.zeros((_power_of_two(shape[1]), PIECE), jnp.float32)
    return lax.fori_loop(0, (end - first + TILE - 1) // TILE, add, start)


def _next(first: jax.Array, end: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """The next places of the sorted rows, and which of them belong to the same arm."""
    places = first + jnp.arange(size, dtype=jnp.int32)
    return places < end, places


def _numbers(of: Any, here: jax.Array, places: jax.Array, beyond: int) -> jax.Array:
    """What stands in these places; elsewhere a number beyond all rows."""
    return jnp.where(here, _load(of, (places,), here), beyond)


def _span(first: Any, count: int, size: int) -> tuple[jax.Array, jax.Array]:
    """The next places, and which of them exist."""
    places = first + jnp.arange(size, dtype=jnp.int32)
    return places, places < count


def _load(array: Any, places: tuple[Any, ...], mask: jax.Array) -> jax.Array:
    return load(array.at[places], mask=mask, other=jnp.zeros((), array.dtype))


def _store(array: Any, places: tuple[Any, ...], values: jax.Array, mask: jax.Array) -> None:
    store(array.at[places], values.astype(array.dtype), mask=mask)


def _power_of_two(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())
