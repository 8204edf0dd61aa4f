"""Several algorithms on the same problems and seeds: differences, a ranking, and aggregates over problems."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from neuralucb.experiments.results import Result
from neuralucb.experiments.statistics import (
    Estimate,
    estimate_mean,
    few_seeds,
    interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
)
from neuralucb.runtime.errors import InputError

__all__ = ["Aggregate", "Comparison", "Difference", "Improvement", "Rank"]

SCALE = "uniform"
"""Regret over several problems is counted as a share of this one's, where it was played."""


class Difference(NamedTuple):
    """Final regret of one algorithm minus that of another, seed by seed: below 0 it is better."""

    algorithm: str
    problem: str
    estimate: Estimate
    seeds: int


class Rank(NamedTuple):
    """A place in the ranking on one problem."""

    place: int
    algorithm: str
    problem: str
    regret: Estimate
    diverged: int


class Aggregate(NamedTuple):
    """Interquartile mean over all problems and seeds of regret as a share of the scale's."""

    algorithm: str
    share: Estimate


class Improvement(NamedTuple):
    """How likely a run of one algorithm has less regret than a run of another, averaged over problems."""

    algorithm: str
    over: str
    probability: Estimate


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns: one `Result` per algorithm and problem, played on the same contexts and noise.

    It is a sequence of results; by name: `comparison["lin-ucb"]`, or `comparison["lin-ucb", "h1"]` of several problems.
    """

    results: tuple[Result, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names, in order, each once."""
        return tuple(dict.fromkeys(result.algorithm for result in self.results))

    @property
    def problems(self) -> tuple[str, ...]:
        """Names, in order, each once."""
        return tuple(dict.fromkeys(result.problem for result in self.results))

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @overload
    def __getitem__(self, which: int | str | tuple[str, str]) -> Result: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Result, ...]: ...

    def __getitem__(self, which: int | str | tuple[str, str] | slice) -> Result | tuple[Result, ...]:
        if isinstance(which, int | slice):
            return self.results[which]
        algorithm, problem = (which, None) if isinstance(which, str) else which
        found = [
            result for result in self.results if result.algorithm == algorithm and problem in (None, result.problem)
        ]
        if len(found) != 1:
            why = "was played on several problems; name one too" if found else "is not in this comparison"
            raise KeyError(f"{which!r} {why}: {', '.join(self.algorithms)} on {', '.join(self.problems)}")
        return found[0]

    def differences(self, to: str | None = None) -> list[Difference]:
        """Final regret of every other algorithm minus that of `to`, paired by seed, with Student's interval.

        Args:
            to: the algorithm compared with; the first one if not given.
        """
        base = self._named(to)
        found = []
        for result in self.results:
            if result.algorithm != base:
                theirs = self[base, result.problem]
                values = result.final_regret - theirs.final_regret
                found.append(Difference(result.algorithm, result.problem, estimate_mean(values), len(values)))
        return found

    def ranking(self) -> list[Rank]:
        """Algorithms of each problem by their mean final regret, the least first."""
        ranks = []
        for problem in self.problems:
            mine = [result for result in self.results if result.problem == problem]
            for place, result in enumerate(sorted(mine, key=lambda one: one.final_regret.mean()), start=1):
                regret = estimate_mean(result.final_regret)
                ranks.append(Rank(place, result.algorithm, problem, regret, result.diverged))
        return ranks

    def aggregates(self) -> list[Aggregate]:
        """For each algorithm the interquartile mean of its regret over all problems, with a bootstrap interval.

        Problems have different scales, so regret is divided by the mean regret of `uniform` on the same problem.
        Problems are the strata: seeds are resampled within each.
        """
        scale = self._scale()
        found = []
        for algorithm in self.algorithms:
            groups = [self[algorithm, problem].final_regret / scale[problem] for problem in self.problems]
            value = float(interquartile_mean(np.concatenate(groups)))
            low, high = stratified_bootstrap(groups, lambda drawn: float(interquartile_mean(np.concatenate(drawn))))
            found.append(Aggregate(algorithm, Estimate(value, low, high)))
        return sorted(found, key=lambda one: one.share.value)

    def improvements(self, over: str | None = None) -> list[Improvement]:
        """How likely a run of each other algorithm has less regret than one of `over`, with a bootstrap interval."""
        base = self._named(over)
        found = []
        for algorithm in self.algorithms:
            if algorithm != base:
                groups = [self[name, problem].final_regret for problem in self.problems for name in (algorithm, base)]
                low, high = stratified_bootstrap(groups, _mean_improvement)
                found.append(Improvement(algorithm, base, Estimate(_mean_improvement(groups), low, high)))
        return found

    @property
    def remark(self) -> str:
        """What a reader must know before trusting an interval; empty if nothing."""
        return few_seeds(min(len(result.seeds) for result in self.results))

    def _named(self, name: str | None) -> str:
        chosen = self.algorithms[0] if name is None else name
        if chosen not in self.algorithms:
            raise InputError(f"{chosen!r} is not in this comparison; it has: {', '.join(self.algorithms)}.")
        return chosen

    def _scale(self) -> dict[str, float]:
        if SCALE not in self.algorithms:
            raise InputError(f"algorithms must include {SCALE!r}, by whose regret that of others is scaled.")
        return {problem: float(self[SCALE, problem].final_regret.mean()) for problem in self.problems}


def _mean_improvement(groups: Sequence[np.ndarray]) -> float:
    """Averaged over problems; groups are ours, theirs, ours, theirs, …"""
    pairs = zip(groups[::2], groups[1::2], strict=True)
    return float(np.mean([probability_of_improvement(ours, theirs) for ours, theirs in pairs]))
