"""The benchmark's worlds: the same for the same seed, half of them held out, and worth learning; and their players."""

import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the source distribution has no benchmarks", allow_module_level=True)

sys.path.insert(0, str(FOLDER))
suite, players, report, command = map(import_module, ("worlds_suite", "worlds_players", "worlds_report", "worlds"))
sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", suite.WORLDS)
def test_a_world_is_a_function_of_its_name_and_seed(name):
    world, again, other = (suite.make_world(name, seed) for seed in (3, 3, 4))
    again.draw(5)  # the order of questions does not matter
    for one, same in zip(world.draw(11), again.draw(11), strict=True):
        assert_array_equal(one, same)
    assert not np.array_equal(world.draw(11).expected, other.draw(11).expected)


@pytest.mark.parametrize("name", suite.WORLDS)
def test_a_world_has_finite_rounds_of_its_size_in_which_choosing_matters(name):
    world = suite.make_world(name, 0)
    for t in (0, world.rounds // 2, world.rounds - 1):
        drawn = world.draw(t)
        assert drawn.contexts.shape == (world.arms, world.dim)
        assert drawn.expected.shape == drawn.rewards.shape == (world.arms,)
        assert all(np.isfinite(values).all() for values in drawn[:3])
        regrets = drawn.regrets()
        assert np.nanmin(regrets) == 0
        assert np.nanmean(regrets) > 0
        assert np.isnan(regrets).sum() == (0 if drawn.available is None else (~drawn.available).sum())


def test_half_of_each_kind_is_held_out():
    splits = Counter((suite.make_world(name, 0).kind, suite.split_of(name)) for name in suite.WORLDS)
    assert set(splits.values()) == {1}
    assert len(splits) == len(suite.WORLDS) >= 34


def test_a_world_in_other_units_is_the_same_world():
    world, other = suite.make_world("waves", 0).draw(7), suite.make_world("waves-in-thousands", 0).draw(7)
    assert_array_equal(world.contexts * 1e3, other.contexts)
    assert_array_equal(world.rewards, other.rewards)


def test_one_reward_in_one_million_is_a_million():
    world = suite.make_world("one-million", 0)
    assert sum((world.draw(t).rewards == 1e6).all() for t in range(world.rounds)) == 1


def test_a_player_is_read_with_its_label_and_settings():
    assert players.name_of("wide=neural-ucb:width=300") == "wide"
    assert players.name_of("neural-ucb:width=300,steps=5") == "neural-ucb:width=300,steps=5"
    player = players.make_player("wide=neural-ucb:width=8,steps=5,window=20", 3, 0)
    assert dict(player.bandit.policy.origin.settings)["width"] == 8
    assert player.bandit.settings["window"] == 20


def test_linucb_learns_a_linear_world_and_nobody_learns_noise():
    shares = {name: command.play(command.Task(name, 0, 400, "lin-ucb"))["share"] for name in ("linear", "no-signal")}
    assert shares["linear"] < 0.3
    assert 0.9 < shares["no-signal"] < 1.1


def test_a_player_is_above_the_best_peer_only_beyond_what_seeds_explain():
    def cell(*shares):
        return report.Cell(dict(enumerate(shares)), len(shares))

    cells = {("tree", "lin-ucb"): cell(0.5, 0.6, 0.7), ("tree", "vw"): cell(0.2, 0.3, 0.4)}
    assert report.above_best_peer(
        cell(0.31, 0.39, 0.52), "tree", "steps", cells
    )  # noise between seeds is common to both
    assert not report.above_best_peer(cell(0.1, 0.5, 0.5), "tree", "steps", cells)
    assert not report.above_best_peer(cell(0.9, 1.0, 1.1), "tree", "no signal", cells)
