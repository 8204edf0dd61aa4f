"""A generalised linear model by maximum likelihood: Newton's method over the history, and a Newton step per round."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from neuralucb.history import History, total
from neuralucb.policy import Context, Slot
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.precision import Number, require

__all__ = ["LINKS", "Fit", "Link", "begin", "predictor", "refit", "step", "with_arm"]

CURE = "take fewer inputs, or fewer models where there are several"


class Link(NamedTuple):
    """From the linear predictor z = xᵀθ to the expected reward."""

    mean: Callable[[jax.Array], jax.Array]
    """μ(z)"""
    slope: Callable[[jax.Array], jax.Array]
    """μ'(z)"""
    loss: Callable[[jax.Array, jax.Array], jax.Array]
    """z, r -> minus the log-likelihood of r, whose derivative by z is μ(z) - r"""


LINKS = {
    "logistic": Link(
        jax.nn.sigmoid,
        lambda z: jax.nn.sigmoid(z) * jax.nn.sigmoid(-z),
        lambda z, r: jax.nn.softplus(z) - r * z,
    ),
    "linear": Link(lambda z: z, jnp.ones_like, lambda z, r: (z - r) ** 2 / 2),
}


class Fit(NamedTuple):
    """θ of each arm, or one for all; where its ridge pulls it; and the inverse of the Hessian λI + Σ μ'(xᵀθ) xxᵀ."""

    coefficients: jax.Array
    centre: jax.Array
    inverse: jax.Array


def begin(centre: jax.Array, *, ridge: Number, copies: int = 1) -> Fit:
    """The fit to nothing: θ is the centre [arms, d]. `copies` says how many such fits there will be."""
    require(centre.dtype)
    arms, dim = centre.shape
    size = copies * arms * dim**2
    require_memory(size * centre.dtype.itemsize, what=f"Hessians of {size} numbers", cure=CURE)
    inverse = jnp.eye(dim, dtype=centre.dtype) / jnp.asarray(ridge, centre.dtype)
    return Fit(centre, centre, jnp.broadcast_to(inverse, (arms, dim, dim)))


def with_arm(context: Context) -> tuple[jax.Array, jax.Array]:
    """x and the arm whose θ it meets: 0 where one θ serves all arms. Also for many contexts."""
    if isinstance(context, Slot):
        return context.x, context.arm
    return context, jnp.zeros(context.shape[:-1], jnp.int32)


def predictor(fit: Fit, context: Context) -> jax.Array:
    """xᵀθ."""
    x, arm = with_arm(context)
    return x.astype(fit.coefficients.dtype) @ fit.coefficients[arm]


def step(link: Link, fit: Fit, context: Context, reward: jax.Array) -> Fit:
    """One Newton step on one observation, O(d²): for the linear link exactly the new fit, for others near it."""
    x, arm = with_arm(context)
    x = x.astype(fit.coefficients.dtype)
    z = x @ fit.coefficients[arm]
    u = fit.inverse[arm] @ x
    inverse = fit.inverse[arm] - jnp.outer(u, u) * (link.slope(z) / (1 + link.slope(z) * (x @ u)))
    moved = fit.coefficients[arm] + (inverse @ x) * (reward.astype(x.dtype) - link.mean(z))
    return fit._replace(coefficients=fit.coefficients.at[arm].set(moved), inverse=fit.inverse.at[arm].set(inverse))


def refit(link: Link, fit: Fit, history: History, *, ridge: Number, iterations: int) -> Fit:
    """argmin Σ loss(x_sᵀθ, r_s) + λ‖θ - centre‖²/2, by Newton's method from the last θ.

    A row costs O(arms d²) per iteration. A step that would raise the loss is halved instead; each trial counts as an
    iteration.
    """
    dtype, (arms, dim) = fit.coefficients.dtype, fit.coefficients.shape
    lam = jnp.asarray(ridge, dtype)

    def evaluate(theta: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def block(contexts: Any, rewards: jax.Array, weights: jax.Array) -> tuple[jax.Array, ...]:
            x, arm = with_arm(contexts)
            x, r, w = (values.astype(dtype) for values in (x, rewards, weights))
            z = (x * theta[arm]).sum(axis=1)
            of_arm = jax.nn.one_hot(arm, arms, dtype=dtype) * w[:, None]
            gradient = jnp.einsum("nk,nd->kd", of_arm, x * (link.mean(z) - r)[:, None])
            curved = x * link.slope(z)[:, None]
            return (w * link.loss(z, r)).sum(), gradient, jnp.einsum("nk,ni,nj->kij", of_arm, curved, x)

        loss, gradient, hessian = total(history, block)
        away = theta - fit.centre
        eye = jnp.eye(dim, dtype=dtype)[None]
        return loss + lam * (away**2).sum() / 2, gradient + lam * away, hessian + lam * eye

    def one(_: jax.Array, now: _Newton) -> _Newton:
        tried = now.theta + now.length * now.direction
        loss, gradient, hessian = evaluate(tried)
        inverse, better = jax.vmap(_inverse)(hessian), loss <= now.loss
        return _Newton(
            jnp.where(better, tried, now.theta),
            jnp.where(better, loss, now.loss),
            jnp.where(better, -jnp.einsum("kij,kj->ki", inverse, gradient), now.direction),
            jnp.where(better, 1, now.length / 2),
            jnp.where(better, inverse, now.inverse),
        )

    nothing, infinite, full = jnp.zeros_like(fit.centre), jnp.array(jnp.inf, dtype), jnp.ones((), dtype)
    start = _Newton(fit.coefficients, infinite, nothing, full, fit.inverse)
    end = lax.fori_loop(0, iterations + 1, one, start)  # the first only evaluates
    return Fit(end.theta, fit.centre, end.inverse)


class _Newton(NamedTuple):
    """The best θ so far, its loss, the inverse of its Hessian, and the step that is tried next."""

    theta: jax.Array
    loss: jax.Array
    direction: jax.Array
    length: jax.Array
    inverse: jax.Array


def _inverse(matrix: jax.Array) -> jax.Array:
    """The inverse of a positive definite matrix, pivot by pivot (the sweep operator, Goodnight 1979).

    LAPACK would start threads inside a compiled loop, which costs far more than these products on a busy machine.
    """

    def sweep(pivot: jax.Array, a: jax.Array) -> jax.Array:
        row = a[pivot] / a[pivot, pivot]
        swept = a - jnp.outer(a[pivot], row)
        swept = swept.at[pivot].set(row).at[:, pivot].set(row)
        return swept.at[pivot, pivot].set(-1 / a[pivot, pivot])

    return -lax.fori_loop(0, len(matrix), sweep, matrix)
