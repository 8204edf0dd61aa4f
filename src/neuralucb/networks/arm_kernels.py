"""Kernels for NVIDIA GPUs: products of rows with their own arm's block, and the gradient, one read of each block.

XLA alone computes every arm's product for every row, K times the arithmetic, and writes them all to memory. Here rows
are sorted by arm, and a program of the forward kernel multiplies a tile of rows of one arm by its block; one of the
backward kernel sums the gradient of one piece of a block over all rows of its arm. `arm_blocks.every_block` computes
the same in plain JAX.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas.triton import CompilerParams, dot, load, store

__all__ = ["by_kernels"]

TILE = 64
"""Rows that a program of the forward kernel multiplies."""

STEP = 32
"""Inputs, or rows, that are multiplied at a time."""

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


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _products(interpret: bool, layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    return _forward(interpret, layer, arm, x)[0]


def _forward(interpret: bool, layer: jax.Array, arm: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
    sorted_rows = _sort(arm, layer.shape[0])
    tiles = _tile(sorted_rows, x.shape[0])
    call = _call(_multiply, (x.shape[0], layer.shape[1]), layer.dtype, (tiles.arm.shape[0],), interpret)
    return call(tiles.arm, tiles.first, tiles.end, sorted_rows.order, layer, x), (layer, arm, x, sorted_rows)


def _backward(interpret: bool, kept: Any, change: jax.Array) -> tuple[jax.Array, None, jax.Array]:
    layer, arm, x, sorted_rows = kept
    grid = (layer.shape[0], pl.cdiv(layer.shape[2], PIECE))
    call = _call(_sum_outer_products, layer.shape, layer.dtype, grid, interpret)
    gradient = call(sorted_rows.first, sorted_rows.end, sorted_rows.order, change, x)
    return gradient, None, by_kernels(layer.swapaxes(1, 2), arm, change, interpret=interpret)


_products.defvjp(_forward, _backward)


class _Sorted(NamedTuple):
    """Rows in order of their arms."""

    order: jax.Array
    """[B] rows of the batch"""
    first: jax.Array
    """[K] where each arm's rows begin, in sorted rows"""
    end: jax.Array
    """[K] and where they end"""


class _Tiles(NamedTuple):
    """Sorted rows, cut into tiles of one arm each; the tiles after the last one are empty."""

    arm: jax.Array
    first: jax.Array
    end: jax.Array


def _sort(arm: jax.Array, arms: int) -> _Sorted:
    counts = (arm[:, None] == jnp.arange(arms, dtype=arm.dtype)[None]).sum(axis=0, dtype=jnp.int32)
    end = jnp.cumsum(counts, dtype=jnp.int32)
    return _Sorted(jnp.argsort(arm).astype(jnp.int32), end - counts, end)


def _tile(rows: _Sorted, count: int) -> _Tiles:
    """As many tiles as there can be: the full ones, and one that is not full for each arm."""
    arms = rows.first.shape[0]
    tiles_of = (rows.end - rows.first + TILE - 1) // TILE
    until = jnp.cumsum(tiles_of, dtype=jnp.int32)
    index = jnp.arange(count // TILE + arms, dtype=jnp.int32)
    arm = jnp.minimum((index[:, None] >= until[None]).sum(axis=1, dtype=jnp.int32), arms - 1)
    first = rows.first[arm] + (index - (until - tiles_of)[arm]) * TILE
    end = jnp.where(index < until[-1], jnp.minimum(rows.end[arm], first + TILE), 0)
    return _Tiles(arm, jnp.where(index < until[-1], first, 0), end)


def _call(kernel: Any, shape: tuple[int, ...], dtype: Any, grid: tuple[int, ...], interpret: bool) -> Any:
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(shape, dtype),
        grid=grid,
        interpret=interpret,
        compiler_params=None if interpret else CompilerParams(num_warps=4, num_stages=3),
    )


def _multiply(tile_arm: Any, tile_first: Any, tile_end: Any, order: Any, layer: Any, x: Any, products: Any) -> None:
    """products[rows of the tile] = x[rows of the tile] @ layer[arm of the tile]ᵀ"""
    tile = pl.program_id(0)
    first, end = tile_first[tile], tile_end[tile]

    @pl.when(first < end)
    def _() -> None:
        _, width, dim = layer.shape
        here, rows = _rows(order, first, end, TILE)
        units, unit = _span(0, width, _power_of_two(width))

        def add(step: jax.Array, total: jax.Array) -> jax.Array:
            inputs, has_input = _span(step * STEP, dim, STEP)
            left = _load(x, (rows[:, None], inputs[None]), here[:, None] & has_input[None])
            blocks = (tile_arm[tile], units[:, None], inputs[None])
            return total + dot(left, _load(layer, blocks, unit[:, None] & has_input[None]), trans_b=True)

        start = jnp.zeros((TILE, _power_of_two(width)), jnp.float32)
        total = lax.fori_loop(0, pl.cdiv(dim, STEP), add, start)
        _store(products, (rows[:, None], units[None]), total, here[:, None] & unit[None])


def _sum_outer_products(arm_first: Any, arm_end: Any, order: Any, change: Any, x: Any, gradient: Any) -> None:
    """gradient[arm][:, piece] = Σ over the arm's rows of change ⊗ x[piece]"""
    arm = pl.program_id(0)
    first, end = arm_first[arm], arm_end[arm]
    _, width, dim = gradient.shape
    units, unit = _span(0, width, _power_of_two(width))
    inputs, has_input = _span(pl.program_id(1) * PIECE, dim, PIECE)

    def add(step: jax.Array, total: jax.Array) -> jax.Array:
        here, rows = _rows(order, first + step * STEP, end, STEP)
        left = _load(change, (rows[:, None], units[None]), here[:, None] & unit[None])
        right = _load(x, (rows[:, None], inputs[None]), here[:, None] & has_input[None])
        return total + dot(left, right, trans_a=True)

    start = jnp.zeros((_power_of_two(width), PIECE), jnp.float32)
    total = lax.fori_loop(0, (end - first + STEP - 1) // STEP, add, start)
    _store(gradient, (arm, units[:, None], inputs[None]), total, unit[:, None] & has_input[None])


def _rows(order: Any, first: jax.Array, end: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Which of the next sorted rows belong to the same arm, and their numbers in the batch; others are beyond it."""
    places = first + jnp.arange(size, dtype=jnp.int32)
    here = places < end
    return here, jnp.where(here, _load(order, (places,), here), order.shape[0])


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
