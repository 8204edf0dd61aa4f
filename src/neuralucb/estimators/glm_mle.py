"""A generalised linear model of maximum likelihood, and the width of its intervals: UCB-GLM's estimator."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from neuralucb.designs import Design
from neuralucb.estimators.features import Features
from neuralucb.estimators.likelihood import Fit, Link, begin, predictor, refit, step
from neuralucb.history import History, observe_again
from neuralucb.policy import Context, Estimator, Info, Prediction
from neuralucb.runtime.precision import Number

__all__ = ["GlmMle", "glm_mle"]


class GlmMle(NamedTuple):
    """The fit, V_t and t."""

    fit: Fit
    z: Any
    rounds: jax.Array


def glm_mle(
    features: Features,
    design: Design,
    link: Link,
    *,
    shape: tuple[int, int],
    ridge: Number,
    iterations: int,
    dtype: Any = "float64",
) -> Estimator:
    """Linear predictor xᵀθ̂ and width sqrt(xᵀV⁻¹x), over contexts as they are; θ̂ is found anew by every lesson.

    shape  arms and numbers in a context; one arm where each has a context of its own
    """

    def init(key: jax.Array) -> GlmMle:
        return GlmMle(begin(jnp.zeros(shape, dtype), ridge=ridge), design.init(), jnp.int32(0))

    def predict(belief: GlmMle, context: Context) -> Prediction:
        mean = predictor(belief.fit, context)
        width = design.width(belief.z, features.apply((), context)).astype(mean.dtype)
        return Prediction(mean, width, belief.rounds, design.log_det(belief.z))

    def observe(belief: GlmMle, context: Context, reward: jax.Array) -> GlmMle:
        z = design.add(belief.z, features.apply((), context))
        return GlmMle(step(link, belief.fit, context, reward), z, belief.rounds + 1)

    def learn(key: jax.Array, belief: GlmMle, history: History) -> tuple[GlmMle, Info]:
        fit = refit(link, belief.fit, history, ridge=ridge, iterations=iterations)
        lost = ~jnp.isfinite(fit.coefficients).all()
        return belief._replace(fit=fit), Info.nothing()._replace(diverged=lost)

    def review(belief: GlmMle, history: History, unit: Number = 1.0) -> GlmMle:
        def add(z: Any, context: Context, reward: jax.Array) -> Any:
            return design.add(z, features.apply((), context))

        return belief._replace(z=observe_again(history, add, design.init()))

    return Estimator(init, predict, observe, learn, features.check, review)
