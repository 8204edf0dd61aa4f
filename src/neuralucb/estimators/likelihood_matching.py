"""NeuralLinear with limited memory: the regression's variances are carried to new features (Zahavy & Mannor 2019)."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.estimators.ridge import Ridge, ridge
from neuralucb.gradients import scale
from neuralucb.history import History
from neuralucb.networks.network import Network
from neuralucb.policy import Belief, Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number
from neuralucb.training import Train

__all__ = ["Matched", "likelihood_matching", "match_weights", "weighted_design"]

MATCHINGS = 10
"""Steps by which the weights are found: variances that some weights have are then met within 2 % on average, 8 % at
most (random features, 12 and 64 rows, weights up to 50)."""

LARGEST_STEP = 4.0
"""The most by which a weight is multiplied or divided in one step."""


class Matched(NamedTuple):
    """The regression of what the network's output layer misses, with θ_t as the parameters of its features; and θ_0."""

    regression: Ridge
    initial: Any

    @property
    def params(self) -> Any:
        """θ_t."""
        return self.regression.params


def likelihood_matching(
    network: Network,
    features: Features,
    design: Design,
    train: Train,
    *,
    memory: int,
    start: Literal["initial", "warm"] = "initial",
) -> Estimator:
    """Mean f(x; θ) + φᵀδ and width sqrt(φᵀZ⁻¹φ), with δ the regression of the rewards' distance from f(x; θ).

    A training sees the last `memory` rows, and so does the prior on its new features: its mean is the network's output
    layer, δ = 0, and its precision is that of `match_weights`, for which the stored contexts keep their variances.
    Rows that left the memory count by what they did to those variances.

    Departures: the precision is λI + Σ w_j φ_jφ_jᵀ, w ≥ 0, over the stored contexts, found by fixed-point steps, where
    the text solves a semidefinite program for any covariance; and stored rewards, whose variances the prior already
    has, are not added to it a second time.
    """
    linear = ridge(features, design)

    def init(key: jax.Array) -> Matched:
        regression = linear.init(key)
        return Matched(regression, regression.params)

    def predict(belief: Matched, context: Context) -> Prediction:
        found = linear.predict(belief.regression, context)
        return found._replace(mean=found.mean + network.apply(belief.params, context).astype(found.mean.dtype))

    def observe(belief: Matched, context: Context, reward: jax.Array) -> Matched:
        missed = reward - network.apply(belief.params, context).astype(reward.dtype)
        return belief._replace(regression=linear.observe(belief.regression, context, missed))

    def learn(key: jax.Array, belief: Matched, history: History) -> tuple[Matched, Info]:
        stored = _last_rows(history, memory)
        begin = belief.initial if start == "initial" else belief.params
        params, info = train(key, network.apply_many, begin, belief.initial, stored)
        apply = jax.vmap(features.apply, (None, 0))
        old = jax.vmap(design.width, (None, 0))(belief.regression.z, apply(belief.params, stored.contexts)) ** 2
        phi = apply(params, stored.contexts)
        weights = match_weights(design, phi, old, stored.seen)
        return prior(belief, params, weighted_design(design, phi, weights, stored.seen)), info

    def prior(belief: Matched, params: Any, z: Any) -> Matched:
        nothing = jnp.zeros_like(belief.regression.b)
        return belief._replace(regression=Ridge(params, z, nothing, nothing, belief.regression.rounds))

    def review(belief: Belief, history: History, unit: Number = 1.0) -> Matched:
        """In other units there are no variances to keep: every stored context counts once."""
        stored = _last_rows(history, memory)
        phi = jax.vmap(features.apply, (None, 0))(belief.params, stored.contexts)
        once = jnp.ones(memory, belief.regression.b.dtype)
        return prior(belief, belief.params, weighted_design(design, phi, once, stored.seen))

    return Estimator(init, predict, observe, learn, network.check, review)


def match_weights(design: Design, phi: Any, variances: jax.Array, seen: jax.Array) -> jax.Array:
    """[n] w ≥ 0 for which φ_jᵀ(λI + Σ w_i φ_iφ_iᵀ)⁻¹φ_j is near the variance given, for each of the first `seen` rows.

    From w = 1, each context counted once, w_j is multiplied by what its variance is over what it should be. Alone in
    its direction, with ‖φ‖ = 1, w ends at 1/variance - λ; where even w = 0 leaves less variance than asked for, at 0.
    """
    counted = jnp.arange(variances.shape[0], dtype=jnp.int32) < seen
    tiny = jnp.finfo(variances.dtype).tiny

    def step(_: jax.Array, weights: jax.Array) -> jax.Array:
        found = jax.vmap(design.width, (None, 0))(weighted_design(design, phi, weights, seen), phi) ** 2
        ratio = jnp.where(counted & (variances > tiny), found.astype(variances.dtype) / variances, 1)
        return weights * jnp.clip(ratio, 1 / LARGEST_STEP, LARGEST_STEP)

    return lax.fori_loop(jnp.int32(0), jnp.int32(MATCHINGS), step, counted.astype(variances.dtype))


def weighted_design(design: Design, phi: Any, weights: jax.Array, seen: jax.Array) -> Any:
    """λI + Σ w_j φ_jφ_jᵀ over the first `seen` rows."""

    def add(row: jax.Array, z: Any) -> Any:
        one = jax.tree.map(lambda leaf: leaf[row], phi)
        return design.add(z, scale(one, jnp.sqrt(weights[row])))

    return lax.fori_loop(jnp.int32(0), seen, add, design.init())


def _last_rows(history: History, memory: int) -> History:
    """The last `memory` rows, as a history of that capacity."""
    capacity = history.rewards.shape[0]
    first = jnp.maximum(history.seen - memory, 0)
    rows = jnp.minimum(first + jnp.arange(memory, dtype=jnp.int32), capacity - 1)
    contexts, rewards = jax.tree.map(lambda leaf: leaf[rows], (history.contexts, history.rewards))
    return History(contexts, rewards, jnp.minimum(history.seen, memory), history.rounds)
