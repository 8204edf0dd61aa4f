"""The decisions of a log that an estimate may use: those with a reward and, where it divides by them, a propensity."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neuralucb.logs.batches import Batch, batches
from neuralucb.logs.formats import Log
from neuralucb.rules import deterministic
from neuralucb.runtime.errors import InputError

__all__ = ["Decisions", "Part", "decisions_of", "propensities"]

CURE = (
    "--skip-bad (skip_deterministic=True) leaves such decisions out and counts them; the direct method (methods: "
    "direct) divides by no propensity, but trusts its model alone; log with a floor of exploration next time."
)


class Part(NamedTuple):
    """A part of a log, and which of its decisions to use."""

    log: Log
    begin: int
    end: int | None
    divides: bool
    """whether propensities are divided by, which deterministic decisions do not allow"""
    skip_deterministic: bool
    """leave deterministic decisions out, instead of refusing the log"""


class Decisions(NamedTuple):
    """A batch of decisions, and which of them to use."""

    batch: Batch
    first: int
    """number of the batch's first decision, counted from 0 at the beginning of the part"""
    use: np.ndarray
    """[n]"""
    without_reward: int
    """left out: no reward was seen"""
    deterministic: int
    """left out, although they have a reward: the choice was deterministic"""


def decisions_of(part: Part) -> Iterator[Decisions]:
    """One pass over the part, batch by batch.

    Raises:
        InputError: A decision is deterministic, would be divided by, and is not to be skipped.
    """
    first = 0
    for batch in batches(part.log, begin=part.begin, end=part.end):
        rewarded = batch.valid & ~np.isnan(batch.reward)
        refused = np.zeros_like(rewarded)
        if part.divides:
            refused = rewarded & deterministic(batch.propensity, batch.available.sum(axis=1))
        if refused.any() and not part.skip_deterministic:
            raise InputError(
                f"{part.log.path}: decision {batch.line[refused.argmax()]} was deterministic: it has no propensity, or "
                f"a propensity of 1 among several arms, and says nothing about the other arms. {CURE}"
            )
        missing = int((batch.valid & ~rewarded).sum())
        yield Decisions(batch, first, rewarded & ~refused, missing, int(refused.sum()))
        first += int(batch.valid.sum())


def propensities(batch: Batch) -> np.ndarray:
    """[n] of the chosen arms. An arm that was the only one has 1, even where none is written; others may be NaN."""
    alone = np.isnan(batch.propensity) & (batch.available.sum(axis=1) == 1)
    return np.where(alone, 1.0, batch.propensity)
