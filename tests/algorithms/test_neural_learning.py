"""Each neural bandit learns: less regret than chance on a quadratic problem, and not where contexts are others."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb.algorithms import ALGORITHMS, Task
from neuralucb.problems import synthetic
from neuralucb.problems.functions import from_function
from neuralucb.simulation import simulate

DIM, ARMS, ROUNDS, SEEDS, MARGIN = 4, 3, 300, 8, 5
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
def regrets(name, kind):
    """[2, seeds] regret with true contexts, and with those of another round: one compiled program."""
    problem, algorithm = PROBLEMS[kind](), ALGORITHMS[name]
    settings = {setting.name: SMALL.get(setting.name, setting.default) for setting in algorithm.settings}

    def one(seed, blind):
        def draw(key, data, world, t):
            now, other = (problem.draw(each, data, world, t) for each in (key, jax.random.fold_in(key, 1)))
            return now._replace(
                contexts=jax.tree.map(lambda a, b: jnp.where(blind, b, a), now.contexts, other.contexts)
            )

        bandit = algorithm.recipe(Task(DIM, ROUNDS, ARMS if kind == "shared" else None), settings)
        trace = simulate(
            jax.random.key(seed), bandit, problem._replace(draw=draw), rounds=ROUNDS, schedule="10:50,25"
        ).trace
        return trace.regret.sum(), trace.diverged_at

    with jax.enable_x64(True):
        seeds, blind = np.tile(np.arange(SEEDS, dtype=np.uint32), 2), np.repeat([False, True], SEEDS)
        regret, diverged = jax.jit(jax.vmap(one))(seeds, blind)
    assert not np.asarray(diverged).any()
    return np.asarray(regret, np.float64).reshape(2, SEEDS)


def is_below(a, b):
    """Whether a is below b by five standard errors of their paired difference."""
    difference = b - a
    return difference.mean() > MARGIN * difference.std(ddof=1) / np.sqrt(len(difference))


@pytest.mark.parametrize("kind", ["own", pytest.param("shared", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NEURAL)
def test_regret_is_below_chance_but_not_where_contexts_are_those_of_another_round(name, kind):
    (learned, blind), (chance, blind_chance) = regrets(name, kind), regrets("uniform", kind)
    assert is_below(learned, chance)
    if kind == "own":  # shared arms differ in their mean, which is learned without contexts
        assert not is_below(blind, blind_chance)
