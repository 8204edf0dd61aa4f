"""Decisions in columns: what every format is read into and written from, and what makes a decision unusable."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = [
    "MOST_ARMS",
    "Bad",
    "Chunk",
    "Dense",
    "Names",
    "Summary",
    "as_integers",
    "blank_times",
    "clean",
    "dense",
    "faults",
    "spans",
    "take",
    "unnamed",
]

Bad: TypeAlias = Callable[[int, str], None]
"""Called with the line of a decision and what is wrong with it; raises, or counts it and returns.

Example:
    >>> def bad(line, reason):
    ...     print(f"line {line} is left out: {reason}")
"""

TOLERANCE = 1e-3
"""How far probabilities may be from a sum of 1, and from the logged propensity: tools round them."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest number in float32, in which networks compute."""

MOST_ARMS = 1 << 16
"""Arms per log, at most: larger numbers are identifiers, and a policy would allocate all numbers below them."""


@brief
class Names(NamedTuple):
    """The names of the columns of features. New names are only added at the end, so that a column keeps its place.

    Example:
        >>> from neuralucb.logs import open_log
        >>> log = open_log(Path("log.parquet"))
        >>> log.names.own
        ('own[0]', 'own[1]')
    """

    shared: tuple[str, ...]
    """features that all arms of a decision share"""
    own: tuple[str, ...]
    """features of each arm"""


@brief
class Chunk(NamedTuple):
    """n consecutive decisions with N arms in total: the arms of one decision are next to each other.

    Example:
        >>> from neuralucb.logs import open_log
        >>> log = open_log(Path("log.parquet"))
        >>> sum(len(chunk.reward) for chunk in log.chunks())
        40
    """

    names: Names
    line: np.ndarray
    """[n] int64, the line of each decision in its file, from 1"""
    id: np.ndarray
    """[n] str or None"""
    time: np.ndarray
    """[n] datetime64[us] in UTC; NaT where it is not known"""
    counts: np.ndarray
    """[n] int64, the number of arms that were available"""
    arms: np.ndarray
    """[N] int32, the arms that were available, from 0"""
    shared: np.ndarray
    """[n, features] float32 or float64"""
    own: np.ndarray
    """[N, features] float32 or float64"""
    arm: np.ndarray
    """[n] int32 or int64, the arm chosen"""
    reward: np.ndarray
    """[n] float64 or int64; NaN where no reward was seen"""
    propensity: np.ndarray
    """[n] float64, of the arm chosen; NaN where the choice was deterministic"""
    weight: np.ndarray
    """[n] float64, how many decisions each stands for: above 1 where a log was subsampled"""
    probabilities: np.ndarray | None = None
    """[N] float64, of every arm; NaN for decisions that do not have them"""
    position: np.ndarray | None = None
    """[n] int64, the place on a page; only the Open Bandit formats have it"""
    expected: np.ndarray | None = None
    """[N] float64, expected rewards; only synthetic data has them"""


class Summary(NamedTuple):
    """What is known about a log before its first chunk."""

    names: Names
    arms: int
    """K, one more than the highest arm"""
    decisions: int
    """how many, at most: those that cannot be used are only found by reading"""


@brief
class Dense(NamedTuple):
    """Decisions padded to K arms, as a policy takes them; arm k is at index k.

    Example:
        >>> from neuralucb.logs import open_log
        >>> log = open_log(Path("log.parquet"))
        >>> arrays = [dense(chunk, log.names, arms=log.arms) for chunk in log.chunks()]
    """

    shared: np.ndarray
    """[n, features] float32"""
    own: np.ndarray
    """[n, K, features] float32"""
    available: np.ndarray
    """[n, K] bool"""


def clean(chunk: Chunk, bad: Bad) -> Chunk:
    """The usable decisions; every other one goes to `bad` with its line and the first reason."""
    keep = np.ones(len(chunk.line), dtype=bool)
    for wrong, reason in faults(chunk):
        for row in np.flatnonzero(wrong & keep):
            bad(int(chunk.line[row]), reason(int(row)))
        keep &= ~wrong
    return take(chunk, keep)


