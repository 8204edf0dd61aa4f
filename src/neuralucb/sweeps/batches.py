"""Batches: the runs of a sweep that share a compiled shape, cut into pieces of work; and how one is run."""

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.points import find_bundle, read_point, shape_of
from neuralucb.experiments.program import Lanes, Program, Progress
from neuralucb.problems import find_problem
from neuralucb.sweeps.spec import Sweep

__all__ = ["Batch", "Outcome", "make_batches", "run_batch"]

CURVE_POINTS = 1000
"""The most points kept of a regret curve."""


@dataclass(frozen=True)
class Run:
    """One lane: complete settings of the algorithm, and a seed."""

    settings: dict[str, Any]
    swept: dict[str, Any]
    """those of them that the sweep varies"""
    seed: int


@dataclass(frozen=True)
class Batch:
    """Runs of one compiled shape; plain data."""

    algorithm: str
    problem: str
    world: dict[str, Any]
    """settings of the problem"""
    rounds: int
    schedule: str
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """A name that says what the batch holds: equal batches, equal names."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{self.algorithm}-{self.problem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Outcome:
    """What came of a batch; one entry a run."""

    final_regret: np.ndarray
    curves: np.ndarray
    """[runs, points] after rounds every, 2·every, …, and the last"""
    every: int
    diverged_at: np.ndarray
    seconds: float
    compile_seconds: float
    device: str


def make_batches(sweep: Sweep, *, lanes: int) -> list[Batch]:
    """All batches of a sweep, at most `lanes` runs each; every setting checked.

    First one batch of every shape, so that workers which start together do not compile the same program twice.
    """
    waves: dict[int, list[Batch]] = {}
    for part in sweep.parts:
        definition = find_problem(part.problem)
        schedule = str(part.schedule or find_bundle(definition, part.preset).schedule)
        shapes: dict[Any, list[tuple[Any, dict[str, Any]]]] = {}
        for values in itertools.product(*part.grid.values()):
            swept = dict(zip(part.grid, values, strict=True))
            point = read_point(part.algorithm, definition, {**part.settings, **swept}, part.preset, sweep.rounds)
            shapes.setdefault(shape_of(find_algorithm(part.algorithm), point), []).append((point, swept))
        for points in shapes.values():
            runs = [
                Run(point.algorithm, _as_read(swept, point), seed) for point, swept in points for seed in sweep.seeds
            ]
            for wave, piece in enumerate(_pieces(runs, lanes)):
                head = (part.algorithm, definition.name, points[0][0].problem, sweep.rounds, schedule)
                waves.setdefault(wave, []).append(Batch(*head, tuple(piece)))
    return [batch for wave in sorted(waves) for batch in waves[wave]]


def run_batch(batch: Batch, progress: Progress | None = None) -> Outcome:
    """Run all lanes of a batch as one program."""
    lanes = Lanes(
        np.asarray([run.seed for run in batch.runs], np.uint32),
        {
            setting.name: np.asarray([run.settings[setting.name] for run in batch.runs], np.float64)
            for setting in find_algorithm(batch.algorithm).settings
            if setting.traced
        },
    )
    program = _program(_Shape(batch, lanes))
    started = time.perf_counter()
    regret, diverged_at = program.run(lanes, progress)
    every = -(-batch.rounds // CURVE_POINTS)
    points = np.minimum(np.arange(every, batch.rounds + every, every), batch.rounds) - 1
    return Outcome(
        final_regret=regret[:, -1],
        curves=regret[:, points].astype(np.float32),
        every=every,
        diverged_at=diverged_at,
        seconds=time.perf_counter() - started,
        compile_seconds=program.compile_seconds,
        device=jax.devices()[0].device_kind,
    )


class _Shape:
    """What decides the compiled program of a batch, for the cache; equal for batches that can share it."""

    def __init__(self, batch: Batch, lanes: Lanes) -> None:
        self.batch, self.lanes = batch, lanes
        fixed = {name: value for name, value in batch.runs[0].settings.items() if name not in lanes.numbers}
        self.key = json.dumps([batch.algorithm, batch.problem, batch.world, batch.rounds, batch.schedule, fixed])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=1)
def _program(shape: _Shape) -> Program:
    """The batches of a shape mostly come one after the other: the last program is kept."""
    batch = shape.batch
    world = find_problem(batch.problem).make(**batch.world)
    recipe = find_algorithm(batch.algorithm)
    return Program(recipe, world, batch.runs[0].settings, batch.rounds, batch.schedule, shape.lanes)


def _as_read(swept: dict[str, Any], point: Any) -> dict[str, Any]:
    return {name: {**point.algorithm, **point.problem}[name] for name in swept}


def _pieces(runs: list[Run], lanes: int) -> Iterator[list[Run]]:
    """Pieces of equal size, as near as may be, of at most `lanes` runs."""
    count = -(-len(runs) // lanes)
    for index in range(count):
        yield runs[index * len(runs) // count : (index + 1) * len(runs) // count]
