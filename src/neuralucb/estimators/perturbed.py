"""Models fitted to rewards with noise added, one of which decides: perturbed history (Kveton et al. 2020)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from neuralucb.estimators.likelihood import Fit, Link, begin, predictor, refit, step
from neuralucb.history import History
from neuralucb.policy import Choice, Context, Info, Policy
from neuralucb.rules import best_arm, best_shares
from neuralucb.runtime.precision import Number

__all__ = ["Perturbed", "perturbed"]


class Perturbed(NamedTuple):
    """A fit per model, the key of their noise, and t."""

    fits: Fit
    noise: jax.Array
    rounds: jax.Array


def perturbed(
    link: Link,
    *,
    models: int,
    shape: tuple[int, int],
    deviation: Number,
    ridge: Number,
    iterations: int,
    dtype: Any = "float64",
) -> Policy:
    """Each model fits r_s + ζ_s, ζ_s ~ N(0, a²), and is pulled to a start from N(0, a²/λ); one of them decides.

    For the linear link θ_m ~ N(θ̂, a²Z⁻¹), the posterior of Thompson sampling. Noise and starts are drawn anew by every
    lesson. A round costs O(M d²), a choice O(M K d), a lesson M times that of `likelihood.refit`.
    Propensity: exact, the share of models that would choose the arm, ties counted.
    Bare: `guard` adds the checks of its input.

    shape  arms and numbers in a context; one arm where each has a context of its own
    """

    def starts(key: jax.Array) -> jax.Array:
        spread = jnp.asarray(deviation, dtype) / jnp.sqrt(jnp.asarray(ridge, dtype))
        return spread * random.normal(key, (models, *shape), dtype)

    def init(key: jax.Array) -> Perturbed:
        key_starts, key_noise = random.split(key)
        return Perturbed(
            jax.vmap(lambda centre: begin(centre, ridge=ridge, copies=models))(starts(key_starts)),
            key_noise,
            jnp.int32(0),
        )

    def select(key: jax.Array, belief: Perturbed, contexts: Context, available: jax.Array) -> Choice:
        key_model, key_tie = random.split(key)
        predictors = jax.vmap(jax.vmap(predictor, (None, 0)), (0, None))(belief.fits, contexts)
        decides = predictors[random.randint(key_model, (), 0, models, dtype=jnp.int32)]
        means = link.mean(predictors)
        propensity = jax.vmap(best_shares, (0, None))(predictors, available).mean(axis=0)
        arm, nothing = best_arm(key_tie, decides, available), jnp.zeros((), means.dtype)
        return Choice(arm, means.mean(axis=0), means.std(axis=0), link.mean(decides), nothing, propensity)

    def observe(belief: Perturbed, context: Context, reward: jax.Array) -> Perturbed:
        noise = random.normal(random.fold_in(belief.noise, belief.rounds), (models,), dtype)
        rewards = reward.astype(dtype) + jnp.asarray(deviation, dtype) * noise
        fits = jax.vmap(lambda fit, noisy: step(link, fit, context, noisy))(belief.fits, rewards)
        return belief._replace(fits=fits, rounds=belief.rounds + 1)

    def learn(key: jax.Array, belief: Perturbed, history: History) -> tuple[Perturbed, Info]:
        key_starts, key_noise = random.split(key)

        def one(key_model: jax.Array, centre: jax.Array, fit: Fit) -> Fit:
            noise = jnp.asarray(deviation, jnp.float32) * random.normal(key_model, history.rewards.shape, jnp.float32)
            noisy = history._replace(rewards=history.rewards + noise)
            return refit(link, fit._replace(centre=centre), noisy, ridge=ridge, iterations=iterations)

        fits = jax.vmap(one)(random.split(key_noise, models), starts(key_starts), belief.fits)
        lost = ~jnp.isfinite(fits.coefficients).all()
        return belief._replace(fits=fits), Info.nothing()._replace(diverged=lost)

    review: Callable[..., Perturbed] = lambda belief, history, unit=1.0: belief  # noqa: E731 -- a lesson fits all anew
    return Policy(init, select, observe, learn, review=review)
