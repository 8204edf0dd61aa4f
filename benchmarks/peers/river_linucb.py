"""River's LinUCBDisjoint: pull and update with dictionaries of features, which is what River works on."""

import numpy as np
from river import bandit
from streams import Stream

__all__ = ["River", "make"]


def make(stream: Stream, variant: str) -> "River":
    """The player."""
    return River(stream)


class River:
    """A Bayesian linear regression per arm, with its default α and β."""

    def __init__(self, stream: Stream) -> None:
        self.arms = list(range(stream.arms))
        self.policy = bandit.LinUCBDisjoint(seed=stream.seed)

    def select(self, contexts: np.ndarray) -> int:
        self.context = dict(enumerate(contexts.tolist()))
        return int(self.policy.pull(self.arms, self.context))

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.policy.update(arm, self.context, reward)
