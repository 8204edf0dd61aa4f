"""Whether an algorithm learns: its regret with true contexts, and with those of another round, which tell nothing."""

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.algorithms import ALGORITHMS, Task
from neuralucb.simulation import simulate

MARGIN = 5


def regrets(name, problem, *, rounds, seeds, schedule, **settings):
    """[2, seeds] regret with true contexts, and with those of another round: one compiled program."""
    algorithm = ALGORITHMS[name]
    given = {setting.name: settings.get(setting.name, setting.default) for setting in algorithm.settings}

    def one(seed, blind):
        def draw(key, data, world, t):
            now, other = (problem.draw(each, data, world, t) for each in (key, jax.random.fold_in(key, 1)))
            contexts = jax.tree.map(lambda a, b: jnp.where(blind, b, a), now.contexts, other.contexts)
            return now._replace(contexts=contexts)

        bandit = algorithm.recipe(Task(problem.dim, rounds, problem.shared_by), given)
        world = problem._replace(draw=draw)
        trace = simulate(jax.random.key(seed), bandit, world, rounds=rounds, schedule=schedule).trace
        return trace.regret.sum(), trace.diverged_at

    with jax.enable_x64(True):
        every, blind = np.tile(np.arange(seeds, dtype=np.uint32), 2), np.repeat([False, True], seeds)
        regret, diverged = jax.jit(jax.vmap(one))(every, blind)
    assert not np.asarray(diverged).any()
    return np.asarray(regret, np.float64).reshape(2, seeds)


def is_below(a, b):
    """Whether a is below b by MARGIN standard errors of their paired difference."""
    difference = b - a
    return difference.mean() > MARGIN * difference.std(ddof=1) / np.sqrt(len(difference))
