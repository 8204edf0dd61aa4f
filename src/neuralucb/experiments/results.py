"""The result of a run: regret of every seed, its statistics, and which seeds diverged."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from neuralucb import __version__
from neuralucb.experiments.statistics import estimate_mean, few_seeds, finite_or_none
from neuralucb.experiments.tables import heading, html_table, number, result_table, with_interval
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.words import counted
from neuralucb.settings import check_integer

if TYPE_CHECKING:
    import pandas
from neuralucb.runtime.records import brief

__all__ = ["Curve", "Result", "Summary", "Traces", "make_frame"]


@brief
class Summary(NamedTuple):
    """Final regret over seeds. Printed, it is one line.

    Example:
        >>> from neuralucb import run
        >>> summary = run("lin-ucb", "h1", rounds=100, seeds=5).summary()
        >>> summary.seeds, summary.low < summary.mean < summary.high
        (5, True)
    """

    mean: float
    std: float
    """standard deviation; NaN with a single seed"""
    low: float
    """lower end of Student's 95 % interval for the mean; NaN with a single seed"""
    high: float
    """its upper end"""
    seeds: int
    remark: str
    """that there are too few seeds to trust the interval; empty with five or more"""

    def __str__(self) -> str:
        deviation = "" if math.isnan(self.std) else f", standard deviation {number(self.std)}"
        words = f"{with_interval(self.mean, self.low, self.high)}{deviation}"
        return words + (f"\n{self.remark}" if self.remark else f", {counted(self.seeds, 'seed')}")


class Traces(NamedTuple):
    """What happened round by round; every array is [seeds, rounds].

    Example:
        >>> from neuralucb import run
        >>> traces = run("lin-ucb", "h1", rounds=100, seeds=5, trace=True).trace
        >>> traces.arm.shape
        (5, 100)
    """

    arm: np.ndarray
    """arm played"""
    reward: np.ndarray
    """reward observed, noise included"""
    regret: np.ndarray
    """expected reward of the best arm minus that of the arm played: of this round alone"""
    propensity: np.ndarray
    """how likely the arm played was, before it was drawn"""
    loss: np.ndarray
    """training loss after the training that followed the round; NaN where none did"""

    def __repr__(self) -> str:
        seeds, rounds = self.arm.shape
        return f"Traces({counted(seeds, 'seed')}, {counted(rounds, 'round')}: {', '.join(self._fields)})"


class Curve(NamedTuple):
    """Cumulative regret of an algorithm on a problem, as a figure draws it."""

    algorithm: str
    problem: str
    rounds: np.ndarray
    regret: np.ndarray
    """[seeds, points] after these rounds"""
    band: tuple[np.ndarray, np.ndarray] | None
    """the interval of the mean at each point; None with fewer than five seeds"""
    diverged: int
    """seeds that diverged"""


