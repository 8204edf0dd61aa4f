"""The result of a run: regret of every seed, its statistics, and which seeds diverged."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb import __version__

__all__ = ["Result", "Summary", "interval"]

CONFIDENCE = 0.95


class Summary(NamedTuple):
    """Final regret over seeds."""

    mean: float
    std: float
    """standard deviation; NaN with a single seed"""
    low: float
    """lower end of Student's 95 % interval for the mean; NaN with a single seed"""
    high: float
    """its upper end"""


class Result(NamedTuple):
    """One algorithm with one combination of settings on one problem, over all seeds.

    Example:
        >>> from neuralucb import run
        >>> result = run("lin-ucb", "h1", rounds=1000, seeds=4)
        >>> result.summary().mean, result.diverged, result.regret.shape
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
        low, high = interval(self.final_regret)
        return Summary(float(self.final_regret.mean()), _std(self.final_regret), float(low), float(high))

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
                "std": _or_none(summary.std),
                "interval95": None if math.isnan(summary.low) else [summary.low, summary.high],
                "per_seed": [float(value) for value in self.final_regret],
            },
            "diverged": self.diverged,
            "diverged_at": {
                str(seed): int(at) for seed, at in zip(self.seeds, self.diverged_at, strict=True) if at > 0
            },
            "compile_seconds": round(self.compile_seconds, 3),
            "seconds": round(self.seconds, 3),
            "device": self.device,
            "version": __version__,
            "jax": jax.__version__,
        }


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Student's 95 % interval for the mean over the first axis; NaN with a single value."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    count = values.shape[0]
    mean = values.mean(axis=0)
    if count < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = stdtrit(count - 1, (1 + CONFIDENCE) / 2) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean - half, mean + half


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
