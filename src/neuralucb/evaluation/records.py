"""What an evaluation says: an estimate with its interval, and whether the log can bear it."""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

from neuralucb.runtime.errors import InputError

__all__ = ["DIVIDES", "METHODS", "Estimate", "Evaluation", "Overlap", "with_interval"]

METHODS = {
    "direct": "the reward model alone",
    "ips": "the logged propensities alone",
    "snips": "the propensities, up to a factor",
    "doubly-robust": "the propensities or the model",
    "switch": "the propensities, and the model where weights are large",
    "replay": "the propensities; it learns along the log",
}
"""The estimators, and what each trusts."""

DIVIDES = ("ips", "snips", "doubly-robust", "switch", "replay")
"""Those that divide by a propensity."""


class Estimate(NamedTuple):
    """The value of a policy, reward a decision, by one method."""

    method: str
    value: float
    error: float
    """standard error; NaN, and with it the interval, where too few decisions count to know"""
    low: float
    high: float
    """the interval at the level asked for: normal, around the value"""
    effective: float
    """effective sample size: as many decisions of the policy itself would tell about as much"""


class Overlap(NamedTuple):
    """How much of what the policy would do is in the log."""

    largest: float
    """largest weight π(a)/p"""
    effective_share: float
    """(Σw)²/(n Σw²): 1 where the policy is the logged one"""
    mean_weight: float
    """1, but for chance, if the propensities are true and the log has every arm the policy takes"""
    mean_weight_error: float
    tiny: float
    """share of decisions with a propensity below 0.01"""
    words: tuple[str, ...]
    """the diagnosis; empty if nothing is amiss"""


class Evaluation(NamedTuple):
    """One policy on one log."""

    policy: str
    decisions: int
    without_reward: int
    """left out: no reward was seen"""
    deterministic: int
    """left out, where that was asked for: they had a reward, but no chance in them"""
    logged: Estimate
    """what the log itself earned"""
    estimates: tuple[Estimate, ...]
    overlap: Overlap | None
    """None where nothing was divided by a propensity"""
    notes: tuple[str, ...] = ()
    """what else to know: what replay covers, or why it is not there"""

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "policy": self.policy,
            "decisions": self.decisions,
            "without_reward": self.without_reward,
            "deterministic": self.deterministic,
            "logged": _plain(self.logged._asdict()),
            "estimates": [_plain(one._asdict()) for one in self.estimates],
            "overlap": None if self.overlap is None else _plain(self.overlap._asdict()),
            "notes": list(self.notes),
        }


def with_interval(method: str, value: float, error: float, effective: float, *, level: float) -> Estimate:
    """An estimate with its normal interval."""
    if not 0 < level < 1:
        raise InputError(f"level must be above 0 and below 1, got {level}; 0.95 is usual.")
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    return Estimate(method, value, error, value - reach, value + reach, effective)


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }
