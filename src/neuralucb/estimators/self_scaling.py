"""A policy in units that it learns: contexts and rewards may come in any, and decisions are given in the caller's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.estimators.scales import (
    Inputs,
    Rewards,
    learn_inputs,
    learn_rewards,
    no_inputs,
    no_rewards,
    scale,
    scale_reward,
)
from neuralucb.history import History
from neuralucb.policy import Belief, Choice, Context, Info, Note, Noted, Policy, Slot

__all__ = ["SelfScaling", "self_scaling"]

FAR = 1.5
"""Spreads that differ by this factor, or middles by half a spread, are called other units."""


class SelfScaling(NamedTuple):
    """What the policy believes in its own units, and those units."""

    inner: Belief
    inputs: Inputs
    rewards: Rewards
    settled: jax.Array
    """how many rewards had been observed when the units were last changed"""


def self_scaling(inner: Policy, dim: int, *, intercept: bool, as_given: Sequence[int] = ()) -> Policy:
    """The policy, shown inputs and rewards in deviations from what is usual; see `scales` for what that means.

    Units are part of the belief. They are those of the contexts played so far, and change only in `learn`: when twice
    as many rewards have been observed as at the last change, or when they are far off. In between Z, gradients and
    validation see one scale.

    When units change, Z is computed anew from the history at the new θ, up to `history.MOST_AGAIN` rows: sums of
    gradients in two units would be a width in neither. Errors of validation are brought to the new unit of rewards, or
    forgotten where the old one was far off: in it one wild reward, or rewards before the first lesson as they came,
    would outweigh all others. Before that lesson no unit is known, all inputs are 0, and arms that differ only by their
    inputs tie: the choice is uniform.

    What the policy notes of a decision is in its own units, too, and is unknown to it where they have changed since.

    Args:
        inner: A bare policy with `review`, for `dim` numbers, and one more with an intercept.
        dim: The numbers in a context.
        intercept: Whether a 1 follows the scaled inputs, for networks without biases.
        as_given: Inputs that are shown as they come, such as codes of categories.

    Returns:
        A bare policy; its means, widths and scores are in the caller's units, so that γ is in deviations of rewards.
    """
    assert inner.review is not None
    review = inner.review

    def shown(inputs: Inputs, context: Context) -> Context:
        if isinstance(context, Slot):
            return context._replace(x=shown(inputs, context.x))
        scaled = scale(inputs, context)
        if as_given:
            kept = np.broadcast_to(np.isin(np.arange(dim), as_given), scaled.shape)
            scaled = jnp.where(kept, context.astype(scaled.dtype), scaled)
        if not intercept:
            return scaled
        return jnp.concatenate([scaled, jnp.ones((*scaled.shape[:-1], 1), scaled.dtype)], axis=-1)

    def init(key: jax.Array) -> SelfScaling:
        return SelfScaling(inner.init(key), no_inputs(dim), no_rewards(), jnp.int32(0))

    def select(key: jax.Array, belief: SelfScaling, contexts: Context, available: jax.Array) -> Choice:
        choice = inner.select(key, belief.inner, shown(belief.inputs, contexts), available)
        kind = choice.mean.dtype
        mean, deviation = belief.rewards.mean.astype(kind), belief.rewards.deviation.astype(kind)
        return choice._replace(
            mean=mean + deviation * choice.mean,
            width=deviation * choice.width,
            score=mean + deviation * choice.score,
        )

    def units_of(belief: SelfScaling) -> jax.Array:
        """[1] what tells these units from others; 0 while there are none, and where nothing was noted."""
        return belief.settled.astype(jnp.float32)[None]

    def take(belief: SelfScaling, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        assert inner.note is not None
        noted = inner.note.take(belief.inner, shown(belief.inputs, contexts), available, choice)
        return jnp.concatenate([units_of(belief), noted])

    def observe(belief: SelfScaling, context: Context, reward: jax.Array) -> SelfScaling:
        if isinstance(context, Noted):
            of_now = (context.note[:1] == units_of(belief)) & (context.note[:1] > 0)
            note = jnp.where(of_now, context.note[1:], jnp.zeros_like(context.note[1:]))
            here = Noted(shown(belief.inputs, context.context), note)
        else:
            here = shown(belief.inputs, context)
        return belief._replace(inner=inner.observe(belief.inner, here, scale_reward(belief.rewards, reward)))

    def learn(key: jax.Array, belief: SelfScaling, history: History) -> tuple[SelfScaling, Info]:
        x = history.contexts.x if isinstance(history.contexts, Slot) else history.contexts
        new = learn_inputs(x, history.seen), learn_rewards(history.rewards, history.seen)
        old = belief.inputs, belief.rewards
        change = (history.rounds >= 2 * belief.settled) | _are_far(old, new)
        inputs, rewards = _choose(change, new, old)
        now = in_units(inputs, rewards, history)
        trained, info = inner.learn(key, belief.inner, now)
        # rows in a loop, none of them where units stay: under `vmap` a branch would cost as much as a change
        unit = jnp.where(belief.inputs.known, _unit(belief.rewards, rewards), 0)
        reviewed = review(trained, now._replace(seen=jnp.where(change, now.seen, 0)), unit)
        settled = jnp.where(change, history.rounds, belief.settled)
        return SelfScaling(_choose(change, reviewed, trained), inputs, rewards, settled), info

    def review_all(belief: SelfScaling, history: History) -> SelfScaling:
        return belief._replace(inner=review(belief.inner, in_units(belief.inputs, belief.rewards, history)))

    def in_units(inputs: Inputs, rewards: Rewards, history: History) -> History:
        return history._replace(
            contexts=shown(inputs, history.contexts), rewards=scale_reward(rewards, history.rewards)
        )

    note = None if inner.note is None else Note(1 + inner.note.size, take)
    return Policy(init, select, observe, learn, review=review_all, note=note)


def _are_far(old: tuple[Inputs, Rewards], new: tuple[Inputs, Rewards]) -> jax.Array:
    """Whether what was learned in the old units says little in the new ones."""
    (inputs, rewards), (new_inputs, new_rewards) = old, new
    of_inputs = _far(inputs.spread, new_inputs.spread, inputs.middle - new_inputs.middle).any()
    of_rewards = _far(rewards.deviation, new_rewards.deviation, rewards.mean - new_rewards.mean)
    began = (rewards.low < rewards.high) != (new_rewards.low < new_rewards.high)  # bounds at one number hide all others
    return (inputs.known != new_inputs.known) | of_inputs | of_rewards | began


def _unit(old: Rewards, new: Rewards) -> jax.Array:
    """The old deviation over the new one; 0 where they are far from each other."""
    far = _far(old.deviation, new.deviation, jnp.zeros_like(old.deviation))
    return jnp.where(far, 0, old.deviation / new.deviation)


def _far(spread: jax.Array, other: jax.Array, shift: jax.Array) -> jax.Array:
    larger, smaller = jnp.maximum(spread, other), jnp.minimum(spread, other)
    return (larger > FAR * smaller) | (jnp.abs(shift) > 0.5 * larger)


def _choose(condition: jax.Array, one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