class Result(NamedTuple):
    """One algorithm with one combination of settings on one problem, over all seeds.

    Example:
        >>> from neuralucb import run
        >>> result = run("lin-ucb", "h1", rounds=100, seeds=5)
        >>> result.diverged, result.regret.shape
        (0, (5, 100))
        >>> means = result.to_frame().groupby("round").regret.mean()
        >>> result.plot().figure.savefig("regret.pdf")
        >>> print(result.save("lin-ucb.parquet"))
        lin-ucb.parquet
    """

    algorithm: str
    problem: str
    rounds: int
    schedule: str
    settings: dict[str, Any]
    """of the algorithm and of the problem, defaults included"""
    seeds: tuple[int, ...]
    regret: np.ndarray
    """[seeds, rounds] cumulative regret"""
    diverged_at: np.ndarray
    """[seeds] round of divergence, 0 if none"""
    compile_seconds: float
    seconds: float
    """of computing, without compiling; points of a grid that run together share it"""
    device: str
    trace: Traces | None = None
    """arms, rewards, regret, propensities and losses, round by round; None without `trace=True`"""
    version: str = __version__
    """of neuralucb"""
    jax_version: str = jax.__version__

    @property
    def final_regret(self) -> np.ndarray:
        """[seeds] cumulative regret after the last round."""
        return self.regret[:, -1]

    @property
    def diverged(self) -> int:
        """How many seeds diverged."""
        return int((self.diverged_at > 0).sum())

    def summary(self) -> Summary:
        """Mean, standard deviation and 95 % interval of the final regret."""
        values = self.final_regret
        std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        mean, low, high = estimate_mean(values)
        return Summary(mean, std, low, high, len(values), few_seeds(len(values)))

    def to_frame(self, *, every: int = 1) -> "pandas.DataFrame":
        """The result in long form: a row per seed and round.

        Args:
            every: Keep only rounds every, 2·every, … and the last.

        Returns:
            Columns algorithm, problem, seed, round (from 1) and regret (cumulative); with a trace also arm, reward,
            instantaneous_regret, propensity and loss.

        Raises:
            InputError: If pandas is not installed, or `every` is not a positive whole number.

        Example:
            >>> import pandas
            >>> from neuralucb import run_grid
            >>> grid = run_grid("lin-ucb", "h1", {"exploration": [0.1, 1]}, rounds=100, seeds=5)
            >>> frame = pandas.concat(one.to_frame(every=10).assign(**one.settings) for one in grid)
        """
        return make_frame([self], every=every)

    def plot(self, ax: Any = None) -> Any:
        """Draw cumulative regret over rounds: the mean over seeds, and its 95 % band, or the seeds if they are few.

        Args:
            ax: Where to draw; if not set, a new figure of pyplot.

        Returns:
            The axes; `result.plot().figure.savefig("regret.pdf")` writes a file.

        Raises:
            InputError: If matplotlib is not installed.
        """
        from neuralucb.display.figures import plot_results  # the one way up: a result asks to be drawn

        (axes,) = plot_results([[self]], None if ax is None else [ax])
        return axes

    def save(self, path: str | Path) -> Path:
        """Write all of it to a Parquet file, one row per seed, which pandas, polars and DuckDB read, too.

        Args:
            path: The file; an existing one is replaced.

        Returns:
            The file.

        Raises:
            InputError: If it cannot be written, or pyarrow is not installed.
        """
        from neuralucb.experiments.result_files import write_results

        return write_results(path, [self])

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        """Read what `save` wrote.

        Args:
            path: The file.

        Returns:
            The same result: curves, settings, seeds, divergence, versions and trace.

        Raises:
            InputError: If it cannot be read, or holds several results.
        """
        from neuralucb.experiments.result_files import read_results

        found = read_results(path)
        if len(found) != 1:
            raise InputError(f"{path} holds {len(found)} results; Comparison.load reads them.")
        return found[0].result

    def as_json(self) -> dict[str, Any]:
        """The result as a dictionary for JSON, without the curves; what cannot be computed is None, never NaN."""
        summary = self.summary()
        return {
            "algorithm": self.algorithm,
            "problem": self.problem,
            "rounds": self.rounds,
            "schedule": self.schedule,
            "settings": self.settings,
            "seeds": list(self.seeds),
            "final_regret": {
                "mean": summary.mean,
                "std": finite_or_none(summary.std),
                "interval95": None if math.isnan(summary.low) else [summary.low, summary.high],
                "remark": summary.remark or None,
                "per_seed": [float(value) for value in self.final_regret],
            },
            "diverged": self.diverged,
            "diverged_at": {
                str(seed): int(at) for seed, at in zip(self.seeds, self.diverged_at, strict=True) if at > 0
            },
            "compile_seconds": round(self.compile_seconds, 3),
            "seconds": round(self.seconds, 3),
            "device": self.device,
            "version": self.version,
            "jax": self.jax_version,
        }

    def __repr__(self) -> str:
        summary = self.summary()
        words = with_interval(summary.mean, summary.low, summary.high)
        failed = f", {self.diverged} diverged" if self.diverged else ""
        traced = ", traced" if self.trace is not None else ""
        return f"Result({heading([self])}: regret {words}{failed}{traced})"

    def __str__(self) -> str:
        summary = self.summary()
        lines = [f"{heading([self])}: final regret {with_interval(summary.mean, summary.low, summary.high)}"]
        if self.diverged:
            lines.append(
                f"{self.diverged} of {len(self.seeds)} diverged: their regret says nothing about the algorithm."
            )
        lines += [summary.remark] if summary.remark else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(result_table([self]), title=heading([self]), remarks=[self.summary().remark])


def make_frame(results: Sequence[Result], *, every: int = 1) -> "pandas.DataFrame":
    """Several results in long form, one below the other; see `Result.to_frame`."""
    try:
        import pandas
    except ImportError:
        raise InputError("to_frame needs pandas, which is not installed; pip install pandas.") from None
    every = check_integer("every", every, 1)
    return pandas.concat([pandas.DataFrame(_columns(result, every)) for result in results], ignore_index=True)


def _columns(result: Result, every: int) -> dict[str, Any]:
    rows = np.unique(np.minimum(np.arange(every, result.rounds + every, every), result.rounds)) - 1
    seeds = np.asarray(result.seeds, np.int64)
    columns = {
        "algorithm": result.algorithm,
        "problem": result.problem,
        "seed": np.repeat(seeds, len(rows)),
        "round": np.tile(rows + 1, len(seeds)),
        "regret": result.regret[:, rows].ravel(),
    }
    if result.trace is not None:
        kept = {name: values[:, rows].ravel() for name, values in result.trace._asdict().items()}
        columns |= {"instantaneous_regret" if name == "regret" else name: values for name, values in kept.items()}
    return columns
