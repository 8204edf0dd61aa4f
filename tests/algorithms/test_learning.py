"""Each classical algorithm learns: less regret than chance on a linear problem, and not where contexts are shuffled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb.algorithms import ALGORITHMS, Task
from neuralucb.problems.functions import from_function
from neuralucb.simulation import simulate

DIM, ARMS, ROUNDS, SEEDS, MARGIN = 5, 4, 300, 12, 5
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


def regrets(name, kind):
    """[2, seeds] regret with true contexts, and with those of another round: one compiled program."""
    problem = from_function(
        {"own": own, "shared": shared}[kind], dim=DIM, arms=ARMS, noise=0.1, sample=with_intercept,
        shared=kind == "shared",
    )  # fmt: skip
    algorithm = ALGORITHMS[name]

    def one(seed, shuffled):
        def draw(key, data, world, t):
            now, other = (problem.draw(each, data, world, t) for each in (key, jax.random.fold_in(key, 1)))
            contexts = jax.tree.map(lambda a, b: jnp.where(shuffled, b, a), now.contexts, other.contexts)
            return now._replace(contexts=contexts)

        task = Task(DIM, ROUNDS, ARMS if kind == "shared" else None)
        defaults = {setting.name: setting.default for setting in algorithm.settings}
        bandit = algorithm.recipe(task, defaults | CHEAPER.get(name, {}))
        world = problem._replace(draw=draw)
        trace = simulate(jax.random.key(seed), bandit, world, rounds=ROUNDS, schedule="60").trace
        return trace.regret.sum(), trace.diverged_at

    with jax.enable_x64(True):
        seeds, truth = np.tile(np.arange(SEEDS, dtype=np.uint32), 2), np.repeat([False, True], SEEDS)
        regret, diverged = jax.jit(jax.vmap(one))(seeds, truth)
    assert not np.asarray(diverged).any()
    return np.asarray(regret, np.float64).reshape(2, SEEDS)


def is_below(a, b):
    """Whether a is below b by five standard errors of their paired difference."""
    difference = b - a
    return difference.mean() > MARGIN * difference.std(ddof=1) / np.sqrt(len(difference))


@pytest.mark.parametrize("kind", ["own", pytest.param("shared", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CLASSICAL)
def test_regret_is_below_chance_but_not_where_contexts_are_shuffled(name, kind):
    (learned, blind), (chance, blind_chance) = regrets(name, kind), regrets("uniform", kind)
    assert is_below(learned, chance)
    assert not is_below(blind, blind_chance)
