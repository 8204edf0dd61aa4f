"""Which setting of a grid is best: on all seeds, as papers do; and chosen on half of them, scored on the rest."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neuralucb.experiments.statistics import Estimate, estimate_mean
from neuralucb.sweeps.spec import FEWEST_APART
from neuralucb.sweeps.store import Store

__all__ = ["Contest", "Estimate", "Grid", "contests", "difference", "read_grids"]


class Grid(NamedTuple):
    """One algorithm on one problem: every setting on every seed."""

    algorithm: str
    problem: str
    rounds: int
    settings: list[dict[str, Any]]
    """the swept settings of each row"""
    seeds: np.ndarray
    regret: np.ndarray
    """[settings, seeds] final regret; NaN where a run is missing"""
    diverged: np.ndarray
    """[settings, seeds] whether the run diverged"""
    tried: int
    """number of settings in the grid; in a race, rows are only those that were left at the end"""


class Contest(NamedTuple):
    """The winners of a grid."""

    grid: Grid
    best: int
    """the setting with the lowest mean on all seeds"""
    estimate: Estimate
    worst: float
    """its worst seed"""
    chosen: int | None
    """the setting with the lowest mean on every other seed, the first among them; None with fewer than two seeds"""
    held_out: Estimate
    """the chosen setting, on the other seeds"""
    missing: int
    """number of missing runs"""

    @property
    def diverged(self) -> int:
        """How many runs of the settings that won, on all seeds or on half of them, diverged."""
        winners = {self.best, self.best if self.chosen is None else self.chosen}
        return int(self.grid.diverged[sorted(winners)].sum())


def read_grids(store: Store) -> list[Grid]:
    """The final regrets of a store, by algorithm and problem, in the order of its sweep."""
    table = store.read(["algorithm", "problem", "swept", "seed", "final_regret", "diverged_at"])
    columns = {name: _codes(table[name]) for name in ("algorithm", "problem", "swept")}
    seed, regret = table["seed"].to_numpy(), table["final_regret"].to_numpy()
    diverged = table["diverged_at"].to_numpy() > 0
    sweep = store.sweep()
    seeds = np.asarray(sweep.seeds)
    order = np.argsort(seeds)
    raced = {(race["algorithm"], race["problem"]): race for race in store.read_races()}
    grids = []
    for algorithm, problem in dict.fromkeys((part.algorithm, part.problem) for part in sweep.parts):
        mine = np.ones(len(seed), bool)
        for name, value in (("algorithm", algorithm), ("problem", problem)):
            words, codes = columns[name]
            mine &= codes == (words.index(value) if value in words else -1)
        if not mine.any():
            continue
        words, codes = columns["swept"]
        kinds, row = np.unique(codes[mine], return_inverse=True)
        column = order[np.searchsorted(seeds[order], seed[mine])]
        finals = np.full((len(kinds), len(seeds)), np.nan)
        finals[row, column] = regret[mine]
        failed = np.zeros(finals.shape, bool)
        failed[row, column] = diverged[mine]
        settings = [json.loads(words[kind]) for kind in kinds]
        grid = Grid(algorithm, problem, sweep.rounds, settings, seeds, finals, failed, len(settings))
        grids.append(_left_over(grid, raced[algorithm, problem]) if (algorithm, problem) in raced else grid)
    return grids


def contests(grids: Sequence[Grid]) -> list[Contest]:
    """The best setting of each grid, both ways. A setting with missing runs cannot win."""
    return [_contest(grid) for grid in grids if not np.isnan(grid.regret).any(axis=1).all()]  # all() of none is True


def difference(one: Contest, other: Contest) -> Estimate:
    """Regret of one minus that of the other, paired by seed, each at its best setting: a seed is the same problem."""
    return estimate_mean(one.grid.regret[one.best] - other.grid.regret[other.best])


def _left_over(grid: Grid, race: Mapping[str, Any]) -> Grid:
    """The settings that a race has not dropped."""
    rows = [row for row, setting in enumerate(grid.settings) if setting in race["left"]]
    settings = [grid.settings[row] for row in rows]
    return grid._replace(
        settings=settings, regret=grid.regret[rows], diverged=grid.diverged[rows], tried=race["settings"]
    )


def _contest(grid: Grid) -> Contest:
    means = grid.regret.mean(axis=1)
    best = int(np.nanargmin(means))
    chosen, held_out = None, Estimate(np.nan, np.nan, np.nan)
    if len(grid.seeds) >= (2 if grid.tried == len(grid.settings) else FEWEST_APART):
        choosing, scoring = grid.regret[:, ::2].mean(axis=1), grid.regret[:, 1::2]
        chosen = int(np.nanargmin(np.where(np.isnan(means), np.nan, choosing)))
        held_out = estimate_mean(scoring[chosen])
    row = grid.regret[best]
    return Contest(grid, best, estimate_mean(row), float(row.max()), chosen, held_out, int(np.isnan(grid.regret).sum()))


def _codes(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """The different words of a column, and for each row the index of its word."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
