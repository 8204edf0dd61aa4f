"""Batches: the runs of a sweep that share a compiled shape, cut into pieces of work; and how one is run."""

import hashlib
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.lanes import Lanes, Program, compile_program
from neuralucb.experiments.plans import find_bundle, read_point, shape_of
from neuralucb.problems import find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress
from neuralucb.sweeps.spec import Sweep

__all__ = ["Batch", "Outcome", "compile_ahead", "digests_of", "make_batches", "run_batch"]

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
    digest: str = ""
    """of the problem's data, as they were when the batch was planned"""

    @property
    def name(self) -> str:
        """A name that says what the batch holds: equal batches, equal names. For its data the folder answers."""
        held = {key: value for key, value in asdict(self).items() if key != "digest"}
        text = json.dumps(held, sort_keys=True)
        return f"{self.algorithm}-{self.problem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def shape(self) -> str:
        """What decides its compiled program, and so its numbers: equal for batches that share one."""
        traced = {setting.name for setting in find_algorithm(self.algorithm).settings if setting.traced}
        fixed = {name: value for name, value in self.runs[0].settings.items() if name not in traced}
        what = [
            self.algorithm,
            self.problem,
            self.world,
            self.rounds,
            self.schedule,
            fixed,
            len(self.runs),
            self.digest,
        ]
        return json.dumps(what, sort_keys=True)


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
            world = points[0][0].problem
            digest = definition.make(**world).digest
            runs = [
                Run(point.algorithm, _as_read(swept, point), seed) for point, swept in points for seed in sweep.seeds
            ]
            for wave, piece in enumerate(_pieces(runs, lanes)):
                head = (part.algorithm, definition.name, world, sweep.rounds, schedule)
                waves.setdefault(wave, []).append(Batch(*head, tuple(piece), digest))
    return [batch for wave in sorted(waves) for batch in waves[wave]]


def digests_of(batches: Sequence[Batch]) -> dict[str, list[str]]:
    """The data that the batches of each problem were planned with; problems without data are left out."""
    found: dict[str, set[str]] = {}
    for batch in batches:
        if batch.digest:
            found.setdefault(batch.problem, set()).add(batch.digest)
    return {problem: sorted(digests) for problem, digests in found.items()}


def run_batch(batch: Batch, progress: Progress | None = None) -> Outcome:
    """Run all lanes of a batch as one program."""
    program = _program(batch)
    compiling, program.compile_seconds = program.compile_seconds, 0.0  # counted once, with the first batch
    started = time.perf_counter()
    regret, diverged_at = program.run(_lanes(batch), progress)
    every = -(-batch.rounds // CURVE_POINTS)
    points = np.minimum(np.arange(every, batch.rounds + every, every), batch.rounds) - 1
    return Outcome(
        final_regret=regret[:, -1],
        curves=regret[:, points].astype(np.float32),
        every=every,
        diverged_at=diverged_at,
        seconds=time.perf_counter() - started,
        compile_seconds=compiling,
        device=jax.devices()[0].device_kind,
    )


def compile_ahead(batches: Sequence[Batch], compilers: Executor) -> None:
    """Have the programs of these batches compiled meanwhile, and let go of all others."""
    wanted = {batch.shape: batch for batch in batches}
    for shape in _programs.keys() - wanted.keys():
        _programs.pop(shape).cancel()
    for shape, batch in wanted.items():
        if shape not in _programs:
            _programs[shape] = compilers.submit(_compile, batch)


_programs: dict[str, Future[Program]] = {}
"""By shape: the last one, since batches of one shape come one after the other, and those that are compiled ahead."""


def _program(batch: Batch) -> Program:
    """The batch's program, compiled now if it is not there."""
    if batch.shape not in _programs:
        _programs.clear()
        now: Future[Program] = Future()
        now.set_result(_compile(batch))
        _programs[batch.shape] = now
    return _programs[batch.shape].result()


def _compile(batch: Batch) -> Program:
    """One thread, as its process has."""
    world = find_problem(batch.problem).make(**batch.world)
    if world.digest != batch.digest:
        raise InputError(
            f"{batch.problem} has other data here than where the sweep was planned; put the same file there "
            "(`neuralucb data path` says where), then resume."
        )
    recipe, settings = find_algorithm(batch.algorithm), batch.runs[0].settings
    return compile_program(
        recipe, world, settings, _lanes(batch), rounds=batch.rounds, schedule=batch.schedule, threads=1
    )


def _lanes(batch: Batch) -> Lanes:
    traced = [setting.name for setting in find_algorithm(batch.algorithm).settings if setting.traced]
    numbers = {name: np.asarray([run.settings[name] for run in batch.runs], np.float64) for name in traced}
    return Lanes(np.asarray([run.seed for run in batch.runs], np.uint32), numbers)


def _as_read(swept: dict[str, Any], point: Any) -> dict[str, Any]:
    return {name: {**point.algorithm, **point.problem}[name] for name in swept}


def _pieces(runs: list[Run], lanes: int) -> Iterator[list[Run]]:
    """Pieces of `lanes` runs, the last of what is left: as few sizes as may be, since a size is compiled for."""
    for first in range(0, len(runs), lanes):
        yield runs[first : first + lanes]
