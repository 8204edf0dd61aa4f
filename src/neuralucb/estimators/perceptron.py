"""A perceptron that learns from the rewards of what it chose: the Banditron (Kakade et al. 2008)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.estimators.likelihood import with_arm
from neuralucb.history import History
from neuralucb.policy import Choice, Context, Estimator, Info, Note, Noted, Policy, Prediction, Slot, combine
from neuralucb.rules import best_shares, epsilon_greedy
from neuralucb.runtime.precision import Number

__all__ = ["Perceptron", "perceptron"]


class Perceptron(NamedTuple):
    """W, a row per arm, or one for all; and t."""

    weights: jax.Array
    rounds: jax.Array


def perceptron(*, shape: tuple[int, int], shared: bool, epsilon: Number) -> Policy:
    """Scores Wx, ε-greedy; after a reward r of arm a, which had probability p, where ŷ looked best (their Algorithm 1)

        W ← W + (r/p) e_a xᵀ - e_ŷ xᵀ           for arms that share x
        w ← w + ((r - 1[a = ŷ])/p) x_a          for arms with contexts of their own

    Both have the expected step Σ_a r_a x_a - x_ŷ, the perceptron's; the second needs no context but that of the arm
    played. Where arms tie for the best, each is ŷ in equal parts.
    p and ŷ are noted when the arm is chosen. Decisions of other policies, of which they are not known, teach nothing.
    Bare: `guard` adds the checks of its input.

    shape  arms and numbers in a context; one arm where each has a context of its own
    """

    def init(key: jax.Array) -> Perceptron:
        return Perceptron(jnp.zeros(shape, jnp.float32), jnp.int32(0))

    def predict(belief: Perceptron, context: Context) -> Prediction:
        x, arm = with_arm(context)
        zero = jnp.zeros((), jnp.float32)
        return Prediction(x.astype(jnp.float32) @ belief.weights[arm], zero, belief.rounds, zero)

    def take(belief: Perceptron, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        # by these weights, not by `choice.mean`: another policy, such as EXP4, may have chosen
        scores = jax.vmap(lambda context: predict(belief, context).mean)(contexts)
        best, p = best_shares(scores, available), choice.propensity[choice.arm]
        if isinstance(contexts, Slot):
            looked_best = jnp.zeros(shape[0], jnp.float32).at[contexts.arm].add(best)
        else:
            looked_best = best[choice.arm][None]
        return jnp.concatenate([p[None].astype(jnp.float32), looked_best])

    def observe(belief: Perceptron, noted: Noted, reward: jax.Array) -> Perceptron:
        x, arm = with_arm(noted.context)
        p, looked_best = noted.note[0], noted.note[1:]
        weight = jnp.where(p > 0, 1 / p, 0)
        gain = jnp.zeros(shape[0], jnp.float32).at[arm].set(weight * reward.astype(jnp.float32))
        loss = looked_best if shared else weight * looked_best
        step = jnp.outer(gain - loss, x.astype(jnp.float32))
        return Perceptron(belief.weights + step, belief.rounds + 1)

    def learn(key: jax.Array, belief: Perceptron, history: History) -> tuple[Perceptron, Info]:
        return belief, Info.nothing()

    estimator = Estimator(init, predict, observe, learn, lambda context: None)
    size = 1 + (shape[0] if shared else 1)
    return combine(estimator, epsilon_greedy(epsilon))._replace(note=Note(size, take))
