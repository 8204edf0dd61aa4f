"""Steps by kernels that move blocks in place are the plain ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb.networks import disjoint, mlp
from neuralucb.networks.block_descent import loss_and_move, prepare
from neuralucb.policy import Slot

ARMS, DIM, ROWS, BATCH = 3, 70, 40, 33
STEP_SIZE, PULL = jnp.float32(0.1), jnp.float32(0.3)

NETWORKS = {
    "two layers": lambda: mlp(DIM, width=6),
    "three layers and biases": lambda: mlp(DIM, width=6, depth=3, initialization="uniform", biases=True),
    "the paper's start": lambda: mlp(DIM, width=6, initialization="paper", duplicate=True),
}


def problem(seed):
    """Contexts, the rows of a batch, and their rewards."""
    draw = np.random.default_rng(seed)
    contexts = Slot(
        jnp.asarray(draw.normal(size=(ROWS, DIM)), jnp.float32), jnp.asarray(draw.integers(0, ARMS, ROWS), jnp.int32)
    )
    return contexts, jnp.asarray(draw.integers(0, ROWS, BATCH)), jnp.asarray(draw.normal(size=BATCH), jnp.float32)


def step_in_place(network, params, initial, contexts, rows, rewards, *, interpret=True):
    def loss(params, values):
        return 0.5 * ((values(params) - rewards) ** 2).mean()

    table = prepare(network.apply_many, contexts)
    return loss_and_move(network.apply_many, loss, params, initial, table, rows, STEP_SIZE, PULL, interpret=interpret)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_in_place_is_the_plain_one_in_every_lane(name):
    network = disjoint(NETWORKS[name](), ARMS)
    lanes = [problem(seed) for seed in range(2)]
    params, initial = (jax.vmap(network.init)(jax.random.split(jax.random.key(seed), 2)) for seed in range(2))
    batches = jax.tree.map(lambda *leaves: jnp.stack(leaves), *lanes)

    def plain(params, initial, contexts, rows, rewards):
        def loss(params):
            taken = jax.tree.map(lambda leaf: leaf[rows], contexts)
            return 0.5 * ((jax.vmap(network.apply, (None, 0))(params, taken) - rewards) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        return value, jax.tree.map(lambda w, g, w0: w - STEP_SIZE * (g + PULL * (w - w0)), params, gradient, initial)

    ours = jax.jit(jax.vmap(lambda *given: step_in_place(network, *given)))(params, initial, *batches)
    theirs = jax.jit(jax.vmap(plain))(params, initial, *batches)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_steps_are_built_for_a_gpu_and_move_blocks_where_they_lie():
    network = disjoint(mlp(DIM, width=6), ARMS)
    params = network.init(jax.random.key(0))
    step = jax.jit(lambda *given: step_in_place(network, *given, interpret=False))
    text = step.trace(params, params, *problem(0)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("gpu.triton") == 2
    assert text.count("#stablehlo.output_operand_alias<") == 1
