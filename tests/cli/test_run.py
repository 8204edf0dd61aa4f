"""`neuralucb run`, `compare`, `demo` and `list`, as a stranger uses them."""

import json

import numpy as np
import pytest

from neuralucb.cli import run as commands
from neuralucb.cli.exit_codes import UNSOUND

TINY = ["--rounds", "40", "--seeds", "2", "--schedule", "10", "--set", "dim=4"]
NETWORK = ["--set", "width=4", "--set", "steps=3", "--set", "batch_size=4"]


def test_list_shows_algorithms_problems_and_presets(command):
    code, out, _ = command("list")
    assert code == 0
    for name in ("neural-ucb", "lin-ucb", "neural-epsilon-greedy", "h1", "h2", "h3", "paper"):
        assert name in out
    assert out.index("the default") < out.index("the paper's") < out.index("after the paper") < out.index("for scale")
    assert "Langford" in out


def test_list_of_an_algorithm_shows_symbols_defaults_and_grids(command):
    _, out, _ = command("list", "neural-ucb")
    for part in ("regularization", "λ", "design_precision", "0.001, 0.01, 0.1", "[x,"):
        assert part in out


def test_run_leaves_a_figure_and_a_table(command, tmp_path):
    code, out, _ = command("run", "neural-ucb", "h1", *TINY, *NETWORK, "--out", "here")
    assert code == 0
    assert "95 % interval" in out
    assert (tmp_path / "here" / "neural-ucb-h1.png").stat().st_size > 10_000
    assert "| NeuralUCB | h1 | " in (tmp_path / "here" / "neural-ucb-h1.md").read_text()
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["neural-ucb-h1.md", "neural-ucb-h1.png"]
    assert "uniform" in out
    assert "oracle" in out


def test_a_file_is_played_by_neural_mix_if_no_algorithm_is_named(command, tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    np.savez(tmp_path / "mine.npz", X=1000 * rows, y=rows[:, 0] > 0)
    code, out, err = command("run", "--data", "mine.npz", "--rounds", "30", "--seeds", "1", *NETWORK, "--json")
    assert code == 0, err
    assert json.loads(out)["algorithm"] == "neural-mix"


def test_the_figure_comes_in_the_formats_asked_for_and_in_no_others(command, tmp_path):
    code, out, _ = command("run", "lin-ucb", "h1", *TINY, "--format", "pdf,SVG", "--format", "pdf", "--out", "here")
    assert code == 0
    assert "figure: here/lin-ucb-h1.pdf, here/lin-ucb-h1.svg" in out
    assert sorted(path.suffix for path in (tmp_path / "here").iterdir()) == [".md", ".pdf", ".svg"]
    assert "LinUCB" in (tmp_path / "here" / "lin-ucb-h1.svg").read_text()


def test_a_format_that_is_not_known_is_refused_before_anything_runs(command, tmp_path):
    for arguments in (["run", "lin-ucb", "h1"], ["compare", "h1"], ["demo"], ["theory", "h1"], ["coverage", "h1"]):
        code, _, err = command(*arguments, "--format", "jpg")
        assert code == 2
        assert "--format must be among png, pdf, svg, got 'jpg'" in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


def test_json_with_a_folder_writes_the_figure_too(command, tmp_path):
    code, out, _ = command("run", "lin-ucb", "h3", *TINY, "--json", "--out", "here")
    assert code == 0
    assert json.loads(out)["algorithm"] == "lin-ucb"
    assert (tmp_path / "here" / "lin-ucb-h3.png").exists()
    assert command("run", "lin-ucb", "h3", *TINY, "--json", "--out", "/proc/nowhere")[0] == 2


def test_a_mistake_leaves_no_folder(command, tmp_path):
    assert command("run", "nope", "h1")[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_run_json_prints_one_object_and_writes_nothing(command, tmp_path):
    code, out, err = command("run", "lin-ucb", "h3", *TINY, "--json")
    record = json.loads(out)
    assert code == 0
    assert err == ""
    assert record["algorithm"] == "lin-ucb"
    assert len(record["final_regret"]["per_seed"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_compare_draws_all_in_one_figure(command, tmp_path):
    code, out, _ = command("compare", "h2", "--algorithms", "neural-ucb,lin-ucb", *TINY, *NETWORK)
    assert code == 0
    assert "NeuralUCB" in out
    assert "LinUCB" in out
    assert "2 seeds: too few for an interval that can be trusted" in out
    assert (tmp_path / "out" / "compare-h2.png").exists()


def test_compare_shows_differences_paired_by_seed(command, tmp_path):
    code, out, _ = command("compare", "h3", "--algorithms", "lin-ucb,uniform", *TINY)
    assert code == 0
    assert "difference of final regret, paired by seed" in out
    assert "minus LinUCB" in out
    assert "| uniform | h3 | +" in (tmp_path / "out" / "compare-h3.md").read_text()
    record = json.loads(command("compare", "h3", "--algorithms", "lin-ucb,uniform", *TINY, "--json")[1])
    ours, theirs = (np.array(one["final_regret"]["per_seed"]) for one in record["results"])
    (difference,) = record["differences"]
    assert difference["algorithm"] == "uniform"
    assert difference["mean"] == pytest.approx((theirs - ours).mean())
    assert difference["interval95"][0] < difference["mean"] < difference["interval95"][1]


def test_divergence_is_told_on_the_terminal(command):
    arguments = [*TINY, "--set", "width=20", "--set", "steps=30", "--set", "step_size=100"]
    code, out, err = command("run", "neural-ucb", "h2", *arguments)
    assert code == UNSOUND
    assert "2 of 2" in out
    assert "diverged for seeds 0, 1" in " ".join(err.split())
    assert err.splitlines()[-1].startswith("not sound: 2 of 2 runs of NeuralUCB on h2 diverged")
    code, out, err = command("run", "neural-ucb", "h2", *arguments, "--json")
    assert (code, json.loads(out)["diverged"]) == (UNSOUND, 2)
    assert err.startswith("not sound: 2 of 2 runs")
    code, out, err = command("compare", "h2", "--algorithms", "neural-ucb,uniform", *arguments)
    assert code == UNSOUND
    assert "uniform" in out  # what is sound is shown all the same
    assert err.splitlines()[-1].startswith("not sound: 2 of 2 runs of NeuralUCB on h2 diverged")


def test_demo_draws_one_panel_per_problem(command, monkeypatch, tmp_path):
    monkeypatch.setattr(commands, "DEMO_SETTINGS", {name: {"lin-ucb": {}} for name in ("h1", "h3")})
    code, out, _ = command("demo", "--rounds", "20", "--seeds", "2")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("LinUCB")] == [
        ["LinUCB", "h1"],
        ["LinUCB", "h3"],
    ]
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["regret.md", "regret.png"]
