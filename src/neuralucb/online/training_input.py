"""What a lesson starts from, and how far its belief has been brought up to date."""

from typing import Any, NamedTuple

import numpy as np

from neuralucb.policy import Belief

__all__ = ["CaughtUp", "TrainingInput"]


class TrainingInput(NamedTuple):
    """What a lesson starts from: copied at its start, while other threads go on."""

    belief: Belief
    total: int
    contexts: Any
    rewards: np.ndarray
    """normalized, if the bandit normalizes"""
    previous: int
    """`learned_at` before this lesson"""
    relearns: bool = False
    """whether it starts from nothing, since observations were removed: the belief is that before the first"""


class CaughtUp(NamedTuple):
    """A lesson's belief with observations made during it."""

    lesson: TrainingInput
    belief: Belief
    total: int
    """observations that it knows"""
    refused: int
    """of those made during the lesson"""
