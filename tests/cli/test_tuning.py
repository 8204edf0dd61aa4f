"""`neuralucb tune`: from a file to a preset that other commands take."""

import json

import numpy as np
import pytest

from neuralucb.cli.tuning import read_grid
from neuralucb.logs import write_log
from neuralucb.runtime.errors import InputError
from tests.evaluation.worlds import world


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(160, 3))
    lines = [f"{a},{b},{c},{'yes' if a + b > 0 else 'no'}" for a, b, c in X]
    path = tmp_path / "mine.csv"
    path.write_text("a,b,c,kind\n" + "\n".join(lines))
    return path


def test_a_file_is_tuned_on_and_ends_in_a_preset_that_run_takes(command, table, tmp_path):
    data = ("--data", table, "--label", "kind")
    code, out, _ = command("tune", "lin-ucb", *data, "--grid", "exploration=0.1,1000", "--seeds", 4, "--schedule", 10)
    assert code == 0
    assert "LinUCB on mine, 80 rounds: exploration 0.1" in out
    assert "scored on other 80 rows" in out
    assert "optimism: " in out
    folder = tmp_path / "tune-lin-ucb-mine"
    assert (folder / "report.html").exists()
    assert json.loads((folder / "tuned.json").read_text())["setting"] == {"exploration": 0.1}
    preset = folder / "lin-ucb-mine.toml"
    code, out, _ = command("run", "lin-ucb", *data, "--preset", preset, "--seeds", 1, "--rounds", 20, "--json")
    assert code == 0
    assert json.loads(out)["settings"]["exploration"] == 0.1
    code, _, err = command("tune", "lin-ucb", *data, "--grid", "exploration=1", "--out", "other")
    assert code == 2
    assert "at least two settings to choose from" in err


def test_a_tuning_in_which_everything_diverges_ends_with_code_3(command, monkeypatch):
    from neuralucb.runtime.errors import UnsoundError
    from neuralucb.sweeps import tuning

    def diverges(*_, **__):
        raise UnsoundError("every setting of neural-ucb on h1 diverged, so that none was chosen.")

    monkeypatch.setattr(tuning, "tune", diverges)
    code, _, err = command("tune", "neural-ucb", "h1")
    assert code == 3
    assert "not sound: every setting" in err


def test_a_log_is_tuned_on_and_train_takes_the_preset(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)])
    code, out, _ = command("tune", "lin-ucb", "--log", "log.parquet", "--grid", "exploration=0,3")
    assert code == 0
    assert "scored on later decisions" in out
    preset = "tune-lin-ucb-log/lin-ucb-log.toml"
    code, _, _ = command("train", "log.parquet", "--policy", "lin-ucb", "--preset", preset, "--out", "model")
    assert code == 0
    code, _, err = command("tune", "lin-ucb", "h1", "--log", "log.parquet")
    assert code == 2
    assert "--log must not be given together with a problem, got h1" in err
    code, _, err = command("tune", "lin-ucb", "--log", "log.parquet", "--schedule", "50")
    assert code == 2
    assert "--log must not be given together with --schedule, got 50" in err


def test_grids_are_read_from_text():
    assert read_grid(["step-size=0.1, 1", "exploration=1e-3..1"]) == {
        "step_size": ["0.1", "1"], "exploration": "1e-3..1",
    }  # fmt: skip
    assert read_grid(None) is None
    for wrong in (["step_size"], ["=1"], ["a=1,2", "a=3,4"]):
        with pytest.raises(InputError, match="--grid"):
            read_grid(wrong)
