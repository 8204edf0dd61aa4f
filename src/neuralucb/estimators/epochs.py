"""Epochs of one uniform choice and many greedy ones, over any estimator: Epoch-Greedy (Langford & Zhang 2008)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.history import History
from neuralucb.policy import Choice, Context, Estimator, Info, Note, Noted, Policy, combine
from neuralucb.rules import epsilon_greedy
from neuralucb.runtime.precision import Number

__all__ = ["Epochs", "epochs"]


class Epochs(NamedTuple):
    """What the estimator believes; the number of explorations so far; and how many greedy choices are left."""

    belief: Any
    epoch: jax.Array
    left: jax.Array


def epochs(estimator: Estimator, *, exploitation: Number) -> Policy:
    """One uniform choice opens epoch ℓ, ⌊c√ℓ⌋ greedy ones follow it; only what the uniform ones brought is learned.

    An epoch is counted in rewards, so that an exploration lasts until its reward has come: late rewards of greedy
    choices do not end it. Which decisions were explorations is noted; those of other policies count as explorations.
    Propensity: exact; 1 in greedy rounds without ties.
    Bare: `guard` adds the checks of its input.
    """

    def init(key: jax.Array) -> Epochs:
        return Epochs(estimator.init(key), jnp.int32(0), jnp.int32(0))

    def select(key: jax.Array, now: Epochs, contexts: Context, available: jax.Array) -> Choice:
        explores = (now.left == 0).astype(jnp.float32)
        return combine(estimator, epsilon_greedy(explores)).select(key, now.belief, contexts, available)

    def take(now: Epochs, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        return (now.left > 0).astype(jnp.float32)[None]

    def observe(now: Epochs, noted: Noted, reward: jax.Array) -> Epochs:
        learned, greedy = estimator.observe(now.belief, noted.context, reward), noted.note[0] > 0
        belief = jax.tree.map(lambda old, new: jnp.where(greedy, old, new), now.belief, learned)
        opens = (now.left == 0) & ~greedy
        epoch = now.epoch + opens.astype(jnp.int32)
        length = jnp.floor(jnp.asarray(exploitation, jnp.float32) * jnp.sqrt(epoch.astype(jnp.float32)))
        return Epochs(belief, epoch, jnp.where(opens, length.astype(jnp.int32), jnp.maximum(now.left - 1, 0)))

    def learn(key: jax.Array, now: Epochs, history: History) -> tuple[Epochs, Info]:
        return now, Info.nothing()

    return Policy(init, select, observe, learn, note=Note(1, take))
