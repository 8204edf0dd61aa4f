"""Off-policy estimators as sums over decisions: batch by batch, in constant memory.

direct         Σ_a π(a) r̂(a)
ips            w r,  w = π(a)/p                                    (Horvitz & Thompson 1952)
snips          Σ w r / Σ w                                         (Swaminathan & Joachims 2015)
doubly-robust  Σ_a π(a) r̂(a) + w (r - r̂(a))                        (Dudík, Langford & Li 2011)
switch         the same, but w counts as 0 where it is above τ     (Wang, Agarwal & Dudík 2017)
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from neuralucb.evaluation.records import Estimate, Overlap, with_interval

__all__ = ["Rounds", "Sums", "add", "estimates_of", "logged_of", "overlap_of"]

TINY = 0.01
"""A propensity below this gives weights above 100."""
HEAVY = 10
"""Below this no weight carries an estimate, however small the propensities of many arms must be."""
FEW = 50
"""Below this effective size, a mean of heavy weights is not yet normal, and its interval is too narrow."""
LEAST = 2
"""Below this effective size nothing is known about the error: one decision, or none that agrees, does not vary."""
COLUMNS = ("reward", "ips", "weight", "direct", "doubly-robust", "switch")


class Rounds(NamedTuple):
    """Decisions as an estimator sees them."""

    reward: np.ndarray
    """[n]"""
    propensity: np.ndarray
    """[n] of the logged arm, by the policy that logged"""
    arm: np.ndarray
    """[n] the logged arm"""
    target: np.ndarray
    """[n, K] π, the probabilities of the policy that is evaluated"""
    predicted: np.ndarray
    """[n, K] r̂, what a model expects; zeros if there is none"""
    stands_for: np.ndarray
    """[n] decisions that each stands for; ones unless the log was thinned"""


class Sums(NamedTuple):
    """All that the estimators need to know, as sums with weights s: Σs, Σs², Σs v, Σs² v, Σs² v vᵀ over COLUMNS."""

    decisions: int
    s: float
    squares: float
    first: np.ndarray
    weighted: np.ndarray
    second: np.ndarray
    largest: float
    tiny: float

    @classmethod
    def nothing(cls) -> "Sums":
        """Before the first decision."""
        k = len(COLUMNS)
        return cls(0, 0.0, 0.0, np.zeros(k), np.zeros(k), np.zeros((k, k)), 0.0, 0.0)


def add(sums: Sums, rounds: Rounds, *, switch: float) -> Sums:
    """The sums with more decisions in them."""
    rows = np.arange(len(rounds.arm))
    chosen = rounds.target[rows, rounds.arm]
    w = chosen / rounds.propensity
    direct = (rounds.target * rounds.predicted).sum(axis=1)
    residual = rounds.reward - rounds.predicted[rows, rounds.arm]
    kept = np.where(w <= switch, w, 0.0)
    values = np.stack(
        [rounds.reward, w * rounds.reward, w, direct, direct + w * residual, direct + kept * residual], axis=1
    ).astype(np.float64)
    s = rounds.stands_for
    heavy = values * (s**2)[:, None]
    return Sums(
        sums.decisions + len(rows),
        sums.s + float(s.sum()),
        sums.squares + float((s**2).sum()),
        sums.first + s @ values,
        sums.weighted + heavy.sum(axis=0),
        sums.second + heavy.T @ values,
        max(sums.largest, float(w.max(initial=0.0))),
        sums.tiny + float(s[rounds.propensity < TINY].sum()),
    )


def logged_of(sums: Sums, *, level: float) -> Estimate:
    """What the logged policy itself earned a decision."""
    (value, error), size = _mean(sums, "reward"), _size(sums)
    return with_interval("logged", value, _known(error, size), size, level=level)


def estimates_of(
    sums: Sums, methods: tuple[str, ...], *, level: float, model_variance: Mapping[str, float] | None = None
) -> list[Estimate]:
    """The estimates asked for. `model_variance`: how uncertain the model leaves the value, by method."""
    made = []
    for method in methods:
        if method == "snips":
            value, error = _ratio(sums)
        else:
            value, error = _mean(sums, method)
        error = float(np.hypot(error, np.sqrt((model_variance or {}).get(method, 0.0))))
        effective = _size(sums) if method == "direct" else _effective(sums)
        made.append(with_interval(method, value, _known(error, effective), effective, level=level))
    return made


def overlap_of(sums: Sums) -> Overlap:
    """The diagnosis."""
    mean, error = _mean(sums, "weight")
    effective = _effective(sums)
    error = _known(error, effective)
    share, tiny = effective / max(_size(sums), 1), sums.tiny / sums.s
    words = []
    if abs(mean - 1) > 4 * error + 1e-6:
        words.append(
            f"weights average {mean:.3g} ± {error:.2g}, and must average 1: the propensities are wrong, or the policy "
            "takes arms that the log never took"
        )
    if share < 0.1 or effective < FEW:
        words.append(
            f"{'little overlap' if share < 0.1 else 'few decisions'}: {sums.decisions} decisions tell as much as "
            f"{effective:.0f} of the policy's own"
            + (", too few for its intervals" if effective < FEW else "")
            + ("; the log has hardly taken the policy's arms" if effective < LEAST and share < 0.1 else "")
        )
    if tiny > 0.01 and sums.largest > HEAVY:
        words.append(f"{tiny:.1%} of the propensities are below {TINY}: a few decisions carry the estimate")
    return Overlap(sums.largest, share, mean, error, tiny, tuple(words))


def _mean(sums: Sums, column: str) -> tuple[float, float]:
    """Σs v/Σs and its standard error, sqrt(Σs²(v - mean)²)/Σs."""
    at = COLUMNS.index(column)
    mean = sums.first[at] / sums.s
    squares = sums.second[at, at] - 2 * mean * sums.weighted[at] + mean**2 * sums.squares
    return float(mean), float(np.sqrt(max(squares, 0.0)) / sums.s)


def _ratio(sums: Sums) -> tuple[float, float]:
    """Σs w r/Σs w, and its standard error by the delta method, sqrt(Σs² w²(r - ratio)²)/Σs w."""
    top, bottom = COLUMNS.index("ips"), COLUMNS.index("weight")
    if sums.first[bottom] <= 0:
        return float("nan"), float("nan")
    ratio = sums.first[top] / sums.first[bottom]
    squares = sums.second[top, top] - 2 * ratio * sums.second[top, bottom] + ratio**2 * sums.second[bottom, bottom]
    return float(ratio), float(np.sqrt(max(squares, 0.0)) / sums.first[bottom])


def _known(error: float, effective: float) -> float:
    return error if effective >= LEAST else float("nan")


def _effective(sums: Sums) -> float:
    at = COLUMNS.index("weight")
    return float(sums.first[at] ** 2 / sums.second[at, at]) if sums.second[at, at] > 0 else 0.0


def _size(sums: Sums) -> float:
    """(Σs)²/Σs²: the decisions, or fewer where some stand for many."""
    return sums.s**2 / sums.squares
