"""Baselines for scale: uniform, which learns nothing, and the oracle, which knows the expected rewards."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.algorithms.algorithm import Algorithm, Task, context_check
from neuralucb.history import History
from neuralucb.policy import Belief, Choice, Context, Info, Policy, guard
from neuralucb.rules import best_arm, best_shares
from neuralucb.runtime.errors import InputError

__all__ = ["ORACLE", "UNIFORM"]


def uniform(task: Task, settings: Mapping[str, Any]) -> Policy:
    """Any available arm, uniformly. A round costs nothing.

    Departs from the paper in: everything; it is not in the paper.
    """

    def select(key: jax.Array, belief: Belief, contexts: Context, available: jax.Array) -> Choice:
        return _choose(key, jnp.zeros(available.shape, jnp.float32), available)

    return guard(Policy(_nothing, select, _keep, _skip), context_check(task))


def oracle(task: Task, settings: Mapping[str, Any]) -> Policy:
    """The arm with the highest expected reward, which it knows. Its regret is 0.

    Departs from the paper in: everything; it is not in the paper.
    """

    def select(key: jax.Array, belief: Belief, contexts: Context, available: jax.Array) -> Choice:
        _, expected = contexts
        return _choose(key, expected, available)

    def check(context: Context) -> None:
        if type(context) is not tuple or len(context) != 2:
            raise InputError(
                f"the oracle's context must be a pair (context, expected reward), got a {type(context).__name__}."
            )
        context_check(task)(context[0])

    return guard(Policy(_nothing, select, _keep, _skip), check)


def _choose(key: jax.Array, score: jax.Array, available: jax.Array) -> Choice:
    zero = jnp.zeros_like(score)
    return Choice(best_arm(key, score, available), score, zero, score, zero[0], best_shares(score, available))


def _nothing(key: jax.Array) -> Belief:
    return ()


def _keep(belief: Belief, context: Context, reward: jax.Array) -> Belief:
    return belief


def _skip(key: jax.Array, belief: Belief, history: History) -> tuple[Belief, Info]:
    return belief, Info.nothing()


UNIFORM = Algorithm(
    "uniform", "any arm, for scale", "none", "everything; it is not in the paper", (), uniform, family="reference"
)


ORACLE = Algorithm(
    "oracle",
    "the best arm, which it knows, for scale",
    "none",
    "everything; it is not in the paper",
    (),
    oracle,
    sees_expected=True,
    family="reference",
)
