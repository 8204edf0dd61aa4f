"""MABWiser's LinUCB: fit on a first row per arm, then predict and partial_fit, as its documentation shows."""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from streams import Stream

__all__ = ["MabWiser", "make"]


def make(stream: Stream, variant: str) -> "MabWiser":
    """The player."""
    return MabWiser(stream)


class MabWiser:
    """A ridge regression per arm; α = 0.1 rather than its 1, which explores longer than these streams are."""

    def __init__(self, stream: Stream) -> None:
        self.arms = stream.arms
        self.mab = MAB(list(range(self.arms)), LearningPolicy.LinUCB(alpha=0.1), seed=stream.seed)
        self.first: list[tuple[int, float, np.ndarray]] = []

    def select(self, contexts: np.ndarray) -> int:
        return len(self.first) if len(self.first) < self.arms else int(self.mab.predict(contexts[None]))

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        if len(self.first) == self.arms:
            self.mab.partial_fit([arm], [reward], contexts[None])
            return
        self.first.append((arm, reward, contexts))
        if len(self.first) == self.arms:
            arms, rewards, rows = zip(*self.first, strict=True)
            self.mab.fit(list(arms), list(rewards), np.asarray(rows))
