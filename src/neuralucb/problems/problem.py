"""What a problem is: a world drawn once per seed, and rounds drawn from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from neuralucb.runtime.records import brief

__all__ = ["Problem", "Round", "reveal"]


@brief
class Round(NamedTuple):
    """One round, before an arm is chosen: reward = expected[arm] + noise."""

    contexts: Any
    """A pytree with a leading axis of arms."""
    expected: jax.Array
    """[K] expected reward of each arm; regret is measured on these, never on noisy rewards."""
    noise: jax.Array


@brief
class Problem(NamedTuple):
    """Where contexts and rewards come from.

    Its functions are pure: contexts and noise depend on the seed and the round alone, so that every algorithm meets
    the same problem. Make one with `synthetic` or `labelled`, or with functions of your own.

    Example:
        >>> def draw(key, data, world, t):
        ...     contexts = jax.random.normal(key, (4, 5))
        ...     return Round(contexts, contexts @ world, jnp.float32(0))
        >>> problem = Problem(dim=5, arms=4, init=lambda key, data: jax.random.normal(key, (5,)), draw=draw)
    """

    dim: int
    """d, numbers in a context"""
    arms: int
    """K"""
    init: Callable[[jax.Array, Any], Any]
    """key, data -> world"""
    draw: Callable[[jax.Array, Any, Any, jax.Array], Round]
    """key of this round, data, world, round t (from 0) -> Round"""
    data: Any = ()
    """arrays that all seeds share, such as a data set; not part of the world, which every lane has a copy of"""
    shared: bool = False
    """whether contexts are a `Slot`: one x that all arms share"""
    limit: int | None = None
    """the most rounds it can be played; None for no limit"""
    name: str = "problem"
    """for tables and figures"""
    digest: str = ""
    """of the data, to tell two data sets of one name apart; empty without data"""

    @property
    def shared_by(self) -> int | None:
        """The number of arms, if they share one context; None if there is one context per arm."""
        return self.arms if self.shared else None


def reveal(problem: Problem) -> Problem:
    """The same problem for the oracle: each arm's context is paired with its expected reward."""

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, data, world, t)
        return now._replace(contexts=(now.contexts, now.expected))

    return problem._replace(draw=draw)
