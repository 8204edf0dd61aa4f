"""The command line, as a stranger uses it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ..processes import started

TINY = ["--rounds", "40", "--seeds", "2", "--schedule", "10", "--set", "dim=4"]
NETWORK = ["--set", "width=4", "--set", "steps=3", "--set", "batch_size=4"]


def test_list_shows_algorithms_problems_and_presets(command):
    code, out, _ = command("list")
    assert code == 0
    for name in ("neural-ucb", "lin-ucb", "neural-epsilon-greedy", "h1", "h2", "h3", "paper"):
        assert name in out


def test_list_of_an_algorithm_shows_symbols_defaults_and_grids(command):
    _, out, _ = command("list", "neural-ucb")
    for part in ("regularization", "λ", "design_precision", "0.001, 0.01, 0.1", "[x,"):
        assert part in out


def test_run_leaves_a_figure_and_a_table(command, tmp_path):
    code, out, _ = command("run", "neural-ucb", "h1", *TINY, *NETWORK, "--out", "here")
    assert code == 0
    assert "95 % interval" in out
    assert (tmp_path / "here" / "neural-ucb-h1.png").stat().st_size > 10_000
    assert "| neural-ucb | h1 | " in (tmp_path / "here" / "neural-ucb-h1.md").read_text()
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["neural-ucb-h1.md", "neural-ucb-h1.png"]
    assert "uniform" in out
    assert "oracle" in out


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
    assert "neural-ucb" in out
    assert "lin-ucb" in out
    assert (tmp_path / "out" / "compare-h2.png").exists()


def test_divergence_is_told_on_the_terminal(command):
    arguments = [*TINY, "--set", "width=20", "--set", "steps=30", "--set", "step_size=100"]
    code, out, err = command("run", "neural-ucb", "h2", *arguments)
    assert code == 0
    assert "2 of 2" in out
    assert "diverged for seeds 0, 1" in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "neural_ucb", "h1"], "known: neural-ucb"),
        (["run", "lin-ucb", "h9"], "known: h1, h2, h3"),
        (["run", "lin-ucb", "h1", "--set", "gamma=1"], "exploration, regularization"),
        (["run", "lin-ucb", "h1", "--set", "exploration=lots"], "exploration (α) must be a number ≥ 0, got 'lots'"),
        (["run", "lin-ucb", "h1", "--set", "exploration"], "--set must be NAME=VALUE"),
        (["run", "neural-ucb", "h1", "--set", "width=7", "--set", "initialization=paper"], "width must be even"),
        (["run", "neural-ucb", "h1", "--set", "dim=7", "--set", "initialization=paper"], "dim must be even"),
        (["run", "lin-ucb", "h1", "--set", "regularization=0"], "regularization (λ) must be a number > 0"),
        (["run", "lin-ucb", "h1", "--set", "arms=1"], "arms (K) must be a whole number ≥ 2"),
        (["run", "lin-ucb", "h1", "--set", "exploration=-1"], "exploration (α) must be a number ≥ 0"),
        (["run", "lin-ucb", "h1", "--rounds", "0"], "rounds must be a whole number of at least 1"),
        (["run", "lin-ucb", "h1", "--out", "/proc/nowhere"], "--out /proc/nowhere cannot be written"),
        (["compare", "h1", "--algorithms", "lin-ucb,magic"], "'magic' is not known"),
        (["compare", "h1", "--algorithms", ","], "at least one"),
        (["run", "lin-ucb", "h1", "--set", "rounds=5"], "rounds (given as '5') is not a setting"),
        (["run", "neural-ucb", "h1", "--set", "steps=3000000000"], "steps (J) must be a whole number"),
        (["run", "neural-ucb", "h1", "--set", "width=99999999"], "GB are free"),
        (["list", "linucb"], "known: neural-ucb"),
    ],
)
def test_bad_input_is_a_short_message_and_exit_code_2(command, arguments, message):
    code, out, err = command(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err


def test_help_does_not_wait_for_jax():
    code = "import sys, neuralucb.cli.app; sys.exit(bool({'jax', 'matplotlib', 'scipy', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ctrl_c_stops_soon_and_leaves_no_file(tmp_path):
    folder = tmp_path / "o"
    arguments = ["run", "neural-ucb", "h1", "--rounds", "200000", "--seeds", "4", "--out", str(folder)]
    with started(
        [sys.executable, "-m", "neuralucb.cli", *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
    ) as process:  # fmt: skip
        assert process.stderr.readline().startswith(b"neural-ucb on h1")  # compiling begins, then hours of rounds
        time.sleep(10)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"stopped; nothing half-written was left." in err
    assert list(folder.iterdir()) == []
