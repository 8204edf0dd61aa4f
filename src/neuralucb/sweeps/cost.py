"""Time and memory that a sweep will need: a rough model, measured on one CPU core and one H200."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax

from neuralucb.algorithms import Task, find_algorithm
from neuralucb.problems import Definition, find_problem
from neuralucb.schedules import learning_rounds, read_schedule
from neuralucb.sweeps.batches import NO_STAND_INS, Batch

__all__ = ["Cost", "estimate"]

COMPILING, GPU_COMPILING = 5.0, 8.0
"""Seconds per compiled shape."""

ROUND, BANDWIDTH = 8e-6, 20e9
"""One core: fixed seconds per round; bytes of a belief that are read or written per second."""

STEP, ARITHMETIC = 2e-6, 40e9
"""One core: fixed seconds per training step; operations per second."""

GPU_ROUND, GPU_STEP, GPU_ARITHMETIC = 100e-6, 25e-6, 12e12
"""A GPU runs all lanes at once: fixed seconds per round and per step, and operations per second of all lanes."""

PROCESS, LOADING = 500_000_000, 8
"""Bytes of a process after compiling; and its peak while a data set is read, as a multiple of the data."""


class Cost(NamedTuple):
    """What a sweep needs."""

    seconds: float
    bytes: int
    """per worker: its process; on a GPU: all lanes"""
    of_batch: dict[str, float]
    """seconds per batch, by its name"""


def estimate(
    batches: Sequence[Batch], *, workers: int, gpu: bool, stand_ins: Mapping[str, Definition] = NO_STAND_INS
) -> Cost:
    """Seconds in total and per batch, compiling included, and the memory of the largest batch."""
    largest, of_batch = 0, {}
    shapes: dict[str, tuple[float, int]] = {}
    for batch in batches:
        compiling = 0.0
        if batch.shape not in shapes:
            shapes[batch.shape], compiling = _lane(batch, stand_ins, gpu), GPU_COMPILING if gpu else COMPILING
        lane, memory = shapes[batch.shape]
        of_batch[batch.name] = compiling + (lane if gpu else lane * len(batch.runs))
        largest = max(largest, memory * (len(batch.runs) if gpu else 1))
    return Cost(sum(of_batch.values()) / workers, largest, of_batch)


def _lane(batch: Batch, stand_ins: Mapping[str, Definition], gpu: bool) -> tuple[float, int]:
    """Seconds of one run on a CPU, or of the whole batch on a GPU; bytes of one run."""
    definition = stand_ins.get(batch.problem) or find_problem(batch.problem)
    problem = definition.make(**batch.world)
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
