"""The records of an evaluation: estimates with intervals, and how far the log supports them."""

import math
from statistics import NormalDist
from textwrap import shorten
from typing import Any, NamedTuple

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief

__all__ = ["Estimate", "Evaluation", "Overlap", "check_level", "with_interval"]

MOST_ESTIMATES, MOST_NOTES = 8, 4
"""How many are printed."""


@brief
class Estimate(NamedTuple):
    """The value of a policy, in reward per decision, by one method.

    Example:
        >>> one = Estimate("ips", value=0.5, error=0.1, low=0.3, high=0.7, effective=80.0)
        >>> one.low <= one.value <= one.high
        True
    """

    method: str
    value: float
    error: float
    """standard error; NaN, and the interval too, where too few decisions count to know it"""
    low: float
    high: float
    """the interval at the given level: normal, around the value"""
    effective: float
    """effective sample size: how many decisions by the policy itself would tell about as much"""


@brief
class Overlap(NamedTuple):
    """How much of what the policy would do is in the log.

    Example:
        >>> import jax
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> from neuralucb.evaluation import evaluate
        >>> made = evaluate(policy, policy.init(jax.random.key(0)), log, methods=["ips"])
        >>> round(made.overlap.largest, 3)  # the policy takes one arm of three, which the log took at random
        3.0
    """

    largest: float
    """largest weight π(a)/p"""
    effective_share: float
    """(Σw)²/(n Σw²): 1 where the policy is the logged one"""
    mean_weight: float
    """1, up to chance, if the propensities are right and the log has every arm that the policy takes"""
    mean_weight_error: float
    tiny: float
    """share of decisions with a propensity below 0.01"""
    words: tuple[str, ...]
    """the diagnosis; empty if nothing is wrong"""


class Evaluation(NamedTuple):
    """The value of one policy, estimated from one log.

    Example:
        >>> import jax
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> from neuralucb.evaluation import evaluate
        >>> made = evaluate(policy, policy.init(jax.random.key(0)), log, methods=["ips"])
        >>> made.decisions, [each.method for each in made.estimates]
        (39, ['ips'])
    """

    policy: str
    decisions: int
    without_reward: int
    """left out: no reward was seen"""
    deterministic: int
    """left out with `skip_deterministic`: they have a reward, but the choice was deterministic"""
    logged: Estimate
    """what the log itself earned"""
    estimates: tuple[Estimate, ...]
    overlap: Overlap | None
    """None if no method divides by propensities"""
    notes: tuple[str, ...] = ()
    """what else to know: what replay covers, or why it was not possible"""

    def __repr__(self) -> str:
        lines = [f"Evaluation of {shorten(self.policy, 40)} on {self.decisions} decisions"]
        lines += [
            f"  {shorten(one.method, 15):<15} {one.value:>8.4g}  [{one.low:.4g}, {one.high:.4g}]"
            for one in (self.logged, *self.estimates[:MOST_ESTIMATES])
        ]
        said = (*(self.overlap.words if self.overlap else ()), *self.notes)
        lines += [f"  {shorten(text, 98, placeholder=' …')}" for text in said[:MOST_NOTES]]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """As plain values that JSON knows; numbers that are not finite become None."""
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
    check_level(level)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    return Estimate(method, value, error, value - reach, value + reach, effective)


def check_level(level: float) -> None:
    """Refuse a level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level must be above 0 and below 1, got {level}; 0.95 is common.")


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }
