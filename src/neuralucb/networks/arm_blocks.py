"""Products with one arm's block of a layer, for the disjoint encoding: (0, …, x, …, 0) is never built."""

from contextlib import suppress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["block_product", "every_block", "has_kernels", "is_short", "padded", "row_products", "tiled"]

LARGEST_TILE = 64


@jax.custom_batching.custom_vmap
def block_product(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    """layer[arm] @ x. For all arms in order, as in a choice among all arms, it copies nothing."""
    return layer[arm] @ x


@block_product.def_vmap
def _block_products(size: int, batched: Any, layer: jax.Array, arm: jax.Array, x: jax.Array) -> tuple[jax.Array, bool]:
    def by_rows(rows: jax.Array) -> jax.Array:
        return jax.vmap(jnp.matmul, (0, 0 if batched[2] else None))(rows, x)

    if batched[0]:
        return by_rows(jax.vmap(lambda one, which: one[which], (0, 0 if batched[1] else None))(layer, arm)), True
    if not batched[1]:
        return jax.vmap(lambda one: layer[arm] @ one)(x), True
    if size != layer.shape[0]:
        return by_rows(layer[arm]), True
    in_order = (arm == jnp.arange(size, dtype=arm.dtype)).all()
    return lax.cond(in_order, lambda: by_rows(layer), lambda: by_rows(layer[arm])), True


def row_products(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    """layer[arm[i]] @ x[i] for every row i of a batch: for training.

    Where (0, …, x, …, 0) is no longer than a hidden layer, rows are padded with zeros. Else on a CPU they are sorted by
    arm and multiplied in tiles of one arm each, and on an NVIDIA GPU multiplied by the kernels of `arm_kernels`.
    Elsewhere, and where tiles would save little, every block is computed for every row and one is kept: `arms` times
    the arithmetic, in one large product.
    """
    arms, rows = layer.shape[0], x.shape[0]
    if jax.default_backend() == "gpu":
        on_cuda = padded if is_short(layer) else _kernels() if has_kernels(layer) else every_block
        return lax.platform_dependent(layer, arm, x, cpu=tiled, cuda=on_cuda, default=every_block)
    size = _tile_size(rows, arms)
    if not is_short(layer) and 2 * size * _tile_count(rows, arms, size) > arms * rows:
        return every_block(layer, arm, x)
    return lax.platform_dependent(layer, arm, x, cpu=padded if is_short(layer) else tiled, default=every_block)


def is_short(layer: jax.Array) -> bool:
    """Whether (0, …, x, …, 0) is no longer than a hidden layer."""
    arms, width, dim = layer.shape
    return arms * dim <= width


def has_kernels(layer: jax.Array) -> bool:
    """Whether `arm_kernels` can multiply by this layer: they need Pallas for Triton, which JAX calls experimental."""
    with suppress(ImportError):
        return bool(_kernels() and layer.dtype == jnp.float32)
    return False


def every_block(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    """`row_products` by computing every block for every row."""
    every = jnp.einsum("kmd,bd->bkm", layer, x)
    return jnp.take_along_axis(every, arm[:, None, None], axis=1)[:, 0]


def padded(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    """`row_products` by building (0, …, x, …, 0): less to write than every block where x is shorter than the layer."""
    arms, width, dim = layer.shape
    own = (arm[:, None] == jnp.arange(arms, dtype=arm.dtype)[None])[:, :, None]
    rows = jnp.where(own, x[:, None], jnp.zeros((), x.dtype)).reshape(-1, arms * dim)
    return rows @ layer.swapaxes(1, 2).reshape(arms * dim, width)


def tiled(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    """`row_products` by sorting rows into tiles of one arm each."""
    return _tiled(layer, arm, x)


def _kernels() -> Any:
    """Imported on request, since only a GPU runs them."""
    from neuralucb.networks.arm_kernels import by_kernels

    return by_kernels


@jax.custom_vjp
def _tiled(layer: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    return _forward(layer, arm, x)[0]


def _forward(layer: jax.Array, arm: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
    size = _tile_size(x.shape[0], layer.shape[0])
    tiles = _tile(arm, layer.shape[0], size)
    padded = _sorted(x, tiles, size)

    def multiply(index: jax.Array, products: jax.Array) -> jax.Array:
        def part() -> jax.Array:
            return _rows_of(padded, tiles, index, size) @ layer[tiles.arm[index]].T

        # a tile may reach into the rows of the next arm, whose tile then overwrites them
        product = _unless_empty(part, tiles, index)
        return lax.dynamic_update_slice_in_dim(products, product, tiles.first[index], axis=0)

    room = jnp.zeros((padded.shape[0], layer.shape[1]), layer.dtype)
    products = lax.fori_loop(jnp.int32(0), jnp.int32(tiles.arm.shape[0]), multiply, room)
    in_place = jnp.zeros((x.shape[0], layer.shape[1]), layer.dtype)
    in_place = in_place.at[tiles.order].set(products[: x.shape[0]], unique_indices=True)
    return in_place, (layer, arm, padded, tiles)


def _backward(kept: Any, change: jax.Array) -> tuple[jax.Array, None, jax.Array]:
    layer, arm, padded, tiles = kept
    size = padded.shape[0] - change.shape[0]
    changes = _sorted(change, tiles, size)

    def add(index: jax.Array, total: jax.Array) -> jax.Array:
        def part() -> jax.Array:
            valid = jnp.arange(size, dtype=jnp.int32) < tiles.rows[index]
            here = jnp.where(valid[:, None], _rows_of(changes, tiles, index, size), jnp.zeros((), changes.dtype))
            return here.T @ _rows_of(padded, tiles, index, size)

        return total.at[tiles.arm[index]].add(_unless_empty(part, tiles, index))

    gradient = lax.fori_loop(jnp.int32(0), jnp.int32(tiles.arm.shape[0]), add, jnp.zeros_like(layer))
    return gradient, None, tiled(layer.swapaxes(1, 2), arm, change)


_tiled.defvjp(_forward, _backward)


class _Tiles(NamedTuple):
    """Rows in order of their arms, cut into tiles of one arm each; the tiles after the last one are empty."""

    order: jax.Array
    """[B] rows of the batch, sorted by arm"""
    arm: jax.Array
    """[tiles]"""
    first: jax.Array
    """[tiles] where each begins, in sorted rows"""
    rows: jax.Array
    """[tiles] how many of its rows belong to its arm"""


def _tile(arm: jax.Array, arms: int, size: int) -> _Tiles:
    every = jnp.arange(arms, dtype=arm.dtype)
    counts = (arm[:, None] == every[None]).sum(axis=0, dtype=jnp.int32)
    tiles_of = (counts + size - 1) // size
    rows_before, tiles_to = jnp.cumsum(counts) - counts, jnp.cumsum(tiles_of)
    index = jnp.arange(_tile_count(arm.shape[0], arms, size), dtype=jnp.int32)
    owner = jnp.minimum((index[:, None] >= tiles_to[None]).sum(axis=1, dtype=jnp.int32), arms - 1)
    done = (index - (tiles_to - tiles_of)[owner]) * size
    rows = jnp.where(index < tiles_to[-1], jnp.minimum(counts[owner] - done, size), 0)
    first = jnp.where(index < tiles_to[-1], rows_before[owner] + done, arm.shape[0])
    return _Tiles(jnp.argsort(arm), owner, first, rows)


def _tile_size(rows: int, arms: int) -> int:
    """The power of two from 8 to LARGEST_TILE that holds the rows of an average arm."""
    size = 8
    while size < LARGEST_TILE and size * arms < rows:
        size *= 2
    return size


def _tile_count(rows: int, arms: int, size: int) -> int:
    """The most tiles there can be: the full ones, and one that is not full for each arm."""
    return rows // size + arms


def _sorted(rows: jax.Array, tiles: _Tiles, size: int) -> jax.Array:
    """The rows in order of their arms, and room for a tile that reaches beyond the last."""
    return jnp.concatenate([rows[tiles.order], jnp.zeros((size, rows.shape[1]), rows.dtype)])


def _rows_of(rows: jax.Array, tiles: _Tiles, index: jax.Array, size: int) -> jax.Array:
    return lax.dynamic_slice_in_dim(rows, tiles.first[index], size)


def _unless_empty(part: Any, tiles: _Tiles, index: jax.Array) -> jax.Array:
    shape = jax.eval_shape(part)
    return lax.cond(tiles.rows[index] > 0, part, lambda: jnp.zeros(shape.shape, shape.dtype))
