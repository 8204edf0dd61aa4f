"""A training step on a GPU, per lane, at the sizes of the paper's data sets: ways to multiply rows by arms' blocks.

python benchmarks/gpu_steps.py [--lanes 64,256] [--steps 300]

every block  XLA alone: all arms' products for every row
padded       the rows as (0, …, x, …, 0)
kernels      rows sorted by arm, one program per tile (networks/arm_kernels.py)
in place     the same, rows read where they are, blocks moved by their gradient at once (networks/block_descent.py)

Limits beside them: the bytes that must be moved (θ read twice and written, θ_0 read, the rows read twice) at the speed
of a large copy, measured here.
"""

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.experiments.lanes import compile_loops
from neuralucb.history import History
from neuralucb.networks import arm_blocks, block_descent, encodings
from neuralucb.networks.arm_kernels import by_kernels
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.training import sgd

SIZES = {"mnist": (784, 10), "covertype": (54, 7), "shuttle": (9, 7), "magic": (10, 2)}
WIDTH, BATCH, ROWS, REPEATS = 100, 500, 2000, 3


WAYS = {"every block": arm_blocks.every_block, "padded": arm_blocks.padded, "kernels": by_kernels, "in place": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", default="64,256")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    copy = copy_speed()
    print(f"a large copy: {copy / 1e12:.2f} TB/s", flush=True)
    for name, (dim, arms) in SIZES.items():
        for lanes in (int(part) for part in options.lanes.split(",")):
            moved = 4 * (4 * (arms * dim * WIDTH + WIDTH) + 2 * BATCH * dim)
            cells = [f"{name}, {lanes} lanes: limit {moved / copy * 1e6:.2f} µs"]
            reference = None
            for way, product in WAYS.items():
                seconds, trained = time_steps(product, dim, arms, lanes, options.steps)
                reference = trained if reference is None else reference
                apart = np.abs(trained - reference).max() / np.abs(reference).max()
                cells.append(f"{way} {seconds * 1e6 / lanes:.2f} µs per lane (apart by {apart:.0e})")
                print("; ".join(cells), flush=True)


def time_steps(product: Any, dim: int, arms: int, lanes: int, steps: int) -> tuple[float, np.ndarray]:
    """Seconds per step of all lanes, and the weights of the first lane after them."""
    block_descent.is_worthwhile = lambda *_: product is None
    encodings.row_products = product or by_kernels
    network = encodings.disjoint(mlp(dim, width=WIDTH), arms)
    train = sgd(step_size=0.01, steps=steps, batch_size=BATCH, pull=0.1)
    keys = random.split(random.key(0), lanes)

    def one(key: jax.Array) -> tuple[Any, History]:
        key_x, key_arm, key_reward, key_init = random.split(key, 4)
        slots = Slot(random.normal(key_x, (ROWS, dim)) / dim**0.5, random.randint(key_arm, (ROWS,), 0, arms))
        rewards = random.bernoulli(key_reward, 0.5, (ROWS,)) * jnp.float32(1)
        return network.init(key_init), History(slots, rewards, jnp.int32(ROWS), jnp.int32(ROWS))

    def many(keys: jax.Array, params: Any, history: History) -> Any:
        axes = (0, 0, History(0, 0, 0, None))
        rounds = history.rounds[0]
        return jax.vmap(lambda key, w, h: train(key, network.apply_many, w, w, h)[0], axes)(
            keys, params, history._replace(rounds=rounds)
        )

    params, history = jax.jit(jax.vmap(one))(keys)
    compiled = compile_loops(jax.jit(many).lower(keys, params, history))
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        trained = jax.block_until_ready(compiled(keys, params, history))
        times.append(time.perf_counter() - started)
    return min(times) / steps, np.asarray(trained[0][0])


def copy_speed() -> float:
    """Bytes per second, read and written, of an array too large for any cache."""
    array = jnp.ones(2**30, jnp.float32)
    double = jax.jit(lambda x: 2 * x)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        jax.block_until_ready(double(array))
        times.append(time.perf_counter() - started)
    return 2 * array.nbytes / min(times)


if __name__ == "__main__":
    main()
