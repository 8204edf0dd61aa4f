"""The value of a policy with a given belief, estimated from a log of another policy: two passes in constant memory."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.evaluation import reward_model
from neuralucb.evaluation.decisions import Decisions, Part, decisions_of, propensities
from neuralucb.evaluation.estimators import (
    ESTIMATORS,
    FROZEN,
    Rounds,
    Sums,
    add,
    estimates_of,
    logged_of,
    overlap_of,
    terms_of,
)
from neuralucb.evaluation.records import Evaluation, check_level
from neuralucb.logs.batches import Batch, contexts_of
from neuralucb.logs.formats import Log
from neuralucb.policy import Belief, Policy
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.runtime.precision import exact

__all__ = ["evaluate", "target_probabilities"]

ABREAST = 128
"""Decisions computed side by side: more would not fit the cache, and cost four times as much."""


class _Totals(NamedTuple):
    """Sums over all decisions of a part."""

    sums: Sums
    influence: reward_model.Influence | None
    without_reward: int
    deterministic: int


def evaluate(
    policy: Policy,
    belief: Belief,
    log: Log,
    *,
    name: str = "policy",
    methods: Sequence[str] = FROZEN,
    level: float = 0.95,
    switch: float = 10.0,
    begin: int = 0,
    end: int | None = None,
    skip_deterministic: bool = False,
) -> Evaluation:
    """Estimate the reward per decision of a policy with this belief, which learns nothing on the way.

    A belief that was learned from the same decisions flatters the policy: learn from those before `begin`, or let
    `evaluate_after_training` split the log.

    Args:
        policy: The policy to value.
        belief: What it believes, such as `learn_from(...).belief`.
        log: The log of another policy. The order (log, policy, belief) of 0.1 works once more, with a warning.
        name: What to call it in tables.
        methods: Names from FROZEN.
        level: The level of the intervals.
        switch: τ, the weight above which the method `switch` relies on the model.
        begin: The first decision to use, counted from 0.
        end: The first decision to leave out; None for none.
        skip_deterministic: Leave deterministic decisions out of methods that divide by propensities, instead of
            refusing the log.

    Returns:
        The estimates with intervals, what the log itself earned, and a diagnosis of the overlap.

    Raises:
        InputError: A method is unknown, a number is out of range, a decision is deterministic, or none can be used.
        UnsoundError: A score of the policy is not finite: it would be valued as if it chose at random.

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> from neuralucb.logs.warm_start import learn_from
        >>> learned = learn_from(jax.random.key(0), policy, log, end=20)
        >>> (ips,) = evaluate(policy, learned.belief, log, begin=20, methods=["ips"]).estimates
        >>> ips.low < ips.value < ips.high
        True
    """
    policy, belief, log = _in_order(policy, belief, log)
    _check(methods, level, switch)
    divides = any(ESTIMATORS[method].divides for method in methods)
    part = Part(log, begin, end, divides, skip_deterministic)
    with_model = [method for method in methods if ESTIMATORS[method].needs_model]
    model = reward_model.fit(decisions_of(part)) if with_model else None
    sums, influence, without_reward, deterministic = _totals(part, policy, belief, model, switch)
    if not sums.decisions:
        raise InputError(
            f"{log.path} has no decision to evaluate with in this part: {without_reward} have no reward, "
            f"{deterministic} were deterministic."
        )
    errors = {}
    if model is not None and influence is not None:
        errors = {method: reward_model.model_error(model, influence, method, sums) for method in with_model}
    return Evaluation(
        name,
        sums.decisions,
        without_reward,
        deterministic,
        logged_of(sums, level=level),
        tuple(estimates_of(sums, tuple(methods), level=level, model_errors=errors)),
        overlap_of(sums) if divides else None,
    )


def target_probabilities(policy: Policy, belief: Belief) -> Callable[[Batch], jax.Array]:
    """A function from a batch of decisions to the policy's probabilities; nothing is learned.

    Args:
        policy: The policy to value.
        belief: What it believes.

    Returns:
        A compiled function from a batch of n decisions among K arms to an array [n, K].

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> from neuralucb.logs.batches import batches
        >>> probabilities = target_probabilities(policy, policy.init(jax.random.key(0)))
        >>> shapes = [probabilities(batch).shape for batch in batches(log)]  # [decisions, arms] of each batch
    """
    return lambda batch: _probabilities(policy, belief, batch.shared, batch.own, batch.available)[0]


def _in_order(policy: Any, belief: Any, log: Any) -> tuple[Policy, Belief, Log]:
    """The arguments of `evaluate` in their order, also if they came in that of 0.1: log, policy, belief."""
    if isinstance(policy, Log):
        warnings.warn(
            "evaluate(log, policy, belief) is deprecated: write evaluate(policy, belief, log), in the order of replay.",
            DeprecationWarning,
            stacklevel=3,
        )
        policy, belief, log = belief, log, policy
    if not isinstance(log, Log):
        raise InputError(f"log must be a Log, as `open_log` gives it, got a {type(log).__name__}.")
    return policy, belief, log


def _check(methods: Sequence[str], level: float, switch: float) -> None:
    for method in methods:
        if method not in FROZEN:
            raise InputError(f"method {method!r} is not known; known: {', '.join(FROZEN)}.")
    check_level(level)
    if not switch >= 0:
        raise InputError(f"switch must be a weight, at least 0, got {switch}.")


def _totals(part: Part, policy: Policy, belief: Belief, model: reward_model.Model | None, switch: float) -> _Totals:
    """The second pass: what the policy would do, and what the model expects of it."""
    sums, without_reward, deterministic = Sums.nothing(), 0, 0
    influence = None if model is None else reward_model.Influence.nothing(model)
    for decisions, target in _with_targets(part, policy, belief):
        without_reward += decisions.without_reward
        deterministic += decisions.deterministic
        predicted = np.zeros_like(target) if model is None else reward_model.predict(model, decisions)
        rounds = _rounds(decisions, target, predicted)
        sums = add(sums, rounds, switch=switch)
        if influence is not None:
            influence = reward_model.add_influence(influence, decisions, rounds, terms_of(rounds, switch=switch))
    return _Totals(sums, influence, without_reward, deterministic)


def _with_targets(part: Part, policy: Policy, belief: Belief) -> Iterator[tuple[Decisions, np.ndarray]]:
    """Batches and the policy's probabilities; the next batch is read while the last is computed."""
    waiting: tuple[Decisions, Any] | None = None
    for decisions in decisions_of(part):
        batch = decisions.batch
        computed = _probabilities(policy, belief, batch.shared, batch.own, batch.available)
        if waiting is not None:
            yield _sound(part, *waiting)
        waiting = decisions, computed
    if waiting is not None:
        yield _sound(part, *waiting)


