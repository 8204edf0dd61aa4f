"""Is this log fit for use? All that is wrong with it, line by line, and what is suspicious about the whole."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuralucb.logs.formats import read_chunks
from neuralucb.rules import deterministic

__all__ = ["Findings", "SeenIds", "check_log"]

MOST = 50
"""Problems kept with their lines; the others are only counted."""


class Findings(NamedTuple):
    """What there is in a log, and what is wrong with it."""

    path: Path
    decisions: int
    """that can be used"""
    arms: int
    features: tuple[int, int]
    """shared by the arms, and each arm's own"""
    rewards: int
    """decisions whose reward was seen"""
    deterministic: int
    """decisions without chance: no propensity, or 1 among several arms"""
    lowest: float
    """smallest propensity; NaN if there is none"""
    problems: dict[str, int]
    """reason -> how often"""
    first: list[tuple[int, str]]
    """the first problems, with their lines"""

    @property
    def sound(self) -> bool:
        """Whether there are decisions and every one can be used."""
        return not self.problems


def check_log(path: Path) -> Findings:
    """Read the log through and find what is wrong. Memory: 8 bytes a decision, to tell ids apart."""
    problems: dict[str, int] = {}
    first: list[tuple[int, str]] = []

    def bad(line: int, reason: str) -> None:
        kind = reason.split(", got")[0]
        problems[kind] = problems.get(kind, 0) + 1
        if len(first) < MOST:
            first.append((line, reason))

    ids = SeenIds()
    decisions = arms = rewards = sure = 0
    features, lowest = (0, 0), np.inf
    for chunk in read_chunks(path, bad):
        for line, one in ids.seen_before(chunk.id, chunk.line):
            bad(line, f"duplicate id, got {one!r} again")
        decisions += len(chunk.line)
        rewards += int((~np.isnan(chunk.reward)).sum())
        none = np.isnan(chunk.propensity) | deterministic(chunk.propensity, chunk.counts)
        sure += int(none.sum())
        lowest = min(lowest, np.nanmin(chunk.propensity, initial=np.inf))
        arms = max(arms, int(chunk.arms.max(initial=-1)) + 1)
        features = len(chunk.names.shared), len(chunk.names.own)
    if not decisions and not problems:
        bad(1, "there is no decision in it")
    low = float(lowest) if np.isfinite(lowest) else np.nan
    return Findings(path, decisions, arms, features, rewards, sure, low, problems, sorted(first))


class SeenIds:
    """The ids met so far, as 64-bit numbers: one in 10¹³ pairs would be taken for a duplicate by chance."""

    def __init__(self) -> None:
        self.runs: list[np.ndarray] = []
        """each sorted, and more than twice as long as the next: an id is moved a few times, not once a chunk"""

    def seen_before(self, ids: np.ndarray, lines: np.ndarray) -> list[tuple[int, str]]:
        """Those of these ids that were seen before, each with its line; all of them are now."""
        known = np.asarray([one is not None for one in ids], dtype=bool)
        numbers = np.asarray([hash(one) for one in ids[known]], np.int64)
        _, first = np.unique(numbers, return_index=True)
        repeated = np.ones(len(numbers), dtype=bool)
        repeated[first] = False
        if not len(numbers):
            return []
        for run in self.runs:
            place = np.minimum(np.searchsorted(run, numbers), len(run) - 1)
            repeated |= run[place] == numbers
        self.runs.append(np.unique(numbers))
        while len(self.runs) > 1 and len(self.runs[-2]) <= 2 * len(self.runs[-1]):
            self.runs.append(np.sort(np.concatenate([self.runs.pop(), self.runs.pop()])))
        return [(int(line), str(one)) for line, one in zip(lines[known][repeated], ids[known][repeated], strict=True)]
