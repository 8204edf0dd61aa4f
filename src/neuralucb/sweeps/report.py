"""What a report says about a store, as plain data: facts, best settings, regret curves and sensitivities."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuralucb.experiments.results import Curve
from neuralucb.experiments.statistics import band
from neuralucb.runtime.records import brief
from neuralucb.sweeps.selection import Contest, Estimate, contests, difference, read_grids
from neuralucb.sweeps.spec import Sweep
from neuralucb.sweeps.store import Failure, Store

__all__ = ["LEADER", "Best", "Report", "Sensitivity", "read_best", "read_report"]

LEADER = "neural-ucb"
"""The algorithm that the others are compared with."""

FEWEST_VALUES = 3
"""Of a swept setting, for its sensitivity: two points are always a straight line."""


@brief
class Best(NamedTuple):
    """The best setting of one algorithm on one problem; one row of the table.

    Example:
        >>> best = read_report(Store("sweep")).best[0]
        >>> best.worst >= best.regret.mean
        True
    """

    problem: str
    algorithm: str
    regret: Estimate
    """of the setting with the lowest mean on all seeds"""
    worst: float
    """its worst seed"""
    held_out: Estimate
    """of the setting chosen on every other seed, on the remaining seeds"""
    minus_leader: Estimate | None
    """paired by seed; None for the leader itself, and without one"""
    setting: dict[str, Any]
    """the swept settings that won on all seeds"""
    settings: int
    """number of settings in the grid"""
    diverged: int
    runs: int
    missing: int
    held_out_setting: dict[str, Any] | None
    """the swept settings that won on every other seed; None with one seed"""


class Sensitivity(NamedTuple):
    """How the regret of an algorithm depends on one swept setting."""

    algorithm: str
    setting: str
    values: list[Any]
    ratios: dict[str, list[float]]
    """by problem: lowest mean regret at each value over the lowest of all; NaN where runs are missing"""


@brief
class Report(NamedTuple):
    """Everything a report says.

    Example:
        >>> report = read_report(Store("sweep"))
        >>> len(report.best) > 0, report.failures
        (True, [])
    """

    sweep: Sweep
    runs: int
    """number of runs that are stored"""
    facts: dict[str, str]
    """what computed them, and how long it took"""
    best: list[Best]
    curves: list[Curve]
    sensitivities: list[Sensitivity]
    """of settings with at least three values"""
    two_valued: list[tuple[str, str]]
    """algorithm and setting, where there are only two"""
    failures: list[Failure]
    resume_command: str
    races: list[dict[str, Any]]
    """of a race, what the store keeps of each: stages, what was dropped when and why, what is left"""

    @property
    def unfinished(self) -> int:
        """Number of races that are not over; 0 where there are none."""
        over = sum(race["over"] for race in self.races)
        return len(self.sweep.parts) - over if self.sweep.search == "race" else 0


def read_report(store: Store) -> Report:
    """Read a store, complete or not.

    Args:
        store: The folder of a sweep.

    Returns:
        The report as plain data; `neuralucb.display.sweep_report.write_report` makes figures and a page of it.

    Raises:
        InputError: A file of the store is damaged; the message names it and the cure.

    Example:
        >>> read_report(Store("sweep")).best[0].regret.mean > 0
        True
    """
    grids = read_grids(store)
    decided = contests(grids)
    sweep, races = store.sweep(), store.read_races()
    found = [] if races else _sensitivities(decided)  # what was dropped early has no regret to compare
    return Report(
        sweep=sweep,
        runs=int(sum((~np.isnan(grid.regret)).sum() for grid in grids)),
        facts=_facts(store) | _race_facts(sweep, races),
        best=_best(decided),
        curves=[_curve(store, contest) for contest in decided],
        sensitivities=[each for each in found if len(each.values) >= FEWEST_VALUES],
        two_valued=[(each.algorithm, each.setting) for each in found if len(each.values) < FEWEST_VALUES],
        failures=store.failures(),
        resume_command=store.resume_command,
        races=races,
    )


def read_best(store: Store) -> list[Best]:
    """The best settings of a store alone: no curves are read."""
    return _best(contests(read_grids(store)))


def _best(decided: Sequence[Contest]) -> list[Best]:
    leaders = {contest.grid.problem: contest for contest in decided if contest.grid.algorithm == LEADER}
    rows = []
    for contest in decided:
        grid, leader = contest.grid, leaders.get(contest.grid.problem)
        rows.append(
            Best(
                problem=grid.problem,
                algorithm=grid.algorithm,
                regret=contest.estimate,
                worst=contest.worst,
                held_out=contest.held_out,
                minus_leader=None if leader is None or leader is contest else difference(contest, leader),
                setting=grid.settings[contest.best],
                settings=grid.tried,
                diverged=int(grid.diverged.sum()),
                runs=grid.regret.size,
                missing=contest.missing,
                held_out_setting=None if contest.chosen is None else grid.settings[contest.chosen],
            )
        )
    return rows


def _curve(store: Store, contest: Contest) -> Curve:
    """The curves of the best setting; no others are read."""
    grid = contest.grid
    swept = json.dumps(grid.settings[contest.best])
    table = store.read(
        ["seed", "curve", "curve_every"], algorithm=grid.algorithm, problem=grid.problem, swept=swept
    ).sort_by("seed")
    curves = table["curve"].combine_chunks().flatten().to_numpy().reshape(len(table), -1).astype(np.float64)
    every = table["curve_every"][0].as_py()
    rounds = np.minimum(every * np.arange(1, curves.shape[1] + 1), grid.rounds)
    diverged = int(grid.diverged[contest.best].sum())
    return Curve(grid.algorithm, grid.problem, rounds, curves, band(curves), diverged)


def _sensitivities(decided: Sequence[Contest]) -> list[Sensitivity]:
    """One for each algorithm and each of its settings with more than one value."""
    found = []
    for algorithm in dict.fromkeys(contest.grid.algorithm for contest in decided):
        same = [contest for contest in decided if contest.grid.algorithm == algorithm]
        for name, values in _swept_values(same).items():
            if len(values) > 1:
                ratios = {contest.grid.problem: _ratios(contest, name, values) for contest in same}
                found.append(Sensitivity(algorithm, name, values, ratios))
    return found


def _ratios(contest: Contest, name: str, values: Sequence[Any]) -> list[float]:
    """At each value of a setting, the lowest mean regret over the lowest of all, the other settings at their best."""
    lowest = dict.fromkeys(values, np.nan)
    for setting, mean in zip(contest.grid.settings, contest.grid.regret.mean(axis=1), strict=True):
        if name in setting:
            lowest[setting[name]] = np.fmin(lowest[setting[name]], mean)  # ignores NaN, the mean with missing runs
    best = contest.estimate.mean
    return [float(value / best) if best else np.nan for value in lowest.values()]


def _swept_values(decided: Sequence[Contest]) -> dict[str, list[Any]]:
    """The values of each swept setting, sorted."""
    found: dict[str, set[Any]] = {}
    for contest in decided:
        for setting in contest.grid.settings:
            for name, value in setting.items():
                found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=lambda value: (str(type(value)), value)) for name, values in found.items()}


def _race_facts(sweep: Sweep, races: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How much of the full grid was played."""
    if not races:
        return {}
    played = sum(stage["lane_rounds"] for race in races for stage in race["stages"])
    share = played / (sum(race["settings"] for race in races) * len(sweep.seeds) * sweep.rounds)
    dropped = Counter(each["why"] for race in races for each in race["dropped"])
    why = f"{dropped['worse']} settings dropped as clearly worse, {dropped['diverged']} as diverged"
    return {"race": f"{share:.0%} of the rounds of the full grid; {why}, at an error of {sweep.race_error:g}"}


def _facts(store: Store) -> dict[str, str]:
    table = store.read(["seconds", "compile_seconds", "device", "version", "jax", "commit", "batch"])
    seconds = table["seconds"].to_numpy().sum()
    compiling = dict(zip(table["batch"].to_pylist(), table["compile_seconds"].to_pylist(), strict=True))
    device, version, jax, commit = (
        ", ".join(word for word in sorted(set(table[name].to_pylist())) if word) or "–"
        for name in ("device", "version", "jax", "commit")
    )
    return {
        "computing": f"{seconds:.0f} s, and {sum(compiling.values()):.0f} s of compiling, over all workers",
        "device": device, "neuralucb": version, "commit": commit, "jax": jax,
    }  # fmt: skip
