"""`neuralucb theory` and `neuralucb coverage`, as a stranger uses them."""

import json

import pytest
from rich.console import Console

from neuralucb.cli.exit_codes import UNSOUND

SMALL = ["--rounds", "12", "--seeds", "2", "--schedule", "6"]
NETWORK = ["--set", "width=4", "--set", "steps=3", "--set", "batch_size=4"]


def test_theory_prints_one_object_with_the_bound_beside_the_regret(command, tmp_path):
    code, out, err = command("theory", "h1", *SMALL, *NETWORK, "--set", "dim=5", "--depth", "3", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    for name in ("effective_dimension", "lambda_0", "S", "bound", "measured_regret"):
        assert record[name] > 0
    assert record["bound"] > record["measured_regret"]
    assert (record["contexts"], record["depth"], record["kernel"]) == (48, 3, "H")
    assert record["conditions"]["width"] > 1e10
    assert list(tmp_path.iterdir()) == []


def test_theory_leaves_a_figure_and_a_table(command, tmp_path):
    code, out, err = command("theory", "h3", *SMALL, *NETWORK, "--set", "dim=5", "--out", "here")
    assert code == 0
    started = [line.split(" on ")[0] for line in err.splitlines() if " so far" not in line]
    assert started == ["kernel …", "eigenvalues …", "d̃ …", "S …", "neural-ucb"]
    assert "effective dimension" in " ".join(out.split())
    assert (tmp_path / "here" / "theory-h3.png").stat().st_size > 10_000
    assert "| bound | Theorem 1 |" in (tmp_path / "here" / "theory-h3.md").read_text()


def test_theory_shows_progress_on_a_terminal_while_json_goes_to_a_file(command, monkeypatch):
    monkeypatch.setattr("neuralucb.cli.theory.err", Console(stderr=True, force_terminal=True, width=80))
    code, out, err = command("theory", "h1", *SMALL, *NETWORK, "--set", "dim=5", "--depth", "3", "--json")
    assert code == 0
    assert json.loads(out)["contexts"] == 48
    assert all(stage in err for stage in ("kernel", "eigenvalues", "d̃", "S ", "neural-ucb", "━"))


def test_theory_says_what_it_does_with_rows_that_repeat(command):
    network = ["--width", "4", "--set", "steps=3", "--set", "batch_size=4"]
    arguments = ["theory", "iris", "--seeds", "1", "--rounds", "155", "--schedule", "100", *network, "--repeat"]
    code, out, _ = command(*arguments, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["lambda_0"] == 0
    assert record["repeated_contexts"] >= 15
    assert any("S is computed from the first of each" in note for note in record["notes"])
    assert any("scaling=standard, encoding=heads" in note for note in record["notes"])
    assert record["S"] > 0
    assert record["conditions"]["width"] is None


@pytest.mark.parametrize("more", [["--rounds", "1"], ["--rounds", "3", "--regularization", "1e9"]])
def test_theory_of_next_to_nothing_is_drawn_all_the_same(command, tmp_path, more):
    code, _, _ = command("theory", "h1", "--seeds", "1", *NETWORK, "--set", "dim=3", *more, "--out", "here", "--json")
    assert code == 0
    assert (tmp_path / "here" / "theory-h1.png").exists()
    assert ", 1 seed |" in (tmp_path / "here" / "theory-h1.md").read_text()


def test_coverage_tells_shares_for_every_kind_of_scale_and_design(command, tmp_path):
    code, out, err = command("coverage", "h1", *SMALL, *NETWORK[2:], "--set", "dim=3", "--json", "--out", "here")
    record = json.loads(out)
    assert code == 0
    assert "100.0 %" in err
    assert {"theoretical", "diverged"} <= set(err.split())  # in one piece, on a terminal of 80 columns
    kinds = [(one["confidence"], one["design"]) for one in record["results"]]
    assert kinds == [(a, b) for a in ("constant", "theoretical") for b in ("full", "diagonal")]
    assert record["results"][2]["coverage"] == {"chosen": 1.0, "random": 1.0}
    assert record["results"][0]["coverage"]["random"] < 1
    assert (tmp_path / "here" / "coverage-h1.png").stat().st_size > 10_000


@pytest.mark.slow
def test_coverage_of_runs_that_diverge_has_nulls(command, tmp_path):
    wild = ["--set", "step_size=1e9", "--set", "regularization=1e-12", "--set", "width=4", "--set", "dim=3"]
    code, out, _ = command("coverage", "h1", *SMALL, *NETWORK[2:], *wild, "--json", "--out", "here")
    record = json.loads(out)
    assert code == 0
    assert all(one["diverged"] == 2 for one in record["results"])
    assert record["results"][0]["scale_for_90_percent"]["random"] is None
    assert record["results"][2]["scale_at_end"] is None
    assert (tmp_path / "here" / "coverage-h1.png").stat().st_size > 10_000


def test_theory_of_a_regularization_below_rounding_is_drawn_without_a_dimension(command, tmp_path):
    arguments = ["theory", "iris", "--seeds", "1", "--rounds", "150", "--schedule", "100", "--regularization", "1e-17"]
    code, out, _ = command(*arguments, *NETWORK, "--out", "here", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["effective_dimension"], record["bound"]) == (None, None)
    assert (tmp_path / "here" / "theory-iris.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["theory"], "name a problem, or give a file with --data"),
        (["theory", "h9"], "known: h1, h2, h3"),
        (["theory", "h1", "--rounds", "0"], "rounds must be a whole number of at least 1, got 0"),
        (["theory", "h1", "--depth", "1"], "depth (L) must be a whole number ≥ 2, got 1"),
        (["theory", "h1", "--regularization", "0"], "regularization (λ) must be a number > 0, got 0.0"),
        (["theory", "h1", "--width", "5", "--set", "width=6"], "width is given twice"),
        (["theory", "wine", "--rounds", "500"], "rounds must be at most 178"),
        (["theory", "h1", "--out", "/proc/nowhere"], "--out /proc/nowhere cannot be written"),
        (["coverage", "digits"], "problem must be synthetic"),
        (["coverage", "h1", "--set", "step_size=1"], "step_size · width · regularization (ηmλ) must be below 1"),
        (["coverage", "h1", "--set", "design=full"], "design must not be set, got full"),
    ],
)
def test_bad_input_is_a_short_message_and_exit_code_2(command, arguments, message):
    code, out, err = command(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err


def test_a_measured_regret_that_diverged_has_an_exit_code_of_its_own(command):
    settings = {"dim": 4, "width": 4, "steps": 20, "step_size": 1e8, "retries": 0, "optimizer": "plain"}
    settings |= {"decay": "none", "units": "given"}
    given = [part for name, value in settings.items() if name != "width" for part in ("--set", f"{name}={value}")]
    code, out, err = command(
        "theory", "h2", "--rounds", 20, "--seeds", 2, "--width", 4, "--schedule", 5, *given, "--json"
    )
    assert code == UNSOUND
    assert json.loads(out)
    assert err.splitlines()[-1].startswith("not sound: 2 of 2 runs of NeuralUCB on h2 diverged")
