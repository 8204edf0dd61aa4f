"""Batches: the runs of a sweep that share a compiled program, cut into pieces of work; and how one is run."""

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.algorithms.registry import BEFORE
from neuralucb.experiments.lanes import Lanes, Leg, Program, compile_program
from neuralucb.experiments.plans import find_bundle, read_point, shape_of
from neuralucb.problems import Definition, find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress
from neuralucb.sweeps.spec import Part, Sweep

__all__ = [
    "Batch",
    "Kept",
    "Origin",
    "Outcome",
    "Run",
    "Shape",
    "compile_ahead",
    "compile_batch",
    "digests_of",
    "forget_programs",
    "make_batches",
    "pieces",
    "run_batch",
    "shapes_of",
]

Piece = TypeVar("Piece")

NO_STAND_INS: Mapping[str, Definition] = MappingProxyType({})

LAST_PROGRAMS = 4
"""Compiled programs that are kept: the stages of races take turns."""

CURVE_POINTS = 1000
"""The most points that are kept of a regret curve."""


@dataclass(frozen=True)
class Run:
    """One lane: all settings of the algorithm, and a seed."""

    settings: dict[str, Any]
    swept: dict[str, Any]
    """the settings that the sweep varies"""
    seed: int


class Origin(NamedTuple):
    """Where the state of a run lies, at the end of a stage."""

    batch: str
    """name of the batch that played it"""
    row: int
    """of the run in that batch"""
    round: int
    """rounds played until then"""


class Kept(NamedTuple):
    """The states of runs at the end of a stage."""

    round: int
    arrays: tuple[np.ndarray, ...]
    """each with one row per run"""


@dataclass(frozen=True)
class Batch:
    """Runs that share one compiled program, as plain data. Its fields make its name, which stored files have."""

    algorithm: str
    problem: str
    world: dict[str, Any]
    """settings of the problem"""
    rounds: int
    schedule: str
    runs: tuple[Run, ...]
    digest: str = ""
    """of the problem's data, as they were when the batch was planned"""
    until: int | None = None
    """the round at which a stage of a race ends; None where runs are played to their end"""
    origins: tuple[Origin, ...] = ()
    """in a race, what each run goes on from; nothing where they begin"""
    lanes: int | None = None
    """how many lanes its program is compiled for; None for as many as runs"""
    threads: int | None = 1
    """the most threads on a CPU; None for one per core"""

    @property
    def name(self) -> str:
        """A name made from the content: equal batches have equal names. The digest is kept by the folder instead."""
        how = {"digest", "origins", "lanes", "threads"} | ({"until"} if self.until is None else set())
        held = {key: value for key, value in asdict(self).items() if key not in how}
        before = BEFORE.items()
        for run in held["runs"]:  # version 0.1 had no such settings: its batches keep their names
            run["settings"] = {name: value for name, value in run["settings"].items() if (name, value) not in before}
        text = json.dumps(held, sort_keys=True)
        return f"{self.algorithm}-{self.problem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def shape(self) -> str:
        """What decides its compiled program, and so its numbers: equal for batches that share a program."""
        traced = {setting.name for setting in find_algorithm(self.algorithm).settings if setting.traced}
        fixed = {name: value for name, value in self.runs[0].settings.items() if name not in traced}
        common = [self.algorithm, self.problem, self.world, self.rounds, self.schedule]
        return json.dumps([*common, fixed, self.lanes or len(self.runs), self.digest], sort_keys=True)

    @property
    def lane_rounds(self) -> int:
        """How much it is: runs times the rounds that are still to be played."""
        since = self.origins[0].round if self.origins else 0
        return len(self.runs) * ((self.until or self.rounds) - since)


@dataclass(frozen=True)
class Outcome:
    """The results of a batch, one entry per run."""

    final_regret: np.ndarray
    curves: np.ndarray
    """[runs, points] after rounds every, 2·every, …, and the last"""
    every: int
    diverged_at: np.ndarray
    seconds: float
    compile_seconds: float
    device: str
    kept: Kept | None = None
    """what a stage of a race leaves for the next one"""


class Shape(NamedTuple):
    """Settings of one part of a sweep that share a compiled program."""

    algorithm: str
    problem: str
    world: dict[str, Any]
    schedule: str
    digest: str
    settings: list[tuple[dict[str, Any], dict[str, Any]]]
    """all settings of the algorithm, and those of them that are swept"""

    def batch(self, runs: Sequence[Run], rounds: int, **more: Any) -> Batch:
        """Some of its runs as a batch."""
        return Batch(
            self.algorithm, self.problem, self.world, rounds, self.schedule, tuple(runs), digest=self.digest, **more
        )


def make_batches(sweep: Sweep, *, lanes: int, stand_ins: Mapping[str, Definition] = NO_STAND_INS) -> list[Batch]:
    """All batches of a sweep, with at most `lanes` runs each; every setting is checked.

    One batch of every shape comes first, so that workers which start together compile different programs. Stand-ins
    take the place of problems whose data are not on this machine, by name.
    """
    waves: dict[int, list[Batch]] = {}
    for part in sweep.parts:
        for shape in shapes_of(part, sweep.rounds, stand_ins):
            runs = [Run(*each, seed) for each in shape.settings for seed in sweep.seeds]
            for wave, piece in enumerate(pieces(runs, lanes)):
                waves.setdefault(wave, []).append(shape.batch(piece, sweep.rounds))
    return [batch for wave in sorted(waves) for batch in waves[wave]]


