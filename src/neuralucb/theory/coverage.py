"""Coverage: how often the expected reward h(x) lies inside f(x) ± γ·width while an algorithm plays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from neuralucb.history import History
from neuralucb.policy import Choice, Info, Policy
from neuralucb.problems import Problem, Round
from neuralucb.runtime.precision import exact
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.threads import spread
from neuralucb.schedules import Schedule
from neuralucb.simulation import simulate

__all__ = ["Coverage", "measure_coverage"]


class Coverage(NamedTuple):
    """What was predicted of two arms a round, before its reward came: the chosen one, and one at random.

    Every array is [seeds, rounds, 2]: chosen, random.
    """

    error: np.ndarray
    """|f(x; θ_{t-1}) - h(x)|"""
    width: np.ndarray
    """sqrt(gᵀZ⁻¹g/m), before its scale"""
    scale: np.ndarray
    """γ_{t-1}"""
    diverged: np.ndarray
    """[seeds] whether training diverged"""

    @property
    def inside(self) -> np.ndarray:
        """Whether h(x) lies inside f ± γ·width; a prediction that is not finite holds nothing."""
        return self.error <= self.scale * self.width

    def share(self) -> np.ndarray:
        """[2] how often it does, over all rounds and seeds."""
        return np.asarray(self.inside.mean(axis=(0, 1)))

    @property
    def ratio(self) -> np.ndarray:
        """The smallest γ with which h(x) would lie inside; infinite for a prediction that is not finite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.error == 0, 0, self.error / self.width)
        return np.nan_to_num(ratio, nan=np.inf, posinf=np.inf)

    def needed_scale(self, share: float = 0.9) -> np.ndarray:
        """[2] the γ, one for all rounds, with which that share would have been inside."""
        return np.asarray(np.quantile(self.ratio, share, axis=(0, 1), method="higher"))


class _Belief(NamedTuple):
    """The policy's own, and the record so far."""

    own: Any
    record: jax.Array
    """[T, 3, 2]: error, width, scale"""
    rounds: jax.Array


class _Seen(NamedTuple):
    """A context, and beside it that of an arm drawn at random, with the expected rewards of both."""

    context: Any
    other: Any
    expected: jax.Array
    """[2]"""


def measure_coverage(
    policy: Policy,
    problem: Problem,
    *,
    rounds: int,
    schedule: Schedule,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> Coverage:
    """The intervals of a policy that knows widths, played on a problem, one run a seed.

    Runs are those of `simulate` with the same key: the watching changes nothing.
    """
    watched, shown = _watch(policy, rounds), _show(problem)
    parts: list[Any] = [None] * len(seeds)

    @exact
    def compiled() -> Any:
        run = jax.jit(lambda key: simulate(key, watched, shown, rounds=rounds, schedule=schedule))
        return run.lower(random.key(0)).compile()

    play = compiled()

    def one(index: int) -> None:
        outcome = exact(play)(random.key(seeds[index]))
        parts[index] = np.asarray(outcome.belief.record), bool(outcome.trace.diverged_at > 0)

    spread(one, range(len(seeds)), progress)
    record = np.stack([part[0] for part in parts])
    return Coverage(record[:, :, 0], record[:, :, 1], record[:, :, 2], np.asarray([part[1] for part in parts]))


def _watch(policy: Policy, rounds: int) -> Policy:
    """The policy, noting in its belief what it predicted of each pair of contexts that it was shown."""

    def init(key: jax.Array) -> _Belief:
        return _Belief(policy.init(key), jnp.zeros((rounds, 3, 2), jnp.float64), jnp.int32(0))

    def select(key: jax.Array, belief: _Belief, seen: _Seen, available: jax.Array | None = None) -> Choice:
        return policy.select(key, belief.own, seen.context, available)

    def observe(belief: _Belief, seen: _Seen, reward: jax.Array) -> _Belief:
        both = jax.tree.map(lambda a, b: jnp.stack([a, b]), seen.context, seen.other)
        asked = policy.select(random.key(0), belief.own, both)  # only what it predicts is used, not what it chooses
        error = jnp.abs(asked.mean - seen.expected.astype(asked.mean.dtype))
        row = jnp.stack([error, asked.width, jnp.broadcast_to(asked.exploration, error.shape)]).astype(jnp.float64)
        return _Belief(
            policy.observe(belief.own, seen.context, reward),
            belief.record.at[belief.rounds].set(row),
            belief.rounds + 1,
        )

    def learn(key: jax.Array, belief: _Belief, history: History) -> tuple[_Belief, Info]:
        own, info = policy.learn(key, belief.own, history._replace(contexts=history.contexts.context))
        return belief._replace(own=own), info

    return Policy(init, select, observe, learn)


def _show(problem: Problem) -> Problem:
    """The problem, each arm's context beside that of an arm drawn at random."""

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        now = problem.draw(key, data, world, t)
        arm = random.randint(random.fold_in(key, 1), (), 0, problem.arms, dtype=jnp.int32)
        other = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[arm], leaf.shape), now.contexts)
        expected = jnp.stack([now.expected, jnp.broadcast_to(now.expected[arm], now.expected.shape)], axis=1)
        return now._replace(contexts=_Seen(now.contexts, other, expected))

    return problem._replace(draw=draw)
