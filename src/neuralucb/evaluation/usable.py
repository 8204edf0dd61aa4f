"""Which decisions an estimator may use: those with a reward and, where it divides by propensities, with chance."""

from typing import NamedTuple

import numpy as np

from neuralucb.exploring import deterministic
from neuralucb.logs.batches import Batch
from neuralucb.logs.files import Log

__all__ = ["Usable", "propensities", "usable"]

CURE = (
    "--skip-bad (skip_deterministic=True) leaves such decisions out, and counts them; the direct method divides by "
    "none, but trusts its model alone (methods: direct); and the next log can have a floor of exploration."
)


class Usable(NamedTuple):
    """The decisions of a batch that count, and how many do not."""

    use: np.ndarray
    """[n]"""
    without_reward: int
    deterministic: int
    """left out, although they have a reward: there was no chance in them"""


def propensities(batch: Batch) -> np.ndarray:
    """[n] of the arms chosen. One that was alone had 1, also where none is written; others without one stay NaN."""
    alone = np.isnan(batch.propensity) & (batch.available.sum(axis=1) == 1)
    return np.where(alone, 1.0, batch.propensity)


def usable(log: Log, batch: Batch, *, divides: bool, skip_deterministic: bool) -> Usable:
    """The decisions that count; a deterministic one is refused where it would be divided by, unless it is skipped."""
    rewarded = batch.valid & ~np.isnan(batch.reward)
    if not divides:
        return Usable(rewarded, int((batch.valid & ~rewarded).sum()), 0)
    sure = rewarded & deterministic(batch.propensity, batch.available.sum(axis=1))
    if sure.any() and not skip_deterministic:
        raise ValueError(
            f"{log.path}: decision {batch.line[sure.argmax()]} was deterministic: it has no propensity, or 1 although "
            f"there were several arms, and tells nothing about the others. {CURE}"
        )
    return Usable(rewarded & ~sure, int((batch.valid & ~rewarded).sum()), int(sure.sum()))
