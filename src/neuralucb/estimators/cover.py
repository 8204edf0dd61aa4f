"""A cover of policies, each drawn to what those before it do not play: Online Cover (Agarwal et al. 2014)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.gradients import dense, scale
from neuralucb.history import History
from neuralucb.policy import Choice, Context, Info, Note, Noted, Policy
from neuralucb.rules import best_shares, draw_arm, uniform_shares
from neuralucb.runtime.precision import Number

__all__ = ["Cover", "cover"]


class Cover(NamedTuple):
    """Z_t, which all policies share; b and the coefficients of each; and t."""

    params: Any
    z: Any
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array


def cover(features: Features, design: Design, *, policies: int, bonus: Number, exploration: Number) -> Policy:
    """n greedy policies over regressions, mixed in equal parts and with ε_t of each arm (Agarwal et al. 2014).

        p(a) = ε_t + (1 - K ε_t) q_n(a),   ε_t = min(1/K, c/√(Kt)),   q_i(a) the share of the first i that choose a
        policy i regresses on r + ψ ε_t/(ε_t + (1 - K ε_t) q_{i-1}(a)),   weight 1/p(a);   the first on r alone

    The weights make each regression that over all arms in expectation, although only the arm played is seen. What the
    other policies would have chosen is noted when the arm is chosen; decisions of which nothing is known have weight 1
    and no bonus. A round costs what the design costs, and O(n d²).
    Propensity: exact.
    Bare: `guard` adds the checks of its input.
    """

    def init(key: jax.Array) -> Cover:
        z = design.init()
        zero = design.solve(z, jnp.zeros(features.size, dtype=jnp.float32))
        zeros = jnp.broadcast_to(zero, (policies, *zero.shape))
        return Cover(features.init(key), z, zeros, zeros, jnp.int32(0))

    def means(belief: Cover, contexts: Context) -> jax.Array:
        """[n, K] what each policy predicts for each arm."""

        def one(context: Context) -> jax.Array:
            phi = dense(features.apply(belief.params, context)).astype(belief.coefficients.dtype)
            return belief.coefficients @ phi

        return jax.vmap(one, out_axes=1)(contexts)

    def shares(belief: Cover, predicted: jax.Array, available: jax.Array) -> tuple[jax.Array, jax.Array]:
        """ε_t; and [n, K] q_1 to q_n."""
        count = available.sum(dtype=jnp.int32).astype(jnp.float32)
        t = (belief.rounds + 1).astype(jnp.float32)
        least = jnp.minimum(1 / count, jnp.asarray(exploration, jnp.float32) / jnp.sqrt(count * t))
        chosen = jax.vmap(best_shares, (0, None))(predicted, available)
        return least, jnp.cumsum(chosen, axis=0) / jnp.arange(1, policies + 1, dtype=jnp.float32)[:, None]

    def smoothed(least: jax.Array, q: jax.Array, available: jax.Array) -> jax.Array:
        """ε_t + (1 - K ε_t) q for available arms."""
        floor = least * available.sum(dtype=jnp.int32).astype(jnp.float32)
        return floor * uniform_shares(available) + (1 - floor) * q

    def select(key: jax.Array, belief: Cover, contexts: Context, available: jax.Array) -> Choice:
        predicted = means(belief, contexts)
        least, q = shares(belief, predicted, available)
        propensity = smoothed(least, q[-1], available)
        arm, zero = draw_arm(key, propensity), jnp.zeros_like(predicted[0])
        return Choice(arm, predicted[0], zero, predicted.mean(axis=0), zero[0], propensity)

    def take(belief: Cover, contexts: Context, available: jax.Array, choice: Choice) -> jax.Array:
        """p(a) of the arm played; and the bonus that each policy has for it."""
        least, q = shares(belief, means(belief, contexts), available)
        others = jax.vmap(smoothed, (None, 0, None))(least, q[:-1], available)[:, choice.arm]
        earned = jnp.asarray(bonus, jnp.float32) * least / others
        p = choice.propensity[choice.arm].astype(jnp.float32)
        return jnp.concatenate([p[None], jnp.zeros(1, jnp.float32), earned])

    def observe(belief: Cover, noted: Noted, reward: jax.Array) -> Cover:
        p, bonuses = noted.note[0], noted.note[1:]
        weight = jnp.where(p > 0, 1 / p, 1)
        phi = features.apply(belief.params, noted.context)
        z = design.add(belief.z, scale(phi, jnp.sqrt(weight)))
        dtype = belief.b.dtype
        targets = (weight * (reward.astype(jnp.float32) + bonuses)).astype(dtype)
        b = belief.b + targets[:, None] * dense(phi).astype(dtype)[None, :]
        solved = jax.vmap(design.solve, (None, 0))(z, b)
        return Cover(belief.params, z, b, solved, belief.rounds + 1)

    def learn(key: jax.Array, belief: Cover, history: History) -> tuple[Cover, Info]:
        return belief, Info.nothing()

    return Policy(init, select, observe, learn, note=Note(1 + policies, take))
