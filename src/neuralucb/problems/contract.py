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
    init: Callable[[jax.Array], Any]
    """key -> world"""
    draw: Callable[[jax.Array, Any, jax.Array], Round]
    """key of this round, world, round t (from 0) -> Round"""


def reveal(problem: Problem) -> Problem:
    """The same problem, each arm's context paired with its expected reward: what the oracle is told."""

    def draw(key: jax.Array, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, world, t)
        return now._replace(contexts=(now.contexts, now.expected))

    return problem._replace(draw=draw)
