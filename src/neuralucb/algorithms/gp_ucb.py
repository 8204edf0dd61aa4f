"""GP-UCB: a Gaussian process over contexts, and optimism (Srinivas et al. 2010; Krause & Ong 2011)."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import EXPLORATION, PRECISION, RADIUS, RIDGE, linear_features, precision_of
from neuralucb.confidence import constant
from neuralucb.estimators.kernel import Similarity, kernel, rbf
from neuralucb.gradients import Block, inner
from neuralucb.policy import Choice, Policy, Prediction, Rule, policy
from neuralucb.rules import ucb
from neuralucb.runtime.precision import Number
from neuralucb.settings import choice, integer, number

__all__ = ["GP_UCB"]


def gp_ucb(task: Task, settings: Mapping[str, Any]) -> Policy:
    """GP-UCB: the posterior of a Gaussian process over contexts, and optimism (Srinivas et al. 2010, Algorithm 1).

        a = argmax μ_t(x_a) + c √β_t σ_t(x_a),   σ_t²(x) = k(x,x) - kᵀ(K + σ²I)⁻¹k,   β_t = 2 log(K t²π²/(6δ))

    It differs from KernelUCB in three things: its width is the posterior's deviation, which is KernelUCB's times σ;
    β_t grows with t; and where arms share a context its kernel is k(x, x') for the same arm and 0 for another
    (Krause & Ong 2011: a product of kernels over arms and contexts), not that of (0, …, x, …, 0).
    A round costs O(K budget²), from the first.
    Departs from the paper in: observations after the first `budget`, which are not added; and c, by default the root of
    the 1/5 by which the text's experiments scale β_t.
    """
    similarity = rbf(settings["bandwidth"]) if settings["kernel"] == "rbf" else inner
    budget = settings["budget"] if task.rounds is None else min(settings["budget"], task.rounds)
    variance = settings["regularization"]
    common = {"ridge": variance, "capacity": budget, "stops": True, "dtype": precision_of(settings)}
    estimator = kernel(linear_features(task), _of_same_arm(similarity), **common)
    grows = settings["confidence"] == "growing"
    return policy(estimator, _optimism(settings["exploration"], variance, settings["failure"] if grows else None))


def _of_same_arm(similarity: Similarity) -> Similarity:
    def product(x: Any, y: Any) -> jax.Array:
        if not isinstance(x, Block):
            return similarity(x, y)
        alike = similarity(x.part, y.part)
        return jnp.where(x.arm == y.arm, alike, jnp.zeros_like(alike))

    return product


def _optimism(scale: Number, variance: Number, failure: Number | None) -> Rule:
    """`ucb` with c √β_t, over the posterior's deviation; t counts from 1, and β_t = 1 where no failure is given."""

    def choose(key: jax.Array, prediction: Prediction, available: jax.Array) -> Choice:
        dtype = prediction.width.dtype
        factor = jnp.asarray(scale, dtype)
        if failure is not None:
            arms, t = available.sum(dtype=jnp.int32).astype(dtype), (prediction.rounds + 1).astype(dtype)
            beta = 2 * (jnp.log(arms) + 2 * jnp.log(math.pi * t) - jnp.log(6 * jnp.asarray(failure, dtype)))
            factor = factor * jnp.sqrt(beta)
        deviation = prediction.width * jnp.sqrt(jnp.asarray(variance, dtype))
        return ucb(constant(factor))(key, prediction._replace(width=deviation), available)

    return choose


GP_UCB = Algorithm(
    "gp-ucb",
    "a Gaussian process over contexts, and optimism that grows with log t",
    "Srinivas, Krause, Kakade & Seeger 2010, Algorithm 1; Krause & Ong 2011",
    "observations after the first `budget`, which are not added; and c, the root of the 1/5 by which the text's "
    "experiments scale β_t",
    (
        EXPLORATION._replace(symbol="c", default=0.45, meaning="scale of √β_t", grid=(0.1, 0.45, 1)),
        number("bandwidth", "σ", 1.0, "of the RBF kernel", above=0, grid=(0.1, 1, 10)),
        RIDGE._replace(default=0.1, meaning="variance σ² of the noise", grid=(0.01, 0.1, 1)),
        RADIUS[1]._replace(grid=()),
        choice("confidence", "β_t", "growing", "by the text's formula, or 1", options=("growing", "constant")),
        integer("budget", "", 1000, "contexts after which none is added"),
        choice("kernel", "k", "rbf", "the kernel", options=("rbf", "linear")),
        PRECISION,
    ),
    gp_ucb,
    title="GP-UCB",
    family="related",
)