def faults(chunk: Chunk) -> Iterator[tuple[np.ndarray, Callable[[int], str]]]:
    """What no log may hold: which decisions [n], and a function that gives the reason for one of them."""
    _, owner = spans(chunk)
    count = len(chunk.counts)
    yield chunk.counts < 1, lambda row: "no arm was available"
    outside = (chunk.arms < 0) | (chunk.arms >= MOST_ARMS)
    yield _any(owner, outside, count), lambda row: f"an arm is not in 0 to {MOST_ARMS - 1}; number arms from 0"
    yield _repeated(chunk, owner), lambda row: "an arm is listed twice"
    chosen = owner[chunk.arms == chunk.arm[owner]]
    yield (
        np.bincount(chosen, minlength=count) == 0,
        lambda row: f"arm {chunk.arm[row]} is not among the {chunk.counts[row]} available",
    )
    p = chunk.propensity
    yield (p <= 0) | (p > 1), lambda row: f"propensity must be above 0 and at most 1, got {p[row]:g}"
    reward = chunk.reward.astype(np.float64, copy=False)
    yield (
        ~(np.abs(reward) <= LARGEST) & ~np.isnan(reward),
        lambda row: f"reward must be finite, and at most {LARGEST:.2g} in magnitude, got {chunk.reward[row]}",
    )
    yield (
        ~(np.isfinite(chunk.weight) & (chunk.weight > 0)),
        lambda row: f"weight must be positive, got {chunk.weight[row]}",
    )
    for values, who in ((chunk.shared, None), (chunk.own, owner)):
        with np.errstate(over="ignore"):
            wrong = ~np.asarray(np.isfinite(values.astype(np.float32, copy=False)).all(axis=1))
        yield (
            wrong if who is None else _any(who, wrong, count),
            lambda row: f"a feature is NaN or infinite, or above {LARGEST:.2g} in magnitude",
        )
    for each, name in ((chunk.probabilities, "probabilities"), (chunk.expected, "expected rewards")):
        if each is not None:
            some = _any(owner, np.isnan(each), count) & _any(owner, ~np.isnan(each), count)
            yield some, partial(_some_are_nan, name)
    if chunk.probabilities is not None and count:
        yield from _probability_faults(chunk, owner)


def dense(chunk: Chunk, names: Names, *, arms: int) -> Dense:
    """Pad decisions to K arms, with features in the columns of `names`.

    Args:
        chunk: The decisions; features that it does not have yet are 0.
        names: All features of the log, `log.names`.
        arms: K, `log.arms`.

    Returns:
        Features and availability of all K arms.

    Raises:
        InputError: An arm is K or higher.

    Example:
        >>> from neuralucb.logs import open_log
        >>> log = open_log(Path("log.parquet"))
        >>> for chunk in log.chunks():
        ...     shared, own, available = dense(chunk, log.names, arms=log.arms)
    """
    n = len(chunk.counts)
    _, owner = spans(chunk)
    beyond = np.flatnonzero(chunk.arms >= arms)
    if beyond.size:
        line, arm = chunk.line[owner[beyond[0]]], chunk.arms[beyond[0]]
        raise InputError(f"decision {line} has arm {arm}, but `arms` is {arms}; it must be above the highest arm.")
    available = np.zeros((n, arms), dtype=bool)
    available[owner, chunk.arms] = True
    shared = np.zeros((n, len(names.shared)), np.float32)
    shared[:, : chunk.shared.shape[1]] = chunk.shared
    if len(chunk.arms) == n * arms and (chunk.arms.reshape(n, arms) == np.arange(arms)).all():
        own = chunk.own.reshape(n, arms, -1).astype(np.float32, copy=False)
        if own.shape[2] == len(names.own):
            return Dense(shared, own, available)
    own = np.zeros((n, arms, len(names.own)), np.float32)
    own[owner, chunk.arms, : chunk.own.shape[1]] = chunk.own
    return Dense(shared, own, available)


