"""The synthetic problems: the paper's functions, contexts and noise."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from neuralucb.problems import synthetic


def rounds(problem, count, seed=0):
    world = problem.init(jax.random.key(seed), ())
    keys = jax.random.split(jax.random.key(seed + 1), count)
    return world, jax.jit(jax.vmap(lambda key: problem.draw(key, (), world, jnp.int32(0))))(keys)


def test_expected_rewards_are_the_papers_functions():
    formulas = {
        "h1": lambda x, a, A: 10 * (x @ a) ** 2,
        "h2": lambda x, a, A: x @ A.T @ A @ x,
        "h3": lambda x, a, A: np.cos(3 * x @ a),
    }
    for name, formula in formulas.items():
        world, drawn = rounds(synthetic(name, dim=5), 3)
        a, A = np.asarray(world.a, np.float64), np.asarray(world.A, np.float64)
        for contexts, expected in zip(drawn.contexts, drawn.expected, strict=True):
            assert_allclose(
                expected, [formula(np.asarray(x, np.float64), a, A) for x in contexts], rtol=1e-4, atol=1e-5
            )


def test_contexts_are_uniform_in_the_unit_ball():
    _, drawn = rounds(synthetic("h1", dim=3), 5000)
    radius = np.linalg.norm(np.asarray(drawn.contexts).reshape(-1, 3), axis=1)
    count = len(radius)
    assert radius.max() <= 1 + 1e-6
    share = (radius**3 < 0.3).mean()  # the volume inside radius r is r³
    assert abs(share - 0.3) < 5 * np.sqrt(0.3 * 0.7 / count)
    assert not abs((radius < 0.3).mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / count)  # the control: a uniform radius
    centre = np.asarray(drawn.contexts).reshape(-1, 3).mean(axis=0)
    assert np.abs(centre).max() < 5 * np.sqrt(0.2 / count)


def test_noise_is_standard_normal_times_its_setting():
    _, drawn = rounds(synthetic("h3", noise=2.0), 5000)
    noise = np.asarray(drawn.noise)
    assert abs(noise.mean()) < 5 * 2 / np.sqrt(5000)
    assert abs(noise.std() / 2 - 1) < 5 / np.sqrt(2 * 5000)


def test_worlds_differ_between_seeds():
    problem = synthetic("h2")
    assert not np.allclose(problem.init(jax.random.key(0), ()).A, problem.init(jax.random.key(1), ()).A)
