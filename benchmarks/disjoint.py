"""The disjoint encoding at mnist's size, on one core, as ratios in one run: a round and a training step.

taskset -c 0 python benchmarks/disjoint.py [--dim 784 --arms 10 --width 100 --batch 500]

round  select and observe of NeuralUCB with diagonal Z, against reading its weights and its Z once
step   a plain SGD step on rows of all arms, against the same rows through one arm's block
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random

from neuralucb.algorithms import build
from neuralucb.history import History
from neuralucb.networks.encodings import disjoint
from neuralucb.networks.mlp import mlp
from neuralucb.networks.network import Network
from neuralucb.policy import Slot
from neuralucb.training import sgd

ROUNDS, STEPS, ROWS, REPEATS = 200, 50, 15_000, 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("dim", 784), ("arms", 10), ("width", 100), ("batch", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    dim, arms, width, batch = options.dim, options.arms, options.width, options.batch
    reading, playing = time_reading(dim, arms, width), time_round(dim, arms, width)
    print(
        f"round: {playing * 1e6:.0f} µs, reading weights and Z: {reading * 1e6:.0f} µs, {playing / reading:.2f} times"
    )
    slots, rewards = make_rows(dim, arms)
    network = mlp(dim, width=width, scaling="standard")
    one = time_step(network, slots.x, rewards, batch)
    every = time_step(disjoint(network, arms), slots, rewards, batch)
    print(f"step:  {every * 1e3:.2f} ms, through one block: {one * 1e3:.2f} ms, {every / one:.2f} times")


def make_rows(dim: int, arms: int) -> tuple[Slot, jax.Array]:
    key_x, key_arm, key_reward = random.split(random.key(0), 3)
    x = random.normal(key_x, (ROWS, dim)) / dim**0.5
    return Slot(x, random.randint(key_arm, (ROWS,), 0, arms)), random.bernoulli(key_reward, 0.5, (ROWS,)) * 1.0


def time_reading(dim: int, arms: int, width: int) -> float:
    """Weights and Z added up, over and over; both are read each time, since both change in between."""
    sizes = arms * dim * width + width

    def once(_: jax.Array, state: Any) -> Any:
        weights, z, seen = state
        seen = seen + weights.sum() + z.sum()
        return weights.at[0].set(seen), z.at[0].set(seen), seen

    def loop(weights: jax.Array, z: jax.Array) -> Any:
        return lax.fori_loop(0, ROUNDS, once, (weights, z, jnp.float32(0)))

    return best_time(jax.jit(loop), jnp.ones(sizes), jnp.ones(sizes)) / ROUNDS


def time_round(dim: int, arms: int, width: int) -> float:
    policy = build("neural-ucb", dim=dim, shared_by=arms, width=width, design="diagonal")
    slots, _ = make_rows(dim, arms)
    every = jnp.arange(arms, dtype=jnp.int32)

    def once(t: jax.Array, belief: Any) -> Any:
        contexts = Slot(jnp.broadcast_to(slots.x[t], (arms, dim)), every)
        choice = policy.select(random.key(0), belief, contexts)
        return policy.observe(belief, Slot(slots.x[t], choice.arm), jnp.float32(1))

    loop = jax.jit(lambda belief: lax.fori_loop(0, ROUNDS, once, belief))
    return best_time(loop, policy.init(random.key(1))) / ROUNDS


def time_step(network: Network, contexts: Any, rewards: jax.Array, batch: int) -> float:
    train = sgd(step_size=0.1, steps=STEPS, batch_size=batch, pull=1e-3)
    start = network.init(random.key(0))
    history = History(contexts, rewards, jnp.int32(batch), jnp.int32(batch))
    step = jax.jit(lambda weights: train(random.key(1), network.apply_many, weights, weights, history)[0])
    nothing = sgd(step_size=0.1, steps=1, batch_size=batch, pull=1e-3)
    rest = jax.jit(lambda weights: nothing(random.key(1), network.apply_many, weights, weights, history)[0])
    return (best_time(step, start) - best_time(rest, start)) / (STEPS - 1)


def best_time(function: Callable[..., Any], *arguments: Any) -> float:
    """The shortest of several calls, in seconds, without the first, which compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    main()
