"""Microseconds of a step of SGD on one row, disjoint contexts, m = 100, in a compiled run and in eager PyTorch.

taskset -c 0 python benchmarks/one_row_steps.py [--seen 2000]

A training of 1000 steps as the preset `uclaml` has it, all that it does included, over its steps; the shortest of
several, by the clock of the processor. PyTorch is `Released` of peers/plain_torch.py, where `make peer-torch` has
installed it; the early end at a small loss is not reached, since rewards are noise.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

SHAPES = {"mnist": (784, 10), "covertype": (54, 7), "shuttle": (9, 7), "magic": (10, 2)}
STEPS, REPEATS = 1000, 5
PEERS = Path(__file__).parent / "peers"
TORCH = PEERS.parent.parent / ".bench" / "torch" / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seen", type=int, default=2000, help="t, the rows observed")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        print(json.dumps({name: time_torch(*shape, options.seen) for name, shape in SHAPES.items()}))
        return
    ours = {name: time_ours(*shape, options.seen) for name, shape in SHAPES.items()}
    theirs = {}
    if TORCH.exists():
        command = [TORCH, __file__, "--torch", "--seen", str(options.seen)]
        theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for name, seconds in ours.items():
        against = f", eager PyTorch {theirs[name]:.0f} µs: {theirs[name] / seconds:.0f} times" if theirs else ""
        print(f"{name}: {seconds:.2f} µs{against}")


def time_ours(dim: int, arms: int, seen: int) -> float:
    import jax
    import jax.numpy as jnp

    from neuralucb.history import History
    from neuralucb.networks import disjoint, mlp
    from neuralucb.policy import Slot
    from neuralucb.training import sgd

    shape = {"width": 100, "biases": True, "scaling": "standard", "initialization": "uniform", "fan_in": dim * arms}
    network = disjoint(mlp(dim, **shape), arms)
    x, arm, rewards = map(jnp.asarray, draw(dim, arms, seen))
    rows = History(Slot(x, arm), rewards, jnp.int32(seen), jnp.int32(seen))
    train = sgd(step_size=0.02, steps=STEPS, batch_size=1, pull=1e-5, rows="passes", early_end=1e-3)
    key, initial = jax.random.key(0), network.init(jax.random.key(1))
    compiled = jax.jit(lambda *given: train(key, network.apply_many, *given)).lower(initial, initial, rows).compile()
    return shortest(lambda: jax.block_until_ready(compiled(initial, initial, rows)))


def time_torch(dim: int, arms: int, seen: int) -> float:
    sys.path.insert(0, str(PEERS))
    import torch
    from plain_torch import Released

    torch.set_num_threads(1)
    player: Any = Released(SimpleNamespace(arms=arms, dim=dim, seed=0))
    x, arm, player.rewards = draw(dim, arms, seen)
    padded = torch.zeros(seen, arms, dim)
    padded[range(seen), arm] = torch.from_numpy(x)
    player.contexts = list(padded.reshape(seen, 1, -1))
    return shortest(player.train)


def draw(dim: int, arms: int, seen: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of norm 1, arms, and rewards that nothing explains."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(seen, dim)).astype(np.float32)
    arm = generator.integers(0, arms, seen).astype(np.int32)
    return x / np.linalg.norm(x, axis=1, keepdims=True), arm, (generator.random(seen) < 0.3).astype(np.float32)


def shortest(work: Callable[[], Any]) -> float:
    """Microseconds per step."""
    work()
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken) / STEPS * 1e6


if __name__ == "__main__":
    main()
