"""Every registered algorithm: where it departs from the paper, its precision, and the marked lines of the paper."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

import neuralucb
from neuralucb import OnlineBandit, build
from neuralucb.algorithms import ALGORITHMS
from neuralucb.history import append, empty
from tests.nightly import in_ci

CONTEXTS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
SMALL = {"width": 4, "steps": 3, "batch_size": 2, "networks": 2, "network_precision": "float64"}
WITH_NETWORK = [
    name for name in ALGORITHMS if "network_precision" in {setting.name for setting in ALGORITHMS[name].settings}
]


def in_float64(name, **settings):
    known = {setting.name for setting in ALGORITHMS[name].settings}
    return build(name, dim=4, **{key: value for key, value in (SMALL | settings).items() if key in known})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_recipe_says_where_it_departs_from_the_paper(name):
    assert re.search(r"Departs from the paper in(:| nothing\.)[^:]*$", ALGORITHMS[name].recipe.__doc__)


def kinds_of_params(belief):
    inner = getattr(belief, "inner", belief)
    inner = getattr(inner, "networks", inner)
    return {leaf.dtype for leaf in jax.tree.leaves(inner.params)}


@pytest.mark.parametrize("other", [{}, {"design": "diagonal", "optimizer": "rmsprop"}], ids=str)
@pytest.mark.parametrize("name", in_ci(WITH_NETWORK, "neural-ucb", "neural-mix", "neural-linear", "ee-net"))
def test_a_network_in_float64_needs_no_64_bit_mode_of_the_user(name, other):
    assert not jax.config.read("jax_enable_x64")
    policy = in_float64(name, **other)
    belief = policy.init(jax.random.key(0))
    assert kinds_of_params(belief) == {np.dtype("float64")}
    assert np.isfinite(policy.select(jax.random.key(1), belief, CONTEXTS).score).all()
    belief = policy.observe(belief, CONTEXTS[0], 1.0)
    history = append(empty(CONTEXTS[0], capacity=4), CONTEXTS[0], 1.0)
    belief, info = policy.learn(jax.random.key(2), belief, history)
    assert not info.diverged
    assert kinds_of_params(belief) == {np.dtype("float64")}


def test_an_online_bandit_takes_a_network_in_float64():
    with OnlineBandit(in_float64("neural-ucb"), schedule="2") as bandit:
        for _ in range(4):
            bandit.observe(bandit.select(CONTEXTS).id, 0.5)
        assert bandit.health().learned == 2


@pytest.mark.parametrize(("algorithm", "lines"), [(1, 14), (2, 6), (3, 10)])
def test_every_line_of_the_papers_algorithms_is_marked_where_it_happens(algorithm, lines):
    source = "".join(path.read_text() for path in Path(neuralucb.__file__).parent.rglob("*.py"))
    marked = {int(line) for line in re.findall(rf"Algorithm {algorithm}, line (\d+)", source)}
    assert marked == set(range(1, lines + 1))
