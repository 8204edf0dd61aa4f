"""How long a sweep will take and what it needs, before it runs: a rough model, measured on one core and one H200."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from neuralucb.algorithms import Task, find_algorithm
from neuralucb.problems import find_problem
from neuralucb.schedules import learning_rounds, read_schedule
from neuralucb.sweeps.batches import Batch

__all__ = ["Cost", "estimate"]

COMPILING, GPU_COMPILING = 5.0, 8.0
"""seconds a shape"""


ROUND, BANDWIDTH = 8e-6, 20e9
"""One core: seconds that a round costs in any case; bytes of a belief that are read or written in a second."""


STEP, ARITHMETIC = 2e-6, 40e9
"""One core: seconds that a training step costs in any case; operations in a second."""


GPU_ROUND, GPU_STEP, GPU_ARITHMETIC = 100e-6, 25e-6, 12e12
"""A GPU plays all lanes at once: a round or a step costs so much in any case, and their arithmetic together."""


PROCESS, LOADING = 500_000_000, 8
"""Bytes of a process that has compiled; and its peak while a data set is read and scaled, in sizes of the result."""


class Cost(NamedTuple):
    """What a sweep asks for."""

    seconds: float
    bytes: int
    """of a worker: its process; of a GPU: what the lanes need there"""
    of_batch: dict[str, float]
    """seconds of each batch, by its name"""


def estimate(batches: Sequence[Batch], *, workers: int, gpu: bool) -> Cost:
    """Seconds in all and of each batch, compiling included, and the memory of the largest."""
    largest, of_batch = 0, {}
    shapes: dict[str, tuple[float, int]] = {}
    for batch in batches:
        compiling = 0.0
        if batch.shape not in shapes:
            shapes[batch.shape], compiling = _lane(batch, gpu), GPU_COMPILING if gpu else COMPILING
        lane, memory = shapes[batch.shape]
        of_batch[batch.name] = compiling + (lane if gpu else lane * len(batch.runs))
        largest = max(largest, memory * (len(batch.runs) if gpu else 1))
    return Cost(sum(of_batch.values()) / workers, largest, of_batch)


def _lane(batch: Batch, gpu: bool) -> tuple[float, int]:
    """Seconds of one run on a CPU, of all of a batch on a GPU; bytes of one run."""
    problem = find_problem(batch.problem).make(**batch.world)
    settings = batch.runs[0].settings
    task = Task(problem.dim, batch.rounds, problem.shared_by)
    with jax.enable_x64(True):
        belief = jax.eval_shape(find_algorithm(batch.algorithm).recipe(task, settings).init, jax.random.key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(belief))
    steps = 0
    if "steps" in settings:
        learns = learning_rounds(read_schedule(batch.schedule), rounds=batch.rounds)
        steps = int(learns.sum()) if settings["steps"] == "t" else len(learns) * settings["steps"]
    weights = settings.get("networks", 1) * settings.get("width", 0) * (problem.dim + settings.get("width", 0))
    operations = 6 * settings.get("batch_size", 0) * weights
    if gpu:
        seconds = batch.rounds * GPU_ROUND + steps * (GPU_STEP + operations * len(batch.runs) / GPU_ARITHMETIC)
    else:
        step = STEP * settings.get("networks", 1) + operations / ARITHMETIC
        seconds = batch.rounds * (ROUND + 3 * size / BANDWIDTH) + steps * step
    history = batch.rounds * (problem.dim + 1) * 4
    data = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(problem.data))
    return seconds, size + history + (0 if gpu else PROCESS + LOADING * data)
