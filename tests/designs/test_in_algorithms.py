"""Every design in the algorithms that have one: in runs of several lanes, with shared contexts, online, in review."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import InputError, OnlineBandit, build, labelled, run_grid
from neuralucb.algorithms.shared_settings import DESIGNS
from tests.nightly import in_ci
from tests.problems.rows import X, Y

NEW = [name for name in DESIGNS if name not in ("full", "diagonal")]
SMALL = {"width": 4, "depth": 2, "steps": 3, "batch_size": 4, "design_size": 5}


@pytest.mark.parametrize("design", in_ci(NEW, "kronecker", "dual"))
def test_runs_with_shared_contexts_are_sound_in_every_lane(design):
    grid = {"design": [design], "regularization": [0.1, 1.0]} | {name: [value] for name, value in SMALL.items()}
    results = run_grid("neural-ucb", labelled(X, Y), grid, rounds=30, seeds=2, schedule="10")
    assert [result.diverged for result in results] == [0, 0]
    assert not np.array_equal(results[0].regret, results[1].regret) or results[0].regret.max() == 0


@pytest.mark.parametrize("design", NEW)
def test_a_bandit_that_mixes_reviews_and_restarts_with_it(design, tmp_path):
    policy = build("neural-mix", dim=3, design=design, **SMALL)
    bandit = OnlineBandit(policy, journal=tmp_path, schedule="4")
    world = np.random.default_rng(0)
    for _ in range(9):
        decision = bandit.select(world.uniform(0, 100, size=(2, 3)))
        bandit.observe(decision.id, float(world.normal()))
    health, asked = bandit.health(), np.ones((2, 3))
    assert (health.learned, health.refused, health.failure) == (2, 0, None)
    assert health.smallest_variance > 0
    assert np.isnan(health.inverse_drift) or health.inverse_drift < 1e-6
    scores = bandit.select(asked).score
    bandit.close()
    with OnlineBandit(policy, journal=tmp_path, schedule="4") as again:
        assert_allclose(again.select(asked).score, scores, rtol=1e-6)


@pytest.mark.parametrize("name", ["neural-ucb", "neural-ts"])
def test_room_for_all_of_it_gives_the_widths_of_the_full_design(name):
    common = {"dim": 3, "width": 4, "depth": 2, "units": "given", "design_size": 20}
    rows = np.random.default_rng(0).normal(size=(12, 2, 3)).astype(np.float32)
    widths = {}
    for design in ("full", "dual") if name == "neural-ts" else ("full", "frequent-directions", "random-projection"):
        policy = build(name, design=design, **common)
        belief = policy.init(jax.random.key(0))
        for row in rows:
            belief = policy.observe(belief, row[0], np.float32(1))
        widths[design] = policy.select(jax.random.key(1), belief, rows[0]).width
    for design, found in widths.items():
        assert_allclose(found, widths["full"], rtol=1e-5, err_msg=design)


def test_a_design_that_a_network_cannot_have_is_refused_where_it_is_built():
    network = (
        lambda key: {"a": jax.random.normal(key, (3,), "float32")},
        lambda params, x: params["a"] @ x,
    )
    with pytest.raises(InputError, match="last-layer needs a network whose parameters are a tuple of layers"):
        build("neural-ucb", dim=3, network=network, design="last-layer")
    assert build("neural-ucb", dim=3, network=network, design="block-diagonal").origin is not None
