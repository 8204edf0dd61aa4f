"""Speed of the synthetic setting on one core, as ratios in one process. PyTorch is optional, for the comparison.

taskset -c 0 python benchmarks/speed.py
"""

import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb import run, run_grid
from neuralucb.history import History
from neuralucb.networks.mlp import mlp
from neuralucb.training import sgd

ROWS, DIM, WIDTH, BATCH, STEPS = 5000, 20, 20, 50, 20_000
GENERATOR = np.random.default_rng(0)
CONTEXTS = (GENERATOR.normal(size=(ROWS, DIM)) / np.sqrt(DIM)).astype(np.float32)
REWARDS = GENERATOR.normal(size=ROWS).astype(np.float32)


def best_of(times, call):
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def our_step():
    """Seconds of one SGD step inside a compiled training."""
    network = mlp(DIM, width=WIDTH)
    train = sgd(step_size=0.01, steps=STEPS, batch_size=BATCH, pull=float(WIDTH))
    start = network.init(jax.random.key(0))
    history = History(jnp.asarray(CONTEXTS), jnp.asarray(REWARDS), jnp.int32(ROWS), jnp.int32(ROWS))
    compiled = jax.jit(lambda key, params: train(key, network.apply_many, params, start, history))
    jax.block_until_ready(compiled(jax.random.key(1), start))
    return best_of(5, lambda: jax.block_until_ready(compiled(jax.random.key(1), start))) / STEPS


def torch_step():
    """Seconds of the same step in eager PyTorch, with autograd; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    contexts, rewards = torch.from_numpy(CONTEXTS), torch.from_numpy(REWARDS)
    first = (torch.randn(WIDTH, DIM) * (2 / WIDTH) ** 0.5).requires_grad_()
    last = (torch.randn(WIDTH) * (1 / WIDTH) ** 0.5).requires_grad_()
    weights, initial = [first, last], [first.detach().clone(), last.detach().clone()]
    optimizer = torch.optim.SGD(weights, lr=0.01)

    def step():
        rows = torch.randint(0, ROWS, (BATCH,))
        values = WIDTH**0.5 * (torch.relu(contexts[rows] @ first.T) @ last)
        pull = sum(((now - start) ** 2).sum() for now, start in zip(weights, initial, strict=True))
        loss = 0.5 * ((values - rewards[rows]) ** 2).mean() + WIDTH / ROWS * 0.5 * pull
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(200):
        step()
    return best_of(5, lambda: [step() for _ in range(1000)]) / 1000


def whole_runs():
    """Seconds of a run over growing T, beside its rounds and SGD steps."""
    for rounds in (2500, 5000, 10_000):
        result = run("neural-ucb", "h1", rounds=rounds, seeds=1, step_size=0.1)
        steps = sum(range(50, rounds + 1, 50))
        yield rounds, steps, result.seconds, result.compile_seconds


def grid():
    """Compilations and peak memory of the paper's grid of 12 settings × 10 seeds, at 2000 rounds."""
    began = time.perf_counter()
    values = {"exploration": [0.01, 0.1, 1, 10], "step_size": [0.001, 0.01, 0.1]}
    results = run_grid("neural-ucb", "h1", values, rounds=2000, seeds=10)
    programs = {result.compile_seconds for result in results}  # settings of one program share its time
    return len(results), len(programs), time.perf_counter() - began


def main():
    print(f"{jax.devices()[0].device_kind}, {len(os.sched_getaffinity(0))} core(s), jax {jax.__version__}", flush=True)
    ours, theirs = our_step(), torch_step()
    print(f"SGD step, compiled: {ours * 1e6:.1f} µs", flush=True)
    if theirs is None:
        print("SGD step, eager PyTorch: not measured, PyTorch is not installed")
    else:
        print(f"SGD step, eager PyTorch: {theirs * 1e6:.0f} µs, ratio {theirs / ours:.0f}", flush=True)
    first = None
    for rounds, steps, seconds, compiling in whole_runs():
        first = first or (rounds, steps, seconds)
        growth = f"time ×{seconds / first[2]:.1f}, steps ×{steps / first[1]:.1f}, rounds ×{rounds / first[0]:.1f}"
        print(f"run, T = {rounds}: {seconds:.2f} s + {compiling:.1f} s compiling; {growth}", flush=True)
    settings, programs, seconds = grid()
    print(
        f"grid of {settings} settings × 10 seeds, T = 2000: {programs} program compiled, {seconds:.1f} s in all",
        flush=True,
    )
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
