"""Checking a log: what it holds, and everything that is wrong with it, line by line."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuralucb.logs.formats import read_chunks
from neuralucb.rules import deterministic
from neuralucb.runtime.records import brief

__all__ = ["Findings", "SeenIds", "check_log"]

MOST = 50
"""Problems kept with their lines; the others are only counted."""


@brief
class Findings(NamedTuple):
    """What a log holds, and what is wrong with it.

    Example:
        >>> findings = check_log(Path("log.parquet"))
        >>> findings.sound
        True
    """

    path: Path
    decisions: int
    """that can be used"""
    arms: int
    features: tuple[int, int]
    """shared by all arms, and per arm"""
    rewards: int
    """decisions whose reward was seen"""
    deterministic: int
    """deterministic decisions: no propensity, or 1 although there were several arms"""
    lowest: float
    """smallest propensity; NaN if no decision has one"""
    problems: dict[str, int]
    """reason -> how often"""
    first: list[tuple[int, str]]
    """the first problems, with their lines"""

    @property
    def sound(self) -> bool:
        """Whether the log has decisions, and all of them can be used."""
        return not self.problems


def check_log(path: Path) -> Findings:
    """Read a log from beginning to end and report what is wrong with it. Memory: 8 bytes per decision, for the ids.

    Args:
        path: The log, in any format.

    Returns:
        What it holds, how often each problem occurs, and the first problems with their lines.

    Raises:
        InputError: The file cannot be read, or is not a log.

    Example:
        >>> check_log(Path("log.parquet")).sound
        True
    """
    problems: dict[str, int] = {}
    first: list[tuple[int, str]] = []

    def bad(line: int, reason: str) -> None:
        kind = reason.split(", got")[0]
        problems[kind] = problems.get(kind, 0) + 1
        if len(first) < MOST:
            first.append((line, reason))

    ids = SeenIds()
    decisions = arms = rewards = deterministic_decisions = 0
    features, lowest = (0, 0), np.inf
    for chunk in read_chunks(path, bad):
        for line, one in ids.seen_before(chunk.id, chunk.line):
            bad(line, f"duplicate id, got {one!r} again")
        decisions += len(chunk.line)
        rewards += int((~np.isnan(chunk.reward)).sum())
        without_propensity = np.isnan(chunk.propensity) | deterministic(chunk.propensity, chunk.counts)
        deterministic_decisions += int(without_propensity.sum())
        lowest = min(lowest, np.nanmin(chunk.propensity, initial=np.inf))
        arms = max(arms, int(chunk.arms.max(initial=-1)) + 1)
        features = len(chunk.names.shared), len(chunk.names.own)
    if not decisions and not problems:
        bad(1, "the log has no decision")
    low = float(lowest) if np.isfinite(lowest) else np.nan
    return Findings(path, decisions, arms, features, rewards, deterministic_decisions, low, problems, sorted(first))


class SeenIds:
    """The ids seen so far, as 64-bit hashes: among a million ids, a false duplicate has a probability of 3 in 10⁸."""

    def __init__(self) -> None:
        self.runs: list[np.ndarray] = []
        """each sorted, and more than twice as long as the next: an id is moved a few times, not once per chunk"""

    def seen_before(self, ids: np.ndarray, lines: np.ndarray) -> list[tuple[int, str]]:
        """Those of these ids that were seen before, each with its line; from now on all of them are."""
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
