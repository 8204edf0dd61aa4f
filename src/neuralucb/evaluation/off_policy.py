"""A policy with a given belief, valued on a log it did not make: two passes in constant memory."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from neuralucb.evaluation import reward_model as models
from neuralucb.evaluation.estimators import Rounds, Sums, add, estimates_of, logged_of, overlap_of
from neuralucb.evaluation.records import DIVIDES, METHODS, Evaluation
from neuralucb.logs.batches import Batch, batches, contexts_of
from neuralucb.logs.formats import Log
from neuralucb.policy import Belief, Policy
from neuralucb.rules import deterministic
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact

__all__ = ["FROZEN", "Usable", "evaluate", "propensities", "target_probabilities", "usable"]

CURE = (
    "--skip-bad (skip_deterministic=True) leaves such decisions out, and counts them; the direct method divides by "
    "none, but trusts its model alone (methods: direct); and the next log can have a floor of exploration."
)


class Usable(NamedTuple):
    """The decisions of a batch that count, and how many do not."""

    use: np.ndarray
    """[n]"""
    without_reward: int
    deterministic: int
    """left out, although they have a reward: there was no chance in them"""


def propensities(batch: Batch) -> np.ndarray:
    """[n] of the arms chosen. One that was alone had 1, also where none is written; others without one stay NaN."""
    alone = np.isnan(batch.propensity) & (batch.available.sum(axis=1) == 1)
    return np.where(alone, 1.0, batch.propensity)


def usable(log: Log, batch: Batch, *, divides: bool, skip_deterministic: bool) -> Usable:
    """The decisions that count; a deterministic one is refused where it would be divided by, unless it is skipped."""
    rewarded = batch.valid & ~np.isnan(batch.reward)
    if not divides:
        return Usable(rewarded, int((batch.valid & ~rewarded).sum()), 0)
    sure = rewarded & deterministic(batch.propensity, batch.available.sum(axis=1))
    if sure.any() and not skip_deterministic:
        raise InputError(
            f"{log.path}: decision {batch.line[sure.argmax()]} was deterministic: it has no propensity, or 1 although "
            f"there were several arms, and tells nothing about the others. {CURE}"
        )
    return Usable(rewarded & ~sure, int((batch.valid & ~rewarded).sum()), int(sure.sum()))


FROZEN = tuple(method for method in METHODS if method != "replay")
"""What can be said of a policy that does not learn meanwhile."""


ABREAST = 128
"""Decisions computed side by side: more would leave the cache, and cost four times as much."""


def evaluate(
    log: Log,
    policy: Policy,
    belief: Belief,
    *,
    name: str = "policy",
    methods: Sequence[str] = FROZEN,
    level: float = 0.95,
    switch: float = 10.0,
    begin: int = 0,
    end: int | None = None,
    skip_deterministic: bool = False,
) -> Evaluation:
    """What the policy, with this belief, would have earned a decision, from number `begin` (from 0) to `end`.

    level   of the intervals
    switch  τ: weights above it are left to the model, by the method of that name
    skip_deterministic  leave decisions without chance out of methods that divide by it, instead of refusing the log
    A belief that was learned from the same decisions flatters the policy: learn before `begin`.
    """
    for method in methods:
        if method not in FROZEN:
            raise InputError(f"method {method!r} is not known; known: {', '.join(FROZEN)}.")
    if not switch >= 0:
        raise InputError(f"switch must be a weight, at least 0, got {switch}.")
    divides = any(method in DIVIDES for method in methods)
    which = partial(usable, log, divides=divides, skip_deterministic=skip_deterministic)
    model = _model(log, begin, end, which) if {"direct", "doubly-robust", "switch"} & set(methods) else None
    sums, seen, unseen, sure = Sums.nothing(), 0, 0, 0
    direction, kept, spread = np.zeros(()), np.zeros(()), np.zeros(())
    for batch, target in _with_targets(log, policy, belief, begin, end):
        use, *left = which(batch)
        unseen, sure = unseen + left[0], sure + left[1]
        predicted = np.zeros_like(target) if model is None else models.predict(model, batch, seen)
        seen += int(batch.valid.sum())  # only now: folds count from the batch's first decision, as when fitting
        sums = add(sums, _rounds(batch, target, predicted, use), switch=switch)
        if model is not None:
            rows, groups = np.arange(len(use)), len(model.inverse)
            residual = np.where(use, batch.reward - predicted[rows, batch.arm], 0)
            w = target[rows, batch.arm] / propensities(batch)
            direction = direction + models.expected_features(batch, target, use)
            kept = kept + models.kept_features(batch, np.where(w <= switch, w, 0), use, groups)
            spread = spread + models.spread(batch, residual, use, groups)
    if not sums.decisions:
        raise InputError(
            f"{log.path} has no decision to evaluate with in this part: {unseen} have no reward, {sure} had no chance."
        )
    uncertain = {}
    if model is not None:
        moves = {"direct": direction / sums.s, "switch": (direction - kept) / sums.s}
        uncertain = {method: models.model_variance(model, along, spread) for method, along in moves.items()}
    return Evaluation(
        name,
        sums.decisions,
        unseen,
        sure,
        logged_of(sums, level=level),
        tuple(estimates_of(sums, tuple(methods), level=level, model_variance=uncertain)),
        overlap_of(sums) if divides else None,
    )


def target_probabilities(policy: Policy, belief: Belief) -> Callable[[Batch], jax.Array]:
    """A compiled function from a batch to [n, K] probabilities of the policy's arms; nothing is learned."""

    return lambda batch: _ask(policy, belief, batch.shared, batch.own, batch.available)


@exact
@partial(jax.jit, static_argnums=0)
def _ask(policy: Policy, belief: Belief, shared: jax.Array, own: jax.Array, available: jax.Array) -> jax.Array:
    def one(row: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        # propensities do not depend on the key, so that any will do, and the choice itself is never computed
        return policy.select(jax.random.key(0), belief, contexts_of(*row[:2]), row[2]).propensity

    return jax.lax.map(one, (shared, own, available), batch_size=ABREAST)


def _with_targets(
    log: Log, policy: Policy, belief: Belief, begin: int, end: int | None
) -> Iterator[tuple[Batch, np.ndarray]]:
    """Batches and their probabilities; the next batch is read while the last is computed."""
    ask = target_probabilities(policy, belief)
    waiting: tuple[Batch, jax.Array] | None = None
    for batch in batches(log, begin=begin, end=end):
        asked = ask(batch)
        if waiting is not None:
            yield waiting[0], np.asarray(waiting[1], np.float64)
        waiting = batch, asked
    if waiting is not None:
        yield waiting[0], np.asarray(waiting[1], np.float64)


def _model(log: Log, begin: int, end: int | None, which: Callable[[Batch], Usable]) -> models.Model:
    grams, seen = None, 0
    for batch in batches(log, begin=begin, end=end):
        grams = models.Grams.nothing(batch) if grams is None else grams
        grams = models.gather(grams, batch, which(batch).use, seen)
        seen += int(batch.valid.sum())
    if grams is None:
        raise InputError(f"{log.path} has no decision in the part that is evaluated.")
    return models.model_of(grams)


def _rounds(batch: Batch, target: np.ndarray, predicted: np.ndarray, use: np.ndarray) -> Rounds:
    return Rounds(
        batch.reward[use],
        propensities(batch)[use],
        batch.arm[use],
        target[use],
        predicted[use],
        batch.weight[use],
    )
