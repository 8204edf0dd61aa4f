"""Where the time of a minibatch step of Adam goes, by the clock of the processor, as shares of one run.

taskset -c 0 python benchmarks/adam_steps.py

default  NeuralMix's networks, 128 × 3, 64 rows, three lanes, one context per arm
shuttle  m = 100, L = 2, 32 rows, disjoint contexts; covertype likewise

`by hand` is the same step written out for one flat vector of parameters: what optax and pytrees cost. Trainings of 2
steps are subtracted from those of 102, so that what a training costs beside its steps does not count.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax, random
from jax.flatten_util import ravel_pytree

from neuralucb.history import History
from neuralucb.networks import Network, disjoint, mlp
from neuralucb.policy import Slot
from neuralucb.training import CHUNK, draw_rows, sgd

SEEN, STEPS, REPEATS, ETA, PULL = 2000, 100, 7, 1e-3, 0.3
SHAPE: dict[str, Any] = {"width": 100, "scaling": "standard", "biases": True, "initialization": "uniform"}


def main() -> None:
    print("µs per step and lane    all  by hand  gradient  rows")
    report("default", mlp(20, width=128, depth=3, scaling="standard"), make_rows(20), batch=64, lanes=3)
    for name, dim, arms in (("shuttle", 9, 7), ("covertype", 54, 7)):
        report(name, disjoint(mlp(dim, **SHAPE), arms), make_rows(dim, arms), batch=32, lanes=1)


def report(name: str, network: Network, rows: History, *, batch: int, lanes: int) -> None:
    def train(steps: int) -> Callable[..., Any]:
        optimizer = optax.adam(jnp.float32(ETA))
        walk = sgd(step_size=ETA, steps=steps, batch_size=batch, pull=PULL, optimizer=optimizer, decay="linear")
        return lambda key, params: walk(key, network.apply_many, params, params, rows)[0]

    def loss(params: Any, chosen: jax.Array) -> jax.Array:
        values = network.apply_many(params, jax.tree.map(lambda leaf: leaf[chosen], rows.contexts))
        return 0.5 * ((values - rows.rewards[chosen]) ** 2).mean()

    def loop(steps: int, step: Callable[[jax.Array, jax.Array, Any], Any]) -> Callable[..., Any]:
        """As the library's: rows are drawn for several steps at once."""

        def run(key: jax.Array, params: Any) -> Any:
            def chunk(index: jax.Array, state: Any) -> Any:
                drawn = draw_rows(random.fold_in(key, index), (CHUNK, batch), rows.seen)
                here = jnp.minimum(CHUNK, steps - index * CHUNK)
                return lax.fori_loop(0, here, lambda j, inner: step(index * CHUNK + j, drawn[j], inner), state)

            flat = ravel_pytree(params)[0]
            return lax.fori_loop(0, -(-steps // CHUNK), chunk, (flat, jnp.zeros_like(flat), jnp.zeros_like(flat)))

        return run

    initial = network.init(random.key(0))
    start, unravel = ravel_pytree(initial)

    def by_hand(steps: int) -> Callable[..., Any]:
        def step(index: jax.Array, chosen: jax.Array, state: Any) -> Any:
            flat, m, v = state
            gradient = ravel_pytree(jax.grad(loss)(unravel(flat), chosen))[0] + PULL / SEEN * (flat - start)
            t = index.astype(flat.dtype) + 1
            m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
            eta = ETA * (1 - (t - 1) / steps) / (1 - 0.9**t)
            return flat - eta * m / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v

        return loop(steps, step)

    def gradient_alone(index: jax.Array, chosen: jax.Array, state: Any) -> Any:
        return (ravel_pytree(jax.grad(loss)(unravel(state[0]), chosen))[0] * 1e-9 + start, *state[1:])

    def rows_alone(index: jax.Array, chosen: jax.Array, state: Any) -> Any:
        leaves = jax.tree.leaves(jax.tree.map(lambda leaf: leaf[chosen], rows.contexts))
        return (state[0] + leaves[0].sum(), *state[1:])

    ways = [train, by_hand, lambda steps: loop(steps, gradient_alone), lambda steps: loop(steps, rows_alone)]
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * lanes), initial)
    keys = random.split(random.key(1), lanes)

    def measured(way: Callable[[int], Callable[..., Any]]) -> float:
        many, few = (seconds(way(steps), keys, stacked, lanes) for steps in (STEPS + 2, 2))
        return (many - few) / STEPS / lanes * 1e6

    print(f"{name:20}" + "".join(f"{measured(way):8.1f}" for way in ways), flush=True)


def seconds(function: Callable[..., Any], keys: jax.Array, params: Any, lanes: int) -> float:
    """The shortest of several, compiled; one lane without `vmap`, as runs have it."""
    if lanes == 1:
        keys, params = keys[0], jax.tree.map(lambda leaf: leaf[0], params)
    compiled = jax.jit(jax.vmap(function) if lanes > 1 else function).lower(keys, params).compile()
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        jax.block_until_ready(compiled(keys, params))
        taken.append(time.process_time() - began)
    return min(taken)


def make_rows(dim: int, arms: int | None = None) -> History:
    generator, count = np.random.default_rng(0), jnp.int32(SEEN)
    x = jnp.asarray(generator.normal(size=(SEEN, dim)), jnp.float32)
    rewards = jnp.asarray(generator.random(SEEN), jnp.float32)
    arm = jnp.asarray(generator.integers(0, arms or 1, SEEN), jnp.int32)
    return History(x if arms is None else Slot(x, arm), rewards, count, count)


if __name__ == "__main__":
    main()
