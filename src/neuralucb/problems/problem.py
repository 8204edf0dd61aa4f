"""What a problem is: a world drawn once a seed, and rounds drawn from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

__all__ = ["Problem", "Round", "reveal"]


class Round(NamedTuple):
    """One round, before anyone has chosen: reward = expected[arm] + noise."""

    contexts: Any
    """A pytree with a leading axis of arms."""
    expected: jax.Array
    """[K] expected reward of each arm; regret is measured on these, never on noisy rewards."""
    noise: jax.Array


class Problem(NamedTuple):
    """Pure functions of keys, so that contexts and noise depend on seed and round alone, not on who plays."""

    dim: int
    arms: int
    init: Callable[[jax.Array, Any], Any]
    """key, data -> world"""
    draw: Callable[[jax.Array, Any, Any, jax.Array], Round]
    """key of this round, data, world, round t (from 0) -> Round"""
    data: Any = ()
    """what all seeds share, such as a data set; passed beside the world, so that lanes do not copy it"""
    shared: bool = False
    """whether contexts are a `Slot`: one x that all arms share"""
    limit: int | None = None
    """the most rounds it has; None: as many as you like"""
    name: str = "problem"
    """for tables and figures"""
    digest: str = ""
    """tells two data sets of one name apart; empty where there are no data"""

    @property
    def shared_by(self) -> int | None:
        """The number of arms that share a context; None where each has its own."""
        return self.arms if self.shared else None


def reveal(problem: Problem) -> Problem:
    """The same problem, each arm's context paired with its expected reward: what the oracle is told."""

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, data, world, t)
        return now._replace(contexts=(now.contexts, now.expected))

    return problem._replace(draw=draw)