def take(chunk: Chunk, keep: np.ndarray) -> Chunk:
    """Only the decisions marked in `keep` [n]."""
    if keep.all():
        return chunk
    of_arm = np.repeat(keep, chunk.counts)
    by_arm = {"arms", "own", "probabilities", "expected"}
    rows: dict[str, Any] = {
        name: None if value is None else value[of_arm if name in by_arm else keep]
        for name, value in chunk._asdict().items()
        if name != "names"
    }
    return chunk._replace(**rows)


def spans(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Where the arms of each decision begin [n], and the decision of each arm [N]."""
    begins = np.cumsum(chunk.counts) - chunk.counts
    return begins, np.repeat(np.arange(len(chunk.counts)), chunk.counts)


def as_integers(values: np.ndarray, dtype: type[np.signedinteger] = np.int32) -> tuple[np.ndarray, np.ndarray]:
    """The values as integers of a type, and which it cannot hold (fractions, NaN, too large): these become 0."""
    limits = np.iinfo(dtype)
    if values.dtype.kind in "iu":
        wrong = (values < limits.min) | (values > limits.max)
    else:
        below = -float(limits.min)  # 2³¹ or 2⁶³: a float has no 2⁶³ - 1
        wrong = ~((values >= -below) & (values < below) & (values == np.floor(values)))
    return np.where(wrong, 0, values).astype(dtype), wrong


def unnamed(shared: int, own: int) -> Names:
    """Names for features that have none: shared[0], shared[1], …, own[0], …"""
    return Names(*(tuple(f"{kind}[{n}]" for n in range(count)) for kind, count in (("shared", shared), ("own", own))))


def blank_times(count: int) -> np.ndarray:
    """Times that are not known."""
    return np.full(count, np.datetime64("NaT"), dtype="datetime64[us]")


def _some_are_nan(name: str, row: int) -> str:
    return f"some {name} are NaN; give all of a decision's, or none"


def _probability_faults(chunk: Chunk, owner: np.ndarray) -> Iterator[tuple[np.ndarray, Callable[[int], str]]]:
    assert chunk.probabilities is not None
    p, count = chunk.probabilities, len(chunk.counts)
    given = ~_any(owner, np.isnan(p), count)
    yield _any(owner, (p < 0) | (p > 1), count), lambda row: "a probability is below 0 or above 1"
    sums = np.bincount(owner, p, minlength=count)
    yield given & ~(np.abs(sums - 1) <= TOLERANCE), lambda row: f"probabilities must sum to 1, got {sums[row]:g}"
    mine = chunk.arms == chunk.arm[owner]
    of_chosen = np.full(count, np.nan)
    of_chosen[owner[mine]] = p[mine]
    far = np.abs(of_chosen - chunk.propensity) > TOLERANCE
    yield (
        given & far,
        lambda row: f"the propensity {chunk.propensity[row]:g} is not the arm's probability {of_chosen[row]:g}",
    )


def _any(owner: np.ndarray, wrong: np.ndarray, count: int) -> np.ndarray:
    """[n] whether any arm of a decision is marked."""
    marked = np.zeros(count, dtype=bool)
    marked[owner[wrong]] = True
    return marked


def _repeated(chunk: Chunk, owner: np.ndarray) -> np.ndarray:
    count, arms = len(chunk.counts), chunk.arms
    same = owner[1:] == owner[:-1]
    if not (same & (np.diff(arms) <= 0)).any():  # rising within each decision, as nearly every log is
        return np.zeros(count, dtype=bool)
    order = np.lexsort((arms, owner))
    twice = (np.diff(arms[order]) == 0) & (np.diff(owner[order]) == 0)
    return _any(owner[order][1:], twice, count)
