"""The scale of rewards: their running mean and deviation, with which a bandit normalizes them."""

from typing import NamedTuple

import numpy as np

from neuralucb.online.ledger import column

__all__ = ["Moments"]

ROUNDING = 1e-14
"""Relative to the mean, a standard deviation this small is a rounding error of float64."""


class Moments(NamedTuple):
    """Count, mean and sum of squared deviations of the rewards (Chan, Golub & LeVeque 1983)."""

    rewards: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def updated(self, rewards: np.ndarray) -> "Moments":
        """With more rewards."""
        count = self.rewards + len(rewards)
        gap = rewards.mean() - self.mean
        squares = self.squares + ((rewards - rewards.mean()) ** 2).sum() + gap**2 * self.rewards * len(rewards) / count
        return Moments(count, float(self.mean + gap * len(rewards) / count), float(squares))

    @property
    def deviation(self) -> float:
        """The standard deviation; 1 while all rewards are equal up to rounding, and so have no scale."""
        deviation = (self.squares / self.rewards) ** 0.5 if self.rewards else 0.0
        return deviation if deviation > ROUNDING * abs(self.mean) else 1.0

    def normalize(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards minus their mean, over their deviation: what the policy learns from."""
        return ((rewards - self.mean) / self.deviation).astype(np.float32)

    def denormalize(self, rows: np.ndarray) -> None:
        """Bring choices, in place, from the policy's scale to the caller's."""
        for name, shift in (("mean", self.mean), ("width", 0.0), ("score", self.mean)):
            numbers = column(rows, name)
            numbers[:] = numbers * self.deviation + shift
