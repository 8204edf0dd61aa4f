"""Which settings of a race are dropped at the end of a stage: those that diverged, and those that are clearly worse."""

from typing import NamedTuple

import numpy as np

__all__ = ["Verdict", "project", "verdicts"]


class Verdict(NamedTuple):
    """Why a setting is dropped."""

    why: str
    """`diverged` or `worse`"""
    difference: float
    """`worse`: regret so far minus the leader's, mean over seeds; NaN if diverged"""
    p: float
    """`worse`: the larger p-value of the two tests; NaN if diverged"""
    leader: int | None
    """`worse`: the setting that it was compared with"""


def project(so_far: np.ndarray, at_half: np.ndarray, *, played: int, half: int, rounds: int) -> np.ndarray:
    """Regret after all rounds, if each run goes on as it did since round `half`."""
    return so_far + (rounds - played) * (so_far - at_half) / (played - half)


def verdicts(so_far: np.ndarray, projected: np.ndarray, diverged: np.ndarray, *, error: float) -> dict[int, Verdict]:
    """The settings to drop, by row.

    The leader has the lowest mean of projected regret. A setting is clearly worse if both its regret so far and its
    projected regret are larger than the leader's, each at level `error`: one that is behind, but catching up, stays,
    and so does one that is ahead, but slowing down. With one seed nothing is clearly worse.

    Args:
        so_far: [settings, seeds] cumulative regret.
        projected: [settings, seeds] the same after all rounds, by `project`.
        diverged: [settings] whether a run of the setting has diverged.
        error: Level of each test; the leader is the luckiest of all, so that of many equal settings more are dropped.
    """
    found = {int(row): Verdict("diverged", np.nan, np.nan, None) for row in np.flatnonzero(diverged)}
    sound = np.flatnonzero(~diverged)
    if len(sound) < 2 or so_far.shape[1] < 2:
        return found
    leader = int(np.argmin(projected[sound].mean(axis=1)))
    p = np.maximum(*(_paired_test(regret[sound], leader) for regret in (so_far, projected)))
    behind = (so_far[sound] - so_far[sound][leader]).mean(axis=1)
    for row in np.flatnonzero(p < error):
        found[int(sound[row])] = Verdict("worse", float(behind[row]), float(p[row]), int(sound[leader]))
    return found


def _paired_test(regret: np.ndarray, leader: int) -> np.ndarray:
    """One-sided p-values of Student's test that settings have more regret than the leader, paired by seed.

    A few seeds cannot tell the variance of a difference, so that each is averaged with the median of all settings',
    which doubles its degrees of freedom.
    """
    from scipy.special import stdtr  # scipy.stats would cost a second to import

    differences = regret - regret[leader]
    seeds = regret.shape[1]
    variance = differences.var(axis=1, ddof=1)
    others = np.arange(len(regret)) != leader
    variance = (variance + np.median(variance[others])) / 2
    mean = differences.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(variance / seeds)
    p = stdtr(2 * (seeds - 1), -t)
    p[np.isnan(t)] = 1.0  # equal on every seed
    p[leader] = 1.0
    return np.asarray(p)
