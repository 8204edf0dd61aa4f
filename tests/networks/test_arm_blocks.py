"""Products with one arm's block: whatever the way, they are those of the rows one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.networks.arm_blocks import block_product, every_block, padded, row_products, tiled
from neuralucb.networks.arm_kernels import by_kernels

ARMS, WIDTH, DIM = 5, 6, 7


def layer_and_rows(arms_of_rows, seed=0):
    generator = np.random.default_rng(seed)
    layer = generator.normal(size=(ARMS, WIDTH, DIM)).astype(np.float32)
    x = generator.normal(size=(len(arms_of_rows), DIM)).astype(np.float32)
    return jnp.asarray(layer), jnp.asarray(arms_of_rows, jnp.int32), jnp.asarray(x)


def one_by_one(layer, arm, x):
    return np.stack([np.asarray(layer)[a] @ row for a, row in zip(np.asarray(arm), np.asarray(x), strict=True)])


BATCHES = {
    "all arms": np.random.default_rng(1).integers(0, ARMS, 100),
    "one arm only": np.full(100, 3),
    "last arm only": np.full(64, ARMS - 1),
    "an arm missing": np.random.default_rng(2).integers(0, ARMS - 1, 77),
    "full tiles": np.repeat(np.arange(ARMS), 16),
    "one row": np.array([2]),
    "more arms than rows": np.array([4, 0]),
    "skewed": np.concatenate([np.zeros(300, int), np.arange(ARMS)]),
}


def interpreted(layer, arm, x):
    """The kernels of a GPU, run step by step."""
    return by_kernels(layer, arm, x, interpret=True)


@pytest.mark.parametrize("way", [tiled, every_block, padded, interpreted, row_products])
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_products_and_gradients_are_those_of_the_rows_one_by_one(way, batch):
    layer, arm, x = layer_and_rows(batch)
    assert_allclose(jax.jit(way)(layer, arm, x), one_by_one(layer, arm, x), rtol=1e-5, atol=1e-5)

    def loss(product, layer, x):
        return (product(layer, arm, x) ** 2 * jnp.arange(1, WIDTH + 1, dtype=jnp.float32)[None]).sum()

    def plain(layer, arm, x):
        return jnp.einsum("bmd,bd->bm", layer[arm], x)

    gradient = jax.jit(jax.grad(loss, (1, 2)), static_argnums=0)
    for ours, theirs in zip(*(gradient(f, layer, x) for f in (way, plain)), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("way", [tiled, interpreted])
def test_tiles_work_side_by_side(way):
    batches = [layer_and_rows(np.random.default_rng(seed).integers(0, ARMS, 60), seed) for seed in range(3)]
    layers, arms, rows = (jnp.stack(part) for part in zip(*batches, strict=True))
    gradient = jax.grad(lambda layer, arm, x: (way(layer, arm, x) ** 2).sum())
    together, alone = jax.jit(jax.vmap(gradient))(layers, arms, rows), jax.jit(gradient)
    for index, batch in enumerate(batches):
        assert_allclose(together[index], alone(*batch), rtol=1e-5, atol=1e-5)


def test_the_kernels_are_built_for_a_gpu_also_for_lanes_of_lanes():
    gradient = jax.grad(lambda layer, arm, x: (by_kernels(layer, arm, x) ** 2).sum())
    shapes = ((2, 3, ARMS, WIDTH, DIM), "float32"), ((2, 3, 40), "int32"), ((2, 3, 40, DIM), "float32")
    arguments = [jax.ShapeDtypeStruct(*shape) for shape in shapes]
    lowered = jax.jit(jax.vmap(jax.vmap(gradient))).trace(*arguments).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count("gpu.triton") == 2


@pytest.mark.parametrize("arms", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 1, 1, 1, 1], [2], [0, 4, 2, 1, 0, 3]])
def test_a_choice_among_any_arms_in_any_order(arms):
    layer, arm, x = layer_and_rows(arms)
    by_rows = jax.jit(jax.vmap(block_product, (None, 0, 0)))
    assert_allclose(by_rows(layer, arm, x), one_by_one(layer, arm, x), rtol=1e-5)
    shared = jax.jit(jax.vmap(block_product, (None, 0, None)))(layer, arm, x[0])
    assert_allclose(shared, one_by_one(layer, arm, jnp.broadcast_to(x[0], x.shape)), rtol=1e-5)
    lanes = jnp.stack([layer, 2 * layer])
    nested = jax.jit(jax.vmap(by_rows, (0, None, None)))(lanes, arm, x)
    assert_allclose(nested[1], 2 * one_by_one(layer, arm, x), rtol=1e-5)
    each = jax.jit(jax.vmap(block_product))(jnp.broadcast_to(layer, (len(arms), *layer.shape)), arm, x)
    assert_allclose(each, one_by_one(layer, arm, x), rtol=1e-5)
    rows = jax.jit(jax.vmap(block_product, (None, None, 0)))(layer, arm[0], x)
    assert_allclose(rows, x @ layer[arm[0]].T, rtol=1e-5)
