"""Problems by name, from files and as they are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb import InputError, run
from neuralucb.problems import build_problem, find_problem, from_file, labelled, rewards, synthetic
from neuralucb.problems.datasets import BUNDLED, SETS
from tests.problems.rows import X, Y


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": 1}, r"arms \(K\) must be a whole number ≥ 2, got 1"),
        ({"dim": 0}, r"dim \(d\) must be a whole number ≥ 1, got 0"),
        ({"noise": -1}, "noise .* got -1"),
        ({"arm": 3}, "arm .* is not a setting of h1; it has: dim, arms, noise"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        build_problem("h1", settings)


def test_an_unknown_problem_lists_the_known():
    with pytest.raises(InputError, match="'h4' is not known; known: h1, h2, h3"):
        find_problem("h4")
    with pytest.raises(InputError, match="arms must be at least 2"):
        synthetic("h1", arms=1)


def test_rows_in_place_of_a_problem_are_told_how_to_become_one():
    with pytest.raises(InputError, match=r"a Problem such as labelled\(X, y\) or rewards\(X, R\), got a ndarray"):
        find_problem(np.zeros((4, 2)))


def test_a_problem_itself_can_be_run_and_is_that_of_the_file(tmp_path):
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    of_file = run("lin-ucb", from_file(tmp_path / "toy.npz", None), rounds=30, seeds=3)
    given = run("lin-ucb", labelled(X, Y, name="mine"), rounds=30, seeds=3)
    assert_array_equal(of_file.regret, given.regret)
    assert given.problem == "mine"
    with pytest.raises(InputError, match="repeat: not a setting of lin-ucb"):
        run("lin-ucb", labelled(X, Y), rounds=30, repeat=True)


def test_columns_can_be_dropped(tmp_path):
    np.savez(tmp_path / "toy.npz", X=X, y=Y)
    toy = from_file(tmp_path / "toy.npz", None)
    shorter = run("lin-ucb", labelled(X[:, 1:2], Y), rounds=30, seeds=2)
    assert_array_equal(run("lin-ucb", toy, rounds=30, seeds=2, drop="0+2").regret, shorter.regret)
    for bad, message in (("3", "drop must name columns of toy.npz, got 3; it has: 0, 1"), ("0+1+2", "no column left")):
        with pytest.raises(InputError, match=message):
            run("lin-ucb", toy, rounds=30, drop=bad)


def test_a_file_named_like_the_papers_problem_is_not_that_problem(tmp_path):
    np.savez(tmp_path / "h1.npz", X=X, y=Y)
    ours = run("neural-ucb", from_file(tmp_path / "h1.npz", None), rounds=5, seeds=1, width=4, steps=2)
    papers = run("neural-ucb", "h1", rounds=5, seeds=1, width=4, steps=2)
    assert (ours.settings["units"], papers.settings["units"]) == ("learned", "given")


def test_every_data_set_has_shared_contexts():
    """Its definition says so before anything is loaded; presets and default rounds go by it."""
    for name in (*SETS, *BUNDLED, "statlog"):
        assert find_problem(name).shared
    assert labelled(X, Y).shared


def test_statlog_is_shuttle():
    assert find_problem("statlog").make == find_problem("shuttle").make


def test_a_file_with_a_reward_per_arm_is_a_table_of_rewards(tmp_path):
    R = 100 * np.random.default_rng(1).normal(size=(40, 2))
    own = np.random.default_rng(2).normal(size=(40, 2, 3))
    np.savez(tmp_path / "shared.npz", X=X, R=R, a=R[:, 0], b=R[:, 1])
    np.savez(tmp_path / "own.npz", X=own, R=R)
    lines = ["x,y,z,a,b", *(",".join(map(str, [*row, *paid])) for row, paid in zip(X, R, strict=True))]
    (tmp_path / "shared.csv").write_text("\n".join(lines))
    wanted = run("lin-ucb", rewards(X, R), seeds=2).regret
    for name, columns in (("shared.npz", "R"), ("shared.npz", ["a", "b"]), ("shared.csv", ["a", "b"])):
        assert_array_equal(run("lin-ucb", from_file(tmp_path / name, rewards=columns), seeds=2).regret, wanted)
    per_arm = from_file(tmp_path / "own.npz", rewards="R")
    assert not per_arm.shared
    assert_array_equal(run("lin-ucb", per_arm, seeds=2).regret, run("lin-ucb", rewards(own, R), seeds=2).regret)
    noisy = from_file(tmp_path / "own.npz", rewards="R").make(
        input_scaling="none", intercept=False, drop="1", repeat=True, reward_scaling="none", noise=2.0
    )
    assert (noisy.dim, noisy.limit, noisy.unit) == (2, None, 1)
    with pytest.raises(InputError, match="label must not be given with rewards, got 'y'"):
        from_file(tmp_path / "shared.csv", "y", rewards=["a", "b"])
    with pytest.raises(InputError, match=r"R in .*own.npz must have one label for each of the 40 rows"):
        from_file(tmp_path / "own.npz", "R")
