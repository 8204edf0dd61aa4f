"""Bayesian linear regression with an unknown noise, one for all arms or one per arm: NeuralLinear's regression."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.estimators.ridge import Ridge, ridge
from neuralucb.gradients import Block
from neuralucb.history import History, observe_again
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["BayesianRidge", "bayesian_ridge"]

SHAPE, SCALE = 6.0, 6.0
"""a_0 and b_0 of the inverse gamma prior of the noise's variance (Riquelme et al. 2018, Appendix A)."""


class BayesianRidge(NamedTuple):
    """A ridge regression, and of each of its blocks, one per arm or one in all, Σ r² and the number of rewards."""

    params: Any
    z: Any
    b: jax.Array
    coefficients: jax.Array
    rounds: jax.Array
    squares: jax.Array
    counts: jax.Array


def bayesian_ridge(features: Features, design: Design) -> Estimator:
    """Mean φᵀμ and width sqrt(E[σ²] φᵀZ⁻¹φ): the posterior of the mean reward (Riquelme et al. 2018, Section 3.2).

        μ = Z⁻¹b,   E[σ²] = b_n/(a_n - 1),   a_n = a_0 + n/2,   b_n = b_0 + (Σ r² - μᵀZμ)/2

    Departure: σ² at its mean, where the text draws it; samples are then normal, and their propensities known.
    Where features are a `Block`, each arm has its own regression and its own noise.
    """
    linear = ridge(features, design)
    assert linear.review is not None
    review_linear = linear.review
    params = jax.eval_shape(features.init, jax.random.key(0))
    made = jax.eval_shape(features.apply, params, features.example)
    blocks = made.arms if isinstance(made, Block) else 1

    def init(key: jax.Array) -> BayesianRidge:
        start = linear.init(key)
        zero = jnp.zeros(blocks, start.b.dtype)
        return _with_sums(start, (zero, zero))

    def predict(belief: BayesianRidge, context: Context) -> Prediction:
        found = linear.predict(_plain(belief), context)
        explained = (belief.coefficients * belief.b).reshape(blocks, -1).sum(axis=1)
        variance = (SCALE + 0.5 * (belief.squares - explained)) / (SHAPE + 0.5 * belief.counts - 1)
        return found._replace(width=found.width * jnp.sqrt(variance[block_of(context)]))

    def observe(belief: BayesianRidge, context: Context, reward: jax.Array) -> BayesianRidge:
        sums = add((belief.squares, belief.counts), context, reward)
        return _with_sums(linear.observe(_plain(belief), context, reward), sums)

    def learn(key: jax.Array, belief: BayesianRidge, history: History) -> tuple[BayesianRidge, Info]:
        return belief, Info.nothing()

    def review(belief: BayesianRidge, history: History, unit: Number = 1.0) -> BayesianRidge:
        nothing = jnp.zeros(blocks, belief.squares.dtype)
        sums = observe_again(history, add, (nothing, nothing))
        return _with_sums(review_linear(_plain(belief), history), sums)

    def add(sums: tuple[jax.Array, jax.Array], context: Context, reward: jax.Array) -> tuple[jax.Array, jax.Array]:
        block, (squares, counts) = block_of(context), sums
        return squares.at[block].add(reward.astype(squares.dtype) ** 2), counts.at[block].add(1)

    def block_of(context: Context) -> jax.Array:
        return context.arm if isinstance(made, Block) else jnp.int32(0)

    return Estimator(init, predict, observe, learn, features.check, review)


def _plain(belief: BayesianRidge) -> Ridge:
    return Ridge(*belief[:5])


def _with_sums(plain: Ridge, sums: tuple[jax.Array, jax.Array]) -> BayesianRidge:
    squares, counts = sums
    return BayesianRidge._make((*plain, squares, counts))
