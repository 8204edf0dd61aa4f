"""Bayes by backprop: a normal posterior over every weight, learned by its gradients (Blundell et al. 2015; BBQ)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

from neuralucb.estimators.ensemble import decide
from neuralucb.history import History, total
from neuralucb.networks.network import Network
from neuralucb.policy import Choice, Context, Info, Policy
from neuralucb.runtime.precision import Number
from neuralucb.training import draw_rows

__all__ = ["Variational", "bayes_by_backprop"]


class Variational(NamedTuple):
    """The posterior N(μ, s²) of every weight, θ_0, and networks drawn from it at the last training."""

    params: Any
    """μ"""
    log_deviations: Any
    """log s"""
    initial: Any
    drawn: Any
    """with a leading axis of networks"""


def bayes_by_backprop(
    network: Network,
    *,
    networks: int,
    noise: Number,
    regularization: Number,
    step_size: Number,
    steps: int | str,
    batch_size: int,
) -> Policy:
    """Thompson sampling over networks drawn from a posterior that minimises the variational free energy.

        E_q[Σ_i (f(x_i; w) - r_i)²/(2σ²)] + KL(q ‖ N(θ_0, σ²/λ)),   q = N(μ, s²), one μ and one s per weight

    by J minibatch steps of Adam, each with one draw of w = μ + s·N(0, I); steps shrink linearly to 0. Multiplied by
    σ²/t this is a mean squared error, a pull λ/t to θ_0 as in NeuralUCB, and -(σ²/t) log s.
    Departures: the prior is around θ_0; and `networks` draws after each training take turns at random, where the text
    draws at every decision. Propensities are then exact.

    Args:
        network: f(x; w).
        networks: Draws that are kept.
        noise: σ.
        regularization: λ.
        step_size: η of Adam.
        steps: J, or "t" for as many as rounds.
        batch_size: B.

    Returns:
        A bare policy. A round costs K evaluations of every network, a training J steps of about three networks each.
    """
    import optax  # imported on request: only networks that are trained need it

    optimizer = optax.adam(1.0)  # steps are multiplied by η below, so that they can shrink

    def init(key: jax.Array) -> Variational:
        key_start, key_draw = random.split(key)
        initial = network.init(key_start)
        start = jax.tree.map(
            lambda w: jnp.full_like(w, jnp.log(_number(noise) / jnp.sqrt(_number(regularization)))), initial
        )
        return Variational(initial, start, initial, draw(key_draw, initial, start))

    def draw(key: jax.Array, mean: Any, log_deviations: Any) -> Any:
        return jax.vmap(lambda one: _sample(one, mean, log_deviations))(random.split(key, networks))

    def select(key: jax.Array, belief: Variational, contexts: Context, available: jax.Array) -> Choice:
        return decide(key, network, belief.drawn, contexts, available)

    def observe(belief: Variational, context: Context, reward: jax.Array) -> Variational:
        return belief

    def learn(key: jax.Array, belief: Variational, history: History) -> tuple[Variational, Info]:
        key_steps, key_draw = random.split(key)
        count = history.rounds if steps == "t" else jnp.int32(steps)
        start = belief.params, belief.log_deviations

        def step(index: jax.Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
            posterior, moments = state
            key_rows, key_weights = random.split(random.fold_in(key_steps, index))
            rows = draw_rows(key_rows, (batch_size,), history.seen)
            batch, rewards = jax.tree.map(lambda leaf: leaf[rows], (history.contexts, history.rewards))

            def energy(posterior: tuple[Any, Any]) -> jax.Array:
                values = network.apply_many(_sample(key_weights, *posterior), batch)
                misfit = 0.5 * ((values - rewards.astype(values.dtype)) ** 2).mean()
                return misfit + complexity(posterior, belief.initial, history.seen)

            slope = jax.grad(energy)(posterior)
            with jax.numpy_dtype_promotion("standard"):  # optax raises numbers to integer powers
                change, moments = optimizer.update(slope, moments)
            eta = _number(step_size) * (1 - index.astype(jnp.float32) / count.astype(jnp.float32))
            moved = jax.tree.map(lambda w, dw: w + eta.astype(w.dtype) * dw.astype(w.dtype), posterior, change)
            return moved, moments

        def walk() -> tuple[Any, Any]:
            return lax.fori_loop(jnp.int32(0), count, step, (start, optimizer.init(start)))[0]

        mean, log_deviations = jax.tree.map(lambda new, old: jnp.where(history.seen > 0, new, old), walk(), start)
        loss = total(history, lambda *rows: _squared_error(network, mean, *rows))
        loss = loss / jnp.maximum(history.seen, 1).astype(loss.dtype)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves((mean, log_deviations))]).all()
        drawn = draw(key_draw, mean, log_deviations)
        return Variational(mean, log_deviations, belief.initial, drawn), Info(loss, ~(finite & jnp.isfinite(loss)))

    def complexity(posterior: tuple[Any, Any], initial: Any, seen: jax.Array) -> jax.Array:
        """(σ²/t) KL, up to a constant."""

        def one(mean: jax.Array, log_s: jax.Array, start: jax.Array) -> jax.Array:
            lam, variance = (_number(number).astype(mean.dtype) for number in (regularization, _number(noise) ** 2))
            return (0.5 * lam * (jnp.exp(2 * log_s) + (mean - start) ** 2) - variance * log_s).sum()

        parts = jnp.stack(jax.tree.leaves(jax.tree.map(one, *posterior, initial))).sum()
        return parts / jnp.maximum(seen, 1).astype(parts.dtype)

    return Policy(init, select, observe, learn, review=lambda belief, history, unit=1.0: belief)


def _sample(key: jax.Array, mean: Any, log_deviations: Any) -> Any:
    """One w from the posterior."""
    leaves, structure = jax.tree.flatten(mean)
    keys = jax.tree.unflatten(structure, list(random.split(key, len(leaves))))
    return jax.tree.map(
        lambda one, m, log_s: m + jnp.exp(log_s) * random.normal(one, m.shape, m.dtype), keys, mean, log_deviations
    )


def _squared_error(network: Network, params: Any, contexts: Any, rewards: jax.Array, weights: jax.Array) -> jax.Array:
    values = network.apply_many(params, contexts)
    return 0.5 * (weights.astype(values.dtype) * (values - rewards.astype(values.dtype)) ** 2).sum()


def _number(value: Number) -> jax.Array:
    return jnp.asarray(value, jnp.float32)
