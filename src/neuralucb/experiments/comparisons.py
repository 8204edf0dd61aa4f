"""Several algorithms on the same problems and seeds: differences, a ranking, and aggregates over problems."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from neuralucb.experiments.results import Result, make_frame
from neuralucb.experiments.statistics import (
    Estimate,
    estimate_mean,
    few_seeds,
    interquartile_mean,
    probability_of_improvement,
    stratified_bootstrap,
)
from neuralucb.experiments.tables import aggregate_table, heading, html_table, ranking_table, text_table
from neuralucb.runtime.errors import InputError

if TYPE_CHECKING:
    import pandas
from neuralucb.runtime.records import brief

__all__ = ["SCALE", "Aggregate", "Comparison", "Difference", "Improvement", "Rank"]

SCALE = "uniform"
"""Regret over several problems is counted as a share of this algorithm's."""


@brief
class Difference(NamedTuple):
    """Final regret of one algorithm minus that of another, seed by seed: below 0 it is better.

    Example:
        >>> from neuralucb import compare
        >>> (difference,) = compare(["glm-ucb", "lin-ucb"], "h1", rounds=100, seeds=5).differences()
        >>> difference.algorithm, difference.minus, difference.seeds
        ('lin-ucb', 'glm-ucb', 5)
    """

    algorithm: str
    minus: str
    problem: str
    estimate: Estimate
    seeds: int

    def as_json(self) -> dict[str, Any]:
        """The difference as a dictionary for JSON; without an interval, that is None."""
        mean, low, high = self.estimate
        named = {"algorithm": self.algorithm, "minus": self.minus, "problem": self.problem}
        return {**named, "mean": mean, "interval95": None if np.isnan(low) else [low, high]}


@brief
class Rank(NamedTuple):
    """A place in the ranking on one problem.

    Example:
        >>> from neuralucb import compare
        >>> first, second = compare(["glm-ucb", "lin-ucb"], "h1", rounds=100, seeds=5).ranking()
        >>> first.place, second.place, first.regret.mean <= second.regret.mean
        (1, 2, True)
    """

    place: int
    algorithm: str
    problem: str
    regret: Estimate
    diverged: int
    seeds: int


@brief
class Aggregate(NamedTuple):
    """Interquartile mean, over all problems and seeds, of regret as a share of uniform's; with a bootstrap interval.

    Example:
        >>> from neuralucb import compare
        >>> comparison = compare(["glm-ucb", "lin-ucb"], ["h1", "h3"], rounds=100, seeds=5)
        >>> sorted(each.algorithm for each in comparison.aggregates())
        ['glm-ucb', 'lin-ucb']
    """

    algorithm: str
    share: Estimate


