"""Each classical algorithm learns: less regret than chance on a linear problem, and not where contexts are shuffled."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb.problems.functions import from_function
from tests.algorithms.learning import is_below, regrets
from tests.nightly import in_ci

DIM, ARMS = 5, 4
CLASSICAL = (
    "lin-ts",
    "ucb-glm",
    "gloc",
    "gp-ucb",
    "epoch-greedy",
    "banditron",
    "online-cover",
    "exp4",
    "perturbed-history",
)
CHEAPER = {"exp4": {"experts": "lin-ucb+epoch-greedy+uniform"}}
"""In place of defaults: propensities of LinTS are integrals."""
NUMBERS = np.random.default_rng(0).normal(size=(ARMS, DIM - 1))
DIRECTIONS = jnp.asarray(NUMBERS / np.linalg.norm(NUMBERS, axis=1, keepdims=True), jnp.float32)


def with_intercept(key):
    """A context on the unit sphere, and a 1."""
    x = jax.random.normal(key, (DIM - 1,), jnp.float32)
    return jnp.concatenate([x / jnp.linalg.norm(x), jnp.ones(1, jnp.float32)])


def own(x):
    return 0.5 + 0.4 * x[:-1] @ DIRECTIONS[0]


def shared(x, arm):
    return 0.5 + 0.4 * x[:-1] @ DIRECTIONS[arm]


@cache
def of(name, kind):
    problem = from_function(
        {"own": own, "shared": shared}[kind], dim=DIM, arms=ARMS, noise=0.1, sample=with_intercept,
        shared=kind == "shared",
    )  # fmt: skip
    return regrets(name, problem, rounds=300, seeds=12, schedule="60", **CHEAPER.get(name, {}))


@pytest.mark.parametrize("kind", ["own", pytest.param("shared", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", in_ci(CLASSICAL, "lin-ts", "online-cover"))
def test_regret_is_below_chance_but_not_where_contexts_are_shuffled(name, kind):
    (learned, blind), (chance, blind_chance) = of(name, kind), of("uniform", kind)
    assert is_below(learned, chance)
    assert not is_below(blind, blind_chance)
