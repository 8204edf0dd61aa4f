"""Tuning: what chooses does not score, and the score is what a run gives."""

import numpy as np
import pytest

from neuralucb import from_file, labelled, rewards, run, tune
from neuralucb.experiments.plans import plan
from neuralucb.problems import PROBLEMS
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.sweeps import tuning, workers

GRID = {"exploration": [0.1, 1000.0]}


def rows(count, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)) * [1, 100, 1]
    return X, (X[:, 0] + X[:, 1] / 100 > 0).astype(int)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned") / "out"
    return tune("lin-ucb", labelled(*rows(200)), grid=GRID, seeds=4, schedule="10", out=folder)


def test_rows_are_split_before_anything_else(tuned, monkeypatch):
    X, y = rows(200)
    halves = tuning._split(PROBLEMS["h1"]._replace(settings=(), make=lambda: labelled(X, y)), {}, None, None, 0)
    both = [np.asarray(half.data[0]) for half in (halves.choosing, halves.scoring)]
    for half in both:  # each is scaled by its own mean and deviation
        np.testing.assert_allclose(half.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(half.std(axis=0), 1, atol=1e-5)
    assert tuned.rows == (100, 100)
    assert tuned.rounds == 100
    assert not set(tuned.seeds) & set(tuned.result.seeds)


def test_the_score_is_what_a_run_of_the_winner_on_the_other_rows_gives(tuned):
    X, y = rows(200)
    order = np.random.default_rng(0).permutation(200)
    other = labelled(X, y).take(np.sort(order[:100]))
    again = run("lin-ucb", other, rounds=100, seeds=range(4, 8), schedule="10", **tuned.settings)
    np.testing.assert_allclose(again.final_regret.mean(), tuned.scored.mean, rtol=1e-5)
    assert tuned.setting == {"exploration": 0.1}
    assert tuned.optimism == pytest.approx(tuned.chosen.mean - tuned.scored.mean)
    assert tuned.kept
    assert "optimism" in repr(tuned)


def test_it_ends_in_a_preset_that_runs_take(tuned, tmp_path):
    preset = tuned.write(tmp_path / "mine.toml")
    planned = plan("h1", ["lin-ucb"], {}, rounds=20, seeds=1, preset=str(preset))
    assert planned.points["lin-ucb"][0].algorithm["exploration"] == 0.1
    assert planned.schedule == "10"
    with pytest.raises(InputError, match="path must end in .toml, got 'mine'"):
        tuned.write("mine")


def test_a_folder_keeps_the_race_and_the_same_call_goes_on(tuned, monkeypatch):
    monkeypatch.setattr(workers, "run_batch", None)  # nothing is raced again
    again = tune("lin-ucb", labelled(*rows(200)), grid=GRID, seeds=4, schedule="10", out=tuned.folder)
    assert (again.setting, again.chosen, again.scored) == (tuned.setting, tuned.chosen, tuned.scored)
    assert not [name for name in PROBLEMS if "choosing" in name]
    with pytest.raises(InputError, match="holds another sweep"):
        tune("lin-ucb", labelled(*rows(200)), grid=GRID, seeds=6, schedule="10", out=tuned.folder)
    with pytest.raises(InputError, match="was begun with other data of labelled.choosing"):
        tune("lin-ucb", labelled(*rows(200, seed=1)), grid=GRID, seeds=4, schedule="10", out=tuned.folder)


def test_a_folder_does_not_go_on_with_a_problem_of_other_settings(tmp_path):
    how = {"grid": GRID, "rounds": 20, "seeds": 4, "schedule": "10", "out": tmp_path / "out"}
    tune("lin-ucb", "h1", dim=3, **how)
    with pytest.raises(InputError, match="was begun with other data of h1.choosing, or with the same made otherwise"):
        tune("lin-ucb", "h1", dim=4, **how)


def test_worlds_are_split_where_there_are_no_rows():
    halves = tuning._split(PROBLEMS["h1"], {"dim": 3}, None, 50, 0)
    assert halves.choosing is halves.scoring
    assert halves.choosing.rows is None


def test_a_race_in_which_every_setting_diverges_chooses_nothing_and_says_where():
    grid = {"step_size": [1e4, 1e5]}
    with pytest.raises(UnsoundError, match="every setting of neural-epsilon-greedy .*step_size 10000.0 by round 20"):
        tune("neural-epsilon-greedy", "h1", grid=grid, rounds=40, seeds=4, dim=4, width=4, steps=20, schedule="20")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"rounds": 101}, "rounds must be at most 100, half of the 200 rows of labelled.*got 101"),
        ({"seeds": 3}, "seeds must be .*at least 4, got 3"),
        ({"grid": {"exploration": [1.0]}}, "grid must have at least two settings"),
        ({"exploration": 1.0}, "exploration is both in the grid and set to 1.0"),
        ({"colour": 1.0}, "colour: not a setting of lin-ucb"),
        ({"preset": "nowhere.toml"}, "nowhere.toml cannot be read"),
    ],
)
def test_what_cannot_be_tuned_is_refused(more, match):
    with pytest.raises(InputError, match=match):
        tune("lin-ucb", labelled(*rows(200)), **{"grid": GRID, **more})


def test_too_few_rows_to_split_are_refused():
    with pytest.raises(InputError, match="at least 100 rows, half to choose on and half to score on, got 60 rows"):
        tune("lin-ucb", labelled(*rows(60)), grid=GRID)


def test_a_table_of_rewards_and_a_file_are_split_too(tmp_path):
    X, y = rows(120)
    made = rewards(X, np.stack([y * 5.0, 3.0 - y], axis=1)).take(np.arange(50))
    assert (made.rows, made.limit, made.unit) == (50, 50, 5.0)
    (tmp_path / "mine.csv").write_text(
        "a,b,c,kind\n" + "\n".join(f"{a},{b},{c},{k}" for (a, b, c), k in zip(X, y, strict=True))
    )
    assert from_file(tmp_path / "mine.csv", "kind").make(
        input_scaling="columns", intercept=False, drop="none", repeat=False
    ).take(np.arange(10)).arms == 2  # fmt: skip


@pytest.mark.slow
def test_the_score_is_inside_what_choosing_promised_in_nineteen_of_twenty_trials():
    grid = {"exploration": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0], "regularization": [0.1, 1.0, 10.0]}
    kept = []
    for trial in range(20):
        generator = np.random.default_rng(trial)
        centres = generator.normal(size=(4, 6))
        y = generator.integers(4, size=600)
        problem = labelled(centres[y] + 1.5 * generator.normal(size=(600, 6)), y)
        kept.append(tune("lin-ucb", problem, grid=grid, seeds=6, schedule="20").kept)
    assert sum(kept) >= 19


def test_a_score_outside_the_promise_says_on_which_side(tuned):
    low, high = tuned.chosen.low, tuned.chosen.high
    for mean, words in ((low - 1, "better than promised"), (low, "as promised"), (high + 1, "worse than promised")):
        assert words in repr(tuned._replace(scored=tuned.scored._replace(mean=mean)))
