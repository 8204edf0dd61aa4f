"""A race: the settings of a grid are played in stages, and those that fall behind are dropped between them.

Every other seed races, to an eighth, a quarter, half and all of the rounds. Runs go on from where they were. The
settings that are left at the end are played on the other seeds too, which had no part in dropping any: what was chosen
on the seeds that raced is scored on seeds that are new.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.problems import Definition
from neuralucb.schedules import read_schedule, segment_ends
from neuralucb.sweeps.batches import NO_STAND_INS, Batch, Origin, Run, Shape, pieces, shapes_of
from neuralucb.sweeps.callbacks import FinishedRun
from neuralucb.sweeps.cost import estimate
from neuralucb.sweeps.elimination import Verdict, project, verdicts
from neuralucb.sweeps.spec import FEWEST_APART, Part, Sweep
from neuralucb.sweeps.store import Store

__all__ = ["CPU_LANES", "Race", "Stage", "few_sizes", "races_of", "stages_of"]

SHARES = (8, 4, 2)
"""Stages end after an eighth, a quarter and half of the rounds, and after all of them."""

CPU_LANES, CPU_GROUP = 8, 4
"""On a CPU: runs per batch, and lanes of the compiled program, which is one for all stages; lanes that are filled up
are wasted."""

GPU_SECONDS = 240
"""On a GPU: how long a batch should last at most, by estimate: what is killed is lost up to the last batch."""


class Stage(NamedTuple):
    """Up to which round the settings that are left are played, and on which seeds."""

    rounds: int
    seeds: tuple[int, ...]


def stages_of(rounds: int, seeds: Sequence[int], schedule: str) -> tuple[Stage, ...]:
    """The stages of a race: every other seed, longer and longer; then all seeds. They end where a segment does."""
    ends = segment_ends(read_schedule(schedule), rounds=rounds)
    stops = sorted({next(end for end in ends if end * share >= rounds) for share in SHARES} | {rounds})
    racing = tuple(seeds[::2] if len(seeds) >= FEWEST_APART else seeds)
    stages = tuple(Stage(stop, racing) for stop in stops)
    return stages if len(racing) == len(seeds) else (*stages, Stage(rounds, tuple(seeds)))


def races_of(
    sweep: Sweep, *, lanes: int, gpu: bool, threads: int = 1, stand_ins: Mapping[str, Definition] = NO_STAND_INS
) -> "list[Race]":
    """One race per algorithm and problem."""
    return [Race(sweep, part, lanes=lanes, gpu=gpu, threads=threads, stand_ins=stand_ins) for part in sweep.parts]


class Race:
    """The race of one algorithm on one problem. Where it stands follows from what is stored, and from nothing else.

    Args:
        sweep: What the race belongs to.
        part: The grid.
        lanes: Runs per batch, at most.
        gpu: Whether all lanes of a batch run at once.
        threads: On a CPU, how many threads run a batch.
        stand_ins: As for `make_batches`.
    """

    def __init__(
        self,
        sweep: Sweep,
        part: Part,
        *,
        lanes: int,
        gpu: bool,
        threads: int,
        stand_ins: Mapping[str, Definition],
    ) -> None:
        self.sweep: Sweep = sweep
        self.part: Part = part
        self._lanes, self._gpu, self._threads, self._stand_ins = lanes, gpu, threads, stand_ins
        self.shapes: list[Shape] = shapes_of(part, sweep.rounds, stand_ins)
        self.stages: tuple[Stage, ...] = stages_of(sweep.rounds, sweep.seeds, self.shapes[0].schedule)
        self.dropped: dict[_Place, dict[str, Any]] = {}
        """what was dropped: when, and why"""
        self.history: list[dict[str, Any]] = []
        """of every stage that was played: its rounds and seeds, how many settings it had, and how much was played"""
        self._beaten_by: dict[_Place, _Place] = {}
        self._played: dict[tuple[_Place, int], dict[int, FinishedRun]] = {}
        """by setting and seed: the run up to each round at which a stage ended"""
        self._origins: dict[tuple[_Place, int], Origin] = {}
        self._left_behind: set[str] = set()
        """batches whose states nothing goes on from"""
        self.batches: list[Batch] = []
        """of all stages up to this one"""
        self.left: list[_Place] = []
        """the settings that go on"""
        self.stage: int = 0
        self.current: list[Batch] = []
        """the batches of this stage"""
        self._begin()

    @property
    def over(self) -> bool:
        """Whether all stages were played, or nothing is left."""
        return self.stage == len(self.stages) or not self.left

    @property
    def name(self) -> str:
        """Of the file that tells about it."""
        return f"{self.part.algorithm}-{self.part.problem}"

    def advance(self, store: Store) -> list[Batch]:
        """Judge the stages that are complete, and say what can be run now: the missing batches of the next one.

        Writes nothing; `save` does.
        """
        while not self.over:
            missing = store.missing(self.current)
            if missing:
                return missing
            self._judge(store)
        return []

    def follow(self, batch: Batch, store: Store) -> list[Batch]:
        """What can be run after this batch has ended; nothing if others of its stage are still running, or failed."""
        if batch not in self.current or store.missing(self.current):
            return []
        more = self.advance(store)
        self.save(store)
        return more

    def save(self, store: Store) -> None:
        """Note in the store where the race stands, and delete states that nothing goes on from."""
        if self.history:
            store.write_race(self.name, self._record())
        store.forget_kept(self._left_behind)
        self._left_behind.clear()

    def _settings(self) -> list[tuple["_Place", dict[str, Any]]]:
        """All settings, by place."""
        return [
            (_Place(shape, row), swept)
            for shape, one in enumerate(self.shapes)
            for row, (_, swept) in enumerate(one.settings)
        ]

    def _swept(self, place: "_Place") -> dict[str, Any]:
        return self.shapes[place.shape].settings[place.row][1]

    def _begin(self) -> None:
        """Start with all settings that have not diverged; what was played before need not be played again."""
        self.dropped = {place: record for place, record in self.dropped.items() if record["why"] == "diverged"}
        self._beaten_by.clear()
        self.left = [place for place, _ in self._settings() if place not in self.dropped]
        self.stage = 0 if len(self.left) > 1 else len(self.stages) - 1
        self.current = self._plan()

    def _plan(self) -> list[Batch]:
        """The batches of this stage: runs of one shape that have been played equally far."""
        if self.over:
            return []
        stage = self.stages[self.stage]
        groups: dict[tuple[int, int], list[tuple[_Place, int]]] = {}
        for place in self.left:
            for seed in stage.seeds:
                since = max(self._played.get((place, seed), {}), default=0)
                if since < stage.rounds:
                    groups.setdefault((place.shape, since), []).append((place, seed))
        made = []
        for (shape, since), members in groups.items():
            one = self.shapes[shape]
            for piece in pieces(members, self._lanes_for(one, len(members), stage.rounds - since)):
                runs = [Run(*one.settings[place.row], seed) for place, seed in piece]
                origins = tuple(self._origins[key] for key in piece) if since else ()
                until = None if stage.rounds == self.sweep.rounds else stage.rounds
                how = {
                    "lanes": few_sizes(len(runs)) if self._gpu else CPU_GROUP * self._threads,
                    "threads": self._threads,
                }
                made.append(one.batch(runs, self.sweep.rounds, until=until, origins=origins, **how))
        self.batches += made
        return made

    def _lanes_for(self, shape: Shape, lanes: int, rounds: int) -> int:
        """Runs per batch; on a GPU so few that one does not last longer than a piece of work should."""
        if not self._gpu:
            return self._lanes
        batch = shape.batch([Run(*shape.settings[0], 0)] * lanes, self.sweep.rounds)
        seconds = estimate([batch], workers=1, gpu=True, stand_ins=self._stand_ins).seconds
        parts = max(1, math.ceil(seconds * rounds / self.sweep.rounds / GPU_SECONDS), -(-lanes // self._lanes))
        return -(-lanes // parts)

    def _judge(self, store: Store) -> None:
        """Drop settings at the end of a stage, and plan the next stage."""
        stage = self.stages[self.stage]
        if self.current:
            self._left_behind |= {origin.batch for origin in self._origins.values()}
        self._read(store)
        if self.current:
            self.history.append(
                {
                    "rounds": stage.rounds,
                    "seeds": list(stage.seeds),
                    "settings": len(self.left),
                    "lane_rounds": sum(batch.lane_rounds for batch in self.current),
                }
            )
        found = self._verdicts(stage)
        for row, verdict in sorted(found.items()):
            self._drop(self.left[row], verdict, stage)
        diverged = {place for place in self.left if self.dropped.get(place, {}).get("why") == "diverged"}
        self.left = [place for place in self.left if place not in self.dropped]
        if diverged & set(self._beaten_by.values()):
            self._begin()  # some were dropped for being worse than a setting that cannot win
        else:
            self.stage = self.stage + 1 if len(self.left) > 1 else max(self.stage + 1, len(self.stages) - 1)
            self.current = self._plan()
        if self.over:
            self._left_behind |= {origin.batch for origin in self._origins.values()}

    def _drop(self, place: "_Place", verdict: Verdict, stage: Stage) -> None:
        record = {"setting": self._swept(place), "stage": self.stage + 1, "round": stage.rounds, "why": verdict.why}
        if verdict.leader is None:
            record["diverged"] = self._divergence(place, stage)
        else:
            self._beaten_by[place] = leader = self.left[verdict.leader]
            record |= {"difference": verdict.difference, "p": verdict.p, "than": self._swept(leader)}
        self.dropped[place] = record

    def _read(self, store: Store) -> None:
        """Take in what was played in this stage."""
        place_of = {json.dumps(swept): place for place, swept in self._settings()}
        for batch in self.current:
            for row, run in enumerate(store.runs_of(batch)):
                key, played = (place_of[json.dumps(run.swept)], run.seed), int(run.rounds[-1])
                self._played.setdefault(key, {})[played] = run
                self._origins[key] = Origin(batch.name, row, played)

    def _verdicts(self, stage: Stage) -> dict[int, Verdict]:
        runs = [[self._run(place, seed, stage.rounds) for seed in stage.seeds] for place in self.left]
        diverged = np.asarray([any(0 < run.diverged_at <= stage.rounds for run in row) for row in runs], bool)
        half = stage.rounds // 2
        at_half, so_far = (
            np.asarray([[np.interp(t, run.rounds, run.regret) for run in row] for row in runs])
            for t in (half, stage.rounds)
        )
        projected = project(so_far, at_half, played=stage.rounds, half=half, rounds=self.sweep.rounds)
        last = self.stage == len(self.stages) - 1
        error = 0.0 if last else self.sweep.race_error / (len(self.stages) - 1)
        return verdicts(so_far, projected, diverged, error=error)

    def _run(self, place: "_Place", seed: int, rounds: int) -> FinishedRun:
        """The run, played to this round or further."""
        played = self._played[place, seed]
        return played[min(t for t in played if t >= rounds)]

    def _divergence(self, place: "_Place", stage: Stage) -> dict[str, int]:
        """By seed, the round by which its run diverged."""
        runs = {seed: self._run(place, seed, stage.rounds).diverged_at for seed in stage.seeds}
        return {str(seed): at for seed, at in runs.items() if at}

    def _record(self) -> dict[str, Any]:
        seeds = self.stages[0].seeds if not self.over else self.sweep.seeds
        mean = {
            place: np.mean([self._played[place, seed][max(self._played[place, seed])].regret[-1] for seed in seeds])
            for place in self.left
        }
        return {
            "algorithm": self.part.algorithm,
            "problem": self.part.problem,
            "rounds": self.sweep.rounds,
            "settings": self.part.runs,
            "stages": self.history,
            "dropped": list(self.dropped.values()),
            "left": [self._swept(place) for place in sorted(self.left, key=mean.__getitem__)],
            "over": self.over,
        }


def few_sizes(lanes: int) -> int:
    """The next number with at most four binary digits before its zeros: few programs, and few lanes in vain."""
    step = 1 << max(0, lanes.bit_length() - 4)
    return -(-lanes // step) * step


class _Place(NamedTuple):
    """A setting: which shape, and which row of it."""

    shape: int
    row: int
