"""Rewards of any scale: their running mean and deviation, by which a network sees them as numbers around 0."""

from typing import NamedTuple

import numpy as np

__all__ = ["Moments"]

ROUNDING = 1e-14
"""Deviations that are this small beside the mean are no deviations, but errors of float64."""


class Moments(NamedTuple):
    """How many, their mean and sum of squared deviations so far (Chan, Golub & LeVeque 1983)."""

    rewards: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_more(self, rewards: np.ndarray) -> "Moments":
        """After more rewards."""
        new = rewards
        count = self.rewards + len(new)
        gap = new.mean() - self.mean
        squares = self.squares + ((new - new.mean()) ** 2).sum() + gap**2 * self.rewards * len(new) / count
        return Moments(count, float(self.mean + gap * len(new) / count), float(squares))

    @property
    def deviation(self) -> float:
        """1 while all rewards are equal, up to rounding: there is no scale yet."""
        spread = (self.squares / self.rewards) ** 0.5 if self.rewards else 0.0
        return spread if spread > ROUNDING * abs(self.mean) else 1.0

    def scaled(self, rewards: np.ndarray) -> np.ndarray:
        """As the network sees them."""
        return ((rewards - self.mean) / self.deviation).astype(np.float32)
