"""Each neural bandit learns: less regret than chance on a quadratic problem, and not where contexts are others."""

from functools import cache

import jax.numpy as jnp
import pytest

from neuralucb.problems import synthetic
from neuralucb.problems.functions import from_function
from tests.algorithms.learning import is_below, regrets
from tests.nightly import in_ci

DIM, ARMS = 4, 3
SMALL = {"width": 16, "depth": 2, "steps": 50, "step_size": 0.02, "batch_size": 32, "networks": 3, "memory": 64}
NEURAL = (
    "neural-linear",
    "neural-linear-lm",
    "neural-bandit",
    "bbq",
    "bdqn",
    "neural-perturbed-history",
    "neural-lin-ucb",
    "ee-net",
    "neural-perturbed",
    "deep-ensemble",
    "neural-variance-lin-ucb",
)
PROBLEMS = {
    "own": lambda: synthetic("h1", dim=DIM, arms=ARMS, noise=0.1),
    "shared": lambda: from_function(
        lambda x, arm: jnp.where(arm == 0, 0.3, jnp.where(arm == 1, x[0] ** 2, jnp.abs(x[1]))),
        dim=DIM, arms=ARMS, noise=0.1, shared=True,
    ),
}  # fmt: skip


@cache
def of(name, kind):
    return regrets(name, PROBLEMS[kind](), rounds=300, seeds=8, schedule="10:50,25", **SMALL)


@pytest.mark.parametrize("kind", ["own", pytest.param("shared", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", in_ci(NEURAL, "neural-linear"))
def test_regret_is_below_chance_but_not_where_contexts_are_those_of_another_round(name, kind):
    (learned, blind), (chance, blind_chance) = of(name, kind), of("uniform", kind)
    assert is_below(learned, chance)
    if kind == "own":  # shared arms differ in their mean, which is learned without contexts
        assert not is_below(blind, blind_chance)