def shapes_of(part: Part, rounds: int, stand_ins: Mapping[str, Definition] = NO_STAND_INS) -> list[Shape]:
    """The settings of a part, checked, by compiled program."""
    definition = stand_ins.get(part.problem) or find_problem(part.problem)
    schedule = str(part.schedule or find_bundle(definition, part.preset).schedule)
    found: dict[Any, Shape] = {}
    for swept in part.combinations():
        point = read_point(part.algorithm, definition, {**part.settings, **swept}, part.preset, rounds)
        kind = shape_of(find_algorithm(part.algorithm), point)
        if kind not in found:
            digest = definition.make(**point.problem).digest
            found[kind] = Shape(part.algorithm, definition.name, point.problem, schedule, digest, [])
        found[kind].settings.append((point.algorithm, _checked(swept, point)))
    return list(found.values())


def pieces(runs: list[Piece], lanes: int) -> Iterator[list[Piece]]:
    """Pieces of `lanes` runs, and the rest: as few sizes as possible, since each is compiled."""
    for first in range(0, len(runs), lanes):
        yield runs[first : first + lanes]


def digests_of(batches: Sequence[Batch]) -> dict[str, list[str]]:
    """For each problem with data, the digests of the data that its batches were planned with."""
    found: dict[str, set[str]] = {}
    for batch in batches:
        if batch.digest:
            found.setdefault(batch.problem, set()).add(batch.digest)
    return {problem: sorted(digests) for problem, digests in found.items()}


def run_batch(batch: Batch, progress: Progress | None = None, kept: Kept | None = None) -> Outcome:
    """Run a batch, from the states that were kept or from the beginning: its runs are the lanes of one program."""
    program = _program(batch)
    compiling, program.compile_seconds = program.compile_seconds, 0.0  # counted once, with the first batch that uses it
    started = time.perf_counter()
    last = batch.until or batch.rounds
    leg = Leg(*(kept or Kept(0, ())), last, goes_on=batch.until is not None)
    found = program.run(_lanes(batch), progress, leg)
    regret, every = found.regret, -(-batch.rounds // CURVE_POINTS)
    points = np.minimum(np.arange(every, last + every, every), last) - 1
    return Outcome(
        final_regret=regret[:, -1],
        curves=regret[:, points].astype(np.float32),
        every=every,
        diverged_at=found.diverged_at,
        seconds=time.perf_counter() - started,
        compile_seconds=compiling,
        device=jax.devices()[0].device_kind,
        kept=None if found.kept is None else Kept(last, found.kept),
    )


def compile_ahead(batches: Sequence[Batch], compilers: Executor) -> None:
    """Compile the programs of these batches in the background, and forget all others."""
    wanted = {batch.shape: batch for batch in batches}
    forget_programs(keep=wanted)
    for shape, batch in wanted.items():
        if shape not in _programs:
            _programs[shape] = compilers.submit(compile_batch, batch)


def forget_programs(keep: Collection[str] = ()) -> None:
    """Drop the compiled programs, and those still to be compiled, whose shapes are not in `keep`."""
    for shape in _programs.keys() - set(keep):
        _programs.pop(shape).cancel()


def compile_batch(batch: Batch) -> Program:
    """Compile the program of a batch."""
    world = find_problem(batch.problem).make(**batch.world)
    if world.digest != batch.digest:
        raise InputError(
            f"{batch.problem} has other data here than where the sweep was planned; put the same file there "
            "(`neuralucb data path` prints the folder), then resume."
        )
    recipe, settings = find_algorithm(batch.algorithm), batch.runs[0].settings
    lanes = _lanes(batch).take(np.arange(batch.lanes or len(batch.runs)) % len(batch.runs))
    return compile_program(
        recipe, world, settings, lanes, rounds=batch.rounds, schedule=batch.schedule, threads=batch.threads
    )


_programs: dict[str, Future[Program]] = {}
"""By shape: the last programs used, since batches of one shape follow each other, and those compiled ahead."""


def _program(batch: Batch) -> Program:
    """The program of a batch; compiled now if it was not compiled ahead."""
    if batch.shape not in _programs:
        forget_programs(keep=list(_programs)[1 - LAST_PROGRAMS :])
        now: Future[Program] = Future()
        now.set_result(compile_batch(batch))
        _programs[batch.shape] = now
    return _programs[batch.shape].result()


def _lanes(batch: Batch) -> Lanes:
    traced = [setting.name for setting in find_algorithm(batch.algorithm).settings if setting.traced]
    numbers = {name: np.asarray([run.settings[name] for run in batch.runs], np.float64) for name in traced}
    return Lanes(np.asarray([run.seed for run in batch.runs], np.uint32), numbers)


def _checked(swept: dict[str, Any], point: Any) -> dict[str, Any]:
    """The swept settings, with their values as they were read and checked."""
    return {name: {**point.algorithm, **point.problem}[name] for name in swept}
