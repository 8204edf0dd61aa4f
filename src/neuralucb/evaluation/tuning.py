"""Tuning on a log: settings are valued off-policy on one part of it, and the best of them on another."""

from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist
from textwrap import shorten
from typing import Any, NamedTuple

import jax

from neuralucb.algorithms import build
from neuralucb.evaluation.off_policy import evaluate
from neuralucb.evaluation.records import Estimate, check_level
from neuralucb.experiments.candidates import candidates
from neuralucb.experiments.preset_files import write_preset
from neuralucb.logs.batches import shape_of
from neuralucb.logs.formats import Log
from neuralucb.logs.warm_start import learn_from
from neuralucb.policy import Belief, Policy
from neuralucb.runtime.errors import InputError, UnsoundError

__all__ = ["TunedOnLog", "tune_on_log"]

LEARNING, CHOOSING = 0.5, 0.75
"""A policy learns from the first half of a log, is chosen on the third quarter, and scored on the last."""

FEWEST_DECISIONS = 200
"""Of a log, for a quarter of it to have an error that can be known."""


class TunedOnLog(NamedTuple):
    """The setting that was chosen on a log, what choosing promised, and its value on decisions that came later.

    Example:
        >>> tuned = tune_on_log(jax.random.key(0), "lin-ucb", open_log(Path("log.parquet")))  # doctest: +SKIP
    """

    algorithm: str
    log: str
    setting: dict[str, Any]
    """the values that were chosen"""
    settings: dict[str, Any]
    """all that were set"""
    chosen: Estimate
    """reward per decision where it was chosen; its interval is the promise of the score, corrected for the choice"""
    scored: Estimate
    """reward per decision on later decisions, which had no part in choosing"""
    logged: Estimate
    """what the log itself earned there"""
    tried: int
    diverged: tuple[dict[str, Any], ...]
    """settings whose training diverged"""

    @property
    def optimism(self) -> float:
        """Chosen minus scored: above zero where the choice looked better than it is."""
        return self.chosen.value - self.scored.value

    @property
    def kept(self) -> bool:
        """Whether the score is inside the interval that choosing promised."""
        return self.chosen.low <= self.scored.value <= self.chosen.high

    @property
    def _verdict(self) -> str:
        return "as" if self.kept else "better than" if self.scored.value > self.chosen.high else "worse than"

    def write(self, path: Path | str) -> Path:
        """Write the settings as a preset, for `train`, `evaluate` and all else that takes one."""
        summary = f"{self.algorithm} tuned on {self.log}: {self.scored.value:.4g} per decision on what came later"
        return write_preset(path, algorithm=self.algorithm, schedule=None, settings=self.settings, summary=summary)

    def as_json(self) -> dict[str, Any]:
        """As plain values that JSON knows."""
        estimates = {name: getattr(self, name)._asdict() for name in ("chosen", "scored", "logged")}
        return {
            "algorithm": self.algorithm, "log": self.log, "setting": self.setting, "settings": self.settings,
            **estimates, "optimism": self.optimism, "promise_kept": self.kept, "tried": self.tried,
            "diverged": list(self.diverged),
        }  # fmt: skip

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.setting.items())
        diverged = f", {len(self.diverged)} of which diverged" if self.diverged else ""
        return "\n".join(
            [
                shorten(f"{self.algorithm} on {self.log}: {values}", 128),
                f"  chosen of {self.tried} settings{diverged}: {self.chosen.value:.4g} per decision "
                f"(promised {self.chosen.low:.4g} to {self.chosen.high:.4g})",
                f"  scored on later decisions: {self.scored.value:.4g} (95 % interval {self.scored.low:.4g} to "
                f"{self.scored.high:.4g}); the log itself earned {self.logged.value:.4g}",
                f"  optimism: {self.optimism:+.3g}; the score is {self._verdict} promised",
            ]
        )


def tune_on_log(
    key: jax.Array,
    algorithm: str,
    log: Log,
    *,
    grid: Mapping[str, Any] | None = None,
    samples: int | None = None,
    seed: int = 0,
    method: str = "doubly-robust",
    level: float = 0.95,
    **settings: Any,
) -> TunedOnLog:
    """Choose the settings of an algorithm on a log of decisions that another policy made.

    With each setting the policy learns from the first half of the log and is valued, frozen, on the third quarter. The
    best is valued on the last quarter, which had no part in choosing.

    Args:
        key: Randomness of training.
        algorithm: Its name.
        log: From `open_log` or `open_table`.
        grid: By setting, a list of values, or a range such as "1e-4..1e-1"; None for the algorithm's own grid.
        samples: How many settings to draw from the grid, at random; None for all, or 32 if there is a range.
        seed: Of draws from ranges.
        method: The estimator of values, one of FROZEN.
        level: The level of the intervals.
        **settings: Of the algorithm, fixed.

    Returns:
        The setting, what was promised and scored, and the optimism; `write` makes a preset of it.

    Raises:
        InputError: A grid of one, a log of too few decisions, or whatever `evaluate` refuses.
        UnsoundError: Training diverged with every setting.

    Example:
        >>> tuned = tune_on_log(jax.random.key(0), "lin-ucb", log, grid={"exploration": [0, 1]})  # doctest: +SKIP
    """
    check_level(level)
    points = candidates(algorithm, grid, samples=samples, seed=seed)
    if log.decisions < FEWEST_DECISIONS:
        raise InputError(
            f"log must have at least {FEWEST_DECISIONS} decisions, of which half teach, a quarter chooses and a "
            f"quarter scores, got {log.decisions} in {log.path}; collect more."
        )
    ends = [int(log.decisions * share) for share in (LEARNING, CHOOSING)]
    found: list[tuple[Estimate, dict[str, Any], Policy, Belief]] = []
    diverged = []
    for point in points:
        policy = build(algorithm, **shape_of(log), **{**settings, **point})
        try:
            learned = learn_from(key, policy, log, end=ends[0])
            if learned.info.diverged:
                raise UnsoundError("training diverged")
            (value,) = evaluate(
                policy, learned.belief, log, methods=(method,), level=level, begin=ends[0], end=ends[1]
            ).estimates
            found.append((value, point, policy, learned.belief))
        except UnsoundError:
            diverged.append(point)
    if not found:
        raise UnsoundError(
            f"every setting of {algorithm} diverged while it learned from the first {ends[0]} decisions of {log.path}, "
            f"so that none was chosen: {points[0]} and {len(points) - 1} more; add smaller values of step_size."
        )
    chosen, setting, policy, belief = max(found, key=lambda each: each[0].value)
    scored = evaluate(policy, belief, log, methods=(method,), level=level, begin=ends[1])
    share = (ends[1] - ends[0]) / (log.decisions - ends[1])
    return TunedOnLog(
        algorithm=algorithm,
        log=Path(log.path).name,
        setting=setting,
        settings={**settings, **setting},
        chosen=_promise(chosen, share, level, len(found)),
        scored=scored.estimates[0],
        logged=scored.logged,
        tried=len(points),
        diverged=tuple(diverged),
    )


def _promise(chosen: Estimate, share: float, level: float, tried: int) -> Estimate:
    """The estimate with the interval of a new one, from decisions fewer by `share`; its lower end allows for luck."""
    error = chosen.error * (1 + share) ** 0.5
    reach, longer = (NormalDist().inv_cdf(1 - (1 - level) / 2 / among) * error for among in (1, tried))
    return chosen._replace(low=chosen.value - longer, high=chosen.value + reach)
