"""The library as a service uses it: the default algorithm in an `OnlineBandit`, one call per decision and reward."""

import time

import jax
import numpy as np
from streams import Stream

import neuralucb

__all__ = ["Online", "make"]


def make(stream: Stream, variant: str) -> "Online":
    """The player."""
    return Online(stream)


class Online:
    """Lessons run in the thread that asks, on the same core as all else."""

    def __init__(self, stream: Stream) -> None:
        self.compiling, self.heard = 0.0, time.process_time()
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        shape = {"shared_by": stream.arms} if stream.shared else {}
        self.bandit = neuralucb.OnlineBandit(neuralucb.build(dim=stream.dim, **shape), seed=stream.seed)

    def select(self, contexts: np.ndarray) -> int:
        self.decision = self.bandit.select(contexts)
        return int(self.decision.arm)

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.bandit.observe(self.decision.id, reward)

    def hear(self, event: str, seconds: float, **_: object) -> None:
        """JAX tells how long it traced, lowered and compiled, by the clock on the wall: no longer than computed."""
        if event.startswith("/jax/core/compile/"):
            now = time.process_time()
            self.compiling += min(seconds, now - self.heard)
            self.heard = now

    def compile_seconds(self) -> float:
        return self.compiling
