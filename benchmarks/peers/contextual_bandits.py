"""LinUCB of the package contextualbandits: predict and partial_fit, Sherman-Morrison updates."""

import numpy as np
from contextualbandits.online import LinUCB
from streams import Stream

__all__ = ["ContextualBandits", "make"]


def make(stream: Stream, variant: str) -> "ContextualBandits":
    """The player."""
    return ContextualBandits(stream)


class ContextualBandits:
    """What its documentation recommends over its defaults: a smaller α, and a prior for arms with few rewards."""

    def __init__(self, stream: Stream) -> None:
        self.policy = LinUCB(
            stream.arms, alpha=0.1, method="sm", ucb_from_empty=False, beta_prior="auto", fit_intercept=False,
            random_state=stream.seed + 1, njobs=1,
        )  # fmt: skip

    def select(self, contexts: np.ndarray) -> int:
        return int(self.policy.predict(contexts[None])[0])

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.policy.partial_fit(contexts[None], np.array([arm]), np.array([reward]))