def _sound(part: Part, decisions: Decisions, computed: tuple[jax.Array, jax.Array]) -> tuple[Decisions, np.ndarray]:
    """Decisions with the policy's probabilities, if its scores are finite."""
    target, finite = computed
    bad = decisions.use & ~np.asarray(finite)
    if bad.any():
        raise UnsoundError(
            f"{part.log.path}: the policy's scores for decision {decisions.batch.line[bad.argmax()]} are not finite, "
            "so that it has no value: its training diverged, or contexts are too large; scale them, or take an "
            "algorithm that learns their units, such as neural-mix."
        )
    return decisions, np.asarray(target, np.float64)


@exact
@partial(jax.jit, static_argnums=0)
def _probabilities(
    policy: Policy, belief: Belief, shared: jax.Array, own: jax.Array, available: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """[n, K] the policy's probabilities, and [n] whether the scores of all available arms are finite."""

    def one(row: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # propensities do not depend on the key, so any key will do; the choice itself is never computed
        choice = policy.select(jax.random.key(0), belief, contexts_of(*row[:2]), row[2])
        return choice.propensity, (jnp.isfinite(choice.score) | ~row[2]).all()

    return jax.lax.map(one, (shared, own, available), batch_size=ABREAST)


def _rounds(decisions: Decisions, target: np.ndarray, predicted: np.ndarray) -> Rounds:
    """The decisions in use, as an estimator sees them."""
    batch, use = decisions.batch, decisions.use
    columns = (batch.reward, propensities(batch), batch.arm, target, predicted, batch.weight)
    return Rounds(*(column[use] for column in columns))