@brief
class Improvement(NamedTuple):
    """How likely a run of one algorithm has less regret than a run of another, averaged over problems.

    Example:
        >>> from neuralucb import compare
        >>> comparison = compare(["glm-ucb", "lin-ucb"], ["h1", "h3"], rounds=100, seeds=5)
        >>> all(0 <= each.probability <= 1 for each in comparison.improvements())
        True
    """

    algorithm: str
    over: str
    probability: float
    low: float
    """lower end of its 95 % interval, by bootstrap"""
    high: float


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """What `compare` returns: one `Result` per algorithm and problem, played on the same contexts and noise.

    It is a sequence of results; by name: `comparison["lin-ucb"]`, or `comparison["lin-ucb", "h1"]` of several problems.
    Printed, and in a notebook, it is a ranking with paired differences.

    Example:
        >>> from neuralucb import compare
        >>> comparison = compare(["glm-ucb", "lin-ucb"], ["h1", "h3"], rounds=100, seeds=5)
        >>> comparison["lin-ucb", "h1"].regret.shape
        (5, 100)
        >>> [rank.place for rank in comparison.ranking()], len(comparison.differences())
        ([1, 2, 1, 2], 2)
        >>> print(comparison.save("both.parquet"))
        both.parquet
    """

    results: tuple[Result, ...]
    scale: tuple[Result, ...] = ()
    """of `uniform`, played along on several problems; only `aggregates` looks at it"""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names, in order, each once."""
        return tuple(dict.fromkeys(result.algorithm for result in self.results))

    @property
    def problems(self) -> tuple[str, ...]:
        """Names, in order, each once."""
        return tuple(dict.fromkeys(result.problem for result in self.results))

    @property
    def remark(self) -> str:
        """What a reader must know before trusting an interval; empty if nothing."""
        return few_seeds(min(len(result.seeds) for result in self.results))

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
        found = [one for one in self.results if one.algorithm == algorithm and problem in (None, one.problem)]
        if len(found) != 1:
            why = "was played on several problems; name one too" if found else "is not in this comparison"
            raise KeyError(f"{which!r} {why}: {', '.join(self.algorithms)} on {', '.join(self.problems)}")
        return found[0]

    def differences(self, to: str | None = None) -> list[Difference]:
        """Final regret of every other algorithm minus that of `to`, paired by seed, with Student's interval.

        Args:
            to: The algorithm compared with; the first one if not given.

        Returns:
            One per other algorithm and problem; below 0 the other algorithm is better.

        Raises:
            InputError: If `to` is not in this comparison.
        """
        base = self._named("to", to)
        found = []
        for result in self.results:
            if result.algorithm != base:
                values = result.final_regret - self[base, result.problem].final_regret
                found.append(Difference(result.algorithm, base, result.problem, estimate_mean(values), len(values)))
        return found

    def ranking(self) -> list[Rank]:
        """Algorithms of each problem by their mean final regret, the least first; equal means share a place."""
        ranks: list[Rank] = []
        for problem in self.problems:
            mine = [result for result in self.results if result.problem == problem]
            means = sorted(float(result.final_regret.mean()) for result in mine)
            for result in sorted(mine, key=lambda one: float(one.final_regret.mean())):
                regret = estimate_mean(result.final_regret)
                place = 1 + means.index(regret.mean)
                ranks.append(Rank(place, result.algorithm, problem, regret, result.diverged, len(result.seeds)))
        return ranks

    def aggregates(self) -> list[Aggregate]:
        """For each algorithm the interquartile mean of its regret over all problems, with a bootstrap interval.

        Problems have different scales, so regret is divided by the mean regret of `uniform` on the same problem, which
        `compare` plays along on several problems. Problems are the strata: seeds are resampled within each.

        Returns:
            One per algorithm, the least first.

        Raises:
            InputError: If `uniform` was not played, or has no regret.
        """
        scale = self._scale()
        found = []
        for algorithm in self.algorithms:
            groups = [self[algorithm, problem].final_regret / scale[problem] for problem in self.problems]
            low, high = stratified_bootstrap(groups, _pooled_mean)
            found.append(Aggregate(algorithm, Estimate(_pooled_mean(groups), low, high)))
        return sorted(found, key=lambda one: one.share.mean)

    def improvements(self, over: str | None = None) -> list[Improvement]:
        """How likely a run of each other algorithm has less regret than one of `over`, with a bootstrap interval.

        Args:
            over: The algorithm compared with; the first one if not given.

        Returns:
            One per other algorithm, averaged over problems; ½ means that neither is better.

        Raises:
            InputError: If `over` is not in this comparison.
        """
        base = self._named("over", over)
        found = []
        for algorithm in self.algorithms:
            if algorithm != base:
                groups = [self[name, problem].final_regret for problem in self.problems for name in (algorithm, base)]
                low, high = stratified_bootstrap(groups, _mean_improvement)
                found.append(Improvement(algorithm, base, _mean_improvement(groups), low, high))
        return found

    def to_frame(self, *, every: int = 1) -> "pandas.DataFrame":
        """All results in long form, a row per algorithm, problem, seed and round; see `Result.to_frame`.

        Args:
            every: Keep only rounds every, 2·every, … and the last.

        Returns:
            Columns algorithm, problem, seed, round and regret; more with a trace.

        Raises:
            InputError: If pandas is not installed.
        """
        return make_frame(self.results, every=every)

    def plot(self, ax: Any = None) -> Any:
        """Draw cumulative regret, one line per algorithm, one panel per problem: means over seeds and 95 % bands.

        Args:
            ax: Axes to draw into, one per problem; if not set, a new figure of pyplot.

        Returns:
            The axes; a list of them with several problems.

        Raises:
            InputError: If matplotlib is not installed, or `ax` does not have one per problem.
        """
        from neuralucb.display.figures import plot_results  # the one way up: a comparison asks to be drawn

        given = None if ax is None else list(np.ravel(ax))
        panels = [[result for result in self.results if result.problem == problem] for problem in self.problems]
        axes = plot_results(panels, given)
        return axes[0] if len(axes) == 1 else axes

    def save(self, path: str | Path) -> Path:
        """Write all of it to a Parquet file, one row per result and seed.

        Args:
            path: The file; an existing one is replaced.

        Returns:
            The file.

        Raises:
            InputError: If it cannot be written, or pyarrow is not installed.
        """
        from neuralucb.experiments.result_files import write_results

        return write_results(path, self.results, scale=self.scale)

    @classmethod
    def load(cls, path: str | Path) -> "Comparison":
        """Read what `save` wrote.

        Args:
            path: The file.

        Returns:
            The same comparison.

        Raises:
            InputError: If it cannot be read.
        """
        from neuralucb.experiments.result_files import read_results

        found = read_results(path)
        return cls(*(tuple(one.result for one in found if one.is_scale is scale) for scale in (False, True)))

    def __repr__(self) -> str:
        return f"Comparison({heading(self.results)})"

    def __str__(self) -> str:
        parts = [heading(self.results)]
        parts += [f"{title}\n{text_table(rows, left=left)}" for title, rows, left in self._tables()]
        return "\n\n".join([*parts, *([self.remark] if self.remark else [])])

    def _repr_html_(self) -> str:
        tables = [html_table(rows, title=title) for title, rows, _ in self._tables()]
        remark = f"<p><em>{escape(self.remark)}</em></p>" if self.remark else ""
        return "".join([f"<p>{escape(heading(self.results))}</p>", *tables, remark])

    def _tables(self) -> list[tuple[str, list[list[str]], int]]:
        """Titles, rows, and how many columns are aligned to the left."""
        tables = [(f"final regret on {problem}", ranking_table(self, problem), 2) for problem in self.problems]
        if len(self.problems) > 1 and (self.scale or SCALE in self.algorithms):
            tables.append(("over all problems", aggregate_table(self), 1))
        return tables

    def _named(self, argument: str, name: str | None) -> str:
        chosen = self.algorithms[0] if name is None else name
        if chosen not in self.algorithms:
            raise InputError(f"{argument} must be one of {', '.join(self.algorithms)}, got {chosen!r}.")
        return chosen

    def _scale(self) -> dict[str, float]:
        played = {result.problem: result for result in (*self.results, *self.scale) if result.algorithm == SCALE}
        missing = [problem for problem in self.problems if problem not in played]
        if missing:
            raise InputError(
                f"aggregates need {SCALE!r} on {', '.join(missing)}: regret is counted as a share of its; compare on "
                f"several problems, or add {SCALE!r} to the algorithms."
            )
        scale = {problem: float(played[problem].final_regret.mean()) for problem in self.problems}
        for problem, regret in scale.items():
            if regret <= 0:
                raise InputError(f"{SCALE!r} has no regret on {problem}: all arms are equal there; leave it out.")
        return scale


def _pooled_mean(groups: Sequence[np.ndarray]) -> float:
    return interquartile_mean(np.concatenate(groups))


def _mean_improvement(groups: Sequence[np.ndarray]) -> float:
    """Averaged over problems; groups are ours, theirs, ours, theirs, …"""
    pairs = zip(groups[::2], groups[1::2], strict=True)
    return float(np.mean([probability_of_improvement(ours, theirs) for ours, theirs in pairs]))
