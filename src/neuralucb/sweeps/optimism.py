"""What choosing promises of the score: an interval for the mean regret on rows and seeds that it has not seen.

The regret of what was chosen is too good, since it was chosen for it. The promise is the prediction interval of a new
mean, and its upper end is corrected for the number of settings that were compared to the end.
"""

from typing import NamedTuple

import numpy as np

from neuralucb.experiments.statistics import CONFIDENCE, Estimate

__all__ = ["Sample", "promise", "score"]


class Sample(NamedTuple):
    """The final regret of one setting, and the regret that it came from."""

    regret: np.ndarray
    """[seeds] final"""
    curves: np.ndarray
    """[seeds, points] cumulative regret, at equal distances"""
    rounds: int
    rows: int | None
    """rows of the data set that were played; None where every seed is a world of its own"""

    @property
    def seed_variance(self) -> float:
        """Between seeds: worlds, orders of rows, networks."""
        return float(self.regret.var(ddof=1)) if len(self.regret) > 1 else float("nan")

    @property
    def row_variance(self) -> float:
        """Of the mean over any number of seeds, due to which rows the data set happens to have.

        All seeds play the same rows, so that they cannot tell. A round's regret varies with its row and by chance;
        taken for rows alone, its variance bounds what rows do. Neighbouring points are compared, since regret falls
        with learning.
        """
        if self.rows is None:
            return 0.0
        gained = np.diff(self.curves, axis=1, prepend=0.0)
        steps = np.diff(gained, axis=1)
        per_point = float((steps**2).mean() / 2) if steps.size else 0.0
        per_round = per_point * self.curves.shape[1] / self.rounds
        return self.rounds**2 * per_round / self.rows


def promise(chosen: Sample, *, seeds: int, rows: int | None, finalists: int) -> Estimate:
    """The mean on the seeds of choosing, with the 95 % interval in which the mean on new ones should lie.

    Args:
        chosen: The setting with the lowest mean.
        seeds: How many seeds will score it.
        rows: How many rows will; None where there are none.
        finalists: How many settings it was chosen from in the end; as many chances to look better than it is.
    """
    count = len(chosen.regret)
    variance = chosen.seed_variance * (1 / count + 1 / seeds)
    if chosen.rows is not None and rows is not None:
        variance += chosen.row_variance * (1 + chosen.rows / rows)
    reach, longer = (_quantile(count, (1 - CONFIDENCE) / 2 / among) * variance**0.5 for among in (1, finalists))
    mean = float(chosen.regret.mean())
    return Estimate(mean, mean - reach, mean + longer)


def score(scored: Sample) -> Estimate:
    """The mean on new seeds and rows, with a 95 % interval for the mean on all such."""
    count = len(scored.regret)
    reach = _quantile(count, (1 - CONFIDENCE) / 2) * (scored.seed_variance / count + scored.row_variance) ** 0.5
    mean = float(scored.regret.mean())
    return Estimate(mean, mean - reach, mean + reach)


def _quantile(seeds: int, tail: float) -> float:
    from scipy.special import stdtrit  # scipy.stats would cost a second to import

    return float(stdtrit(seeds - 1, 1 - tail)) if seeds > 1 else float("nan")
