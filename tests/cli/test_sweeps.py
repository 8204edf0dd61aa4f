"""The commands about sweeps."""

import pytest

from neuralucb.cli.exit_codes import UNSOUND
from neuralucb.sweeps import engine, workers
from neuralucb.sweeps.workers import run_here
from tests.sweeps.helpers import TINY, with_data


def test_ctrl_c_says_how_to_go_on(command, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.setattr(engine, "run_sweep", stopped)
    code, _, err = command("sweep", "tiny.toml", "--out", "my out", "--workers", "1")
    assert code == 130
    assert "stopped; every batch that has ended is safe, and `neuralucb resume 'my out'` runs the rest." in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "tiny.toml", "--out", "x" * 300], "cannot be used: File name too long"),
        (["sweep", "tiny.toml", "--address", "head:6379"], "--address goes with --engine ray, got 'head:6379'"),
        (
            ["sweep", "tiny.toml", "--engine", "ray", "--address", "127.0.0.1:1"],
            "--address 127.0.0.1:1 does not answer",
        ),
    ],
)
def test_what_a_sweep_cannot_use_is_told(command, tmp_path, arguments, message):
    (tmp_path / "tiny.toml").write_text(TINY)
    code, _, err = command(*arguments)
    assert code == 2
    assert message in " ".join(err.split())


def test_table_1_is_written_where_it_is_asked_for_and_one_damaged_set_spares_the_others(command, monkeypatch, tmp_path):
    with_data(tmp_path / "data", monkeypatch, 1)
    (tmp_path / "data" / "covertype.npz").write_bytes(b"junk")
    code, _, err = command("reproduce", "table1", "--out", "here")
    table = (tmp_path / "here" / "table1.md").read_text()
    assert code == 0
    assert "covertype.npz" in err
    assert "| covertype | damaged |" in table
    assert "| shuttle | 3 | 2 | 40 | 8, 7, 58000 |" in table


def test_a_failure_is_printed_with_the_end_of_its_traceback_once(command, monkeypatch, tmp_path):
    def fails(batch, progress=None, kept=None):
        raise KeyError("no luck [today]")

    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.setattr(workers, "run_batch", fails)
    monkeypatch.setattr(
        engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
    )
    code, _, err = command("sweep", "tiny.toml", "--out", "out", "--workers", "1")
    assert code == 1
    assert err.count("failed: ") == 4
    assert "failed: uniform on h3, 3 runs: KeyError: 'no luck [today]'" in err
    assert err.count('raise KeyError("no luck [today]")') == 1
    assert err.count("full traceback: out/failures/lin-ucb-h1-") == 1
    assert (tmp_path / "out" / "report.html").exists()


GRID = """
rounds = 40
seeds = 2
schedule = "10"
[[runs]]
algorithms = ["neural-ucb"]
problems = ["h2"]
[runs.settings]
width = 8
steps = 10
retries = 0
optimizer = "plain"
decay = "none"
units = "given"
[runs.grid]
step_size = {steps}
"""


def test_a_best_setting_that_diverged_has_an_exit_code_of_its_own(command, monkeypatch, tmp_path):
    monkeypatch.setattr(
        engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
    )
    (tmp_path / "bad.toml").write_text(GRID.replace("{steps}", "[1e8, 1e9]"))
    code, _, err = command("sweep", "bad.toml", "--workers", "1")
    assert code == UNSOUND
    assert err.splitlines()[-1].startswith("not sound: with the best setting ")
    assert (tmp_path / "bad" / "report.html").exists()
    (tmp_path / "good.toml").write_text(GRID.replace("{steps}", "[0.001]"))  # the control
    assert command("sweep", "good.toml", "--workers", "1")[0] == 0


def test_a_dry_run_without_data_uses_the_sizes_of_table_1(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path / "data"))
    code, out, err = command("reproduce", "figure2", "--scale", "smoke", "--device", "cpu", "--dry-run")
    assert code == 0, err
    assert out.startswith("figure2-smoke: 104 runs, 36 batches on ")
    assert "covertype, magic, shuttle, mnist: not found in" in err
    assert "`neuralucb data fetch covertype`, `neuralucb data fetch magic`" in err
    assert not (tmp_path / "figure2-smoke").exists()
    code, _, err = command("reproduce", "figure2", "--scale", "smoke", "--device", "cpu")
    assert code == 2
    assert "data set covertype was not found; `neuralucb data fetch covertype` downloads it" in err


def test_one_of_each_is_singular(command, tmp_path):
    (tmp_path / "one.toml").write_text('rounds = 5\nseeds = 1\n[[runs]]\nalgorithms = ["uniform"]\nproblems = ["h1"]')
    code, out, err = command("sweep", "one.toml", "--device", "cpu", "--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith("one: 1 run, 1 batch on 1 process; roughly ")


def test_a_race_is_asked_for_by_an_option_and_its_folder_is_no_full_grids(command, tmp_path, monkeypatch):
    monkeypatch.setattr(
        engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
    )
    (tmp_path / "tiny.toml").write_text(
        'rounds = 30\nseeds = 3\n[[runs]]\nalgorithms = ["lin-ucb"]\nproblems = ["h1"]\nschedule = "10"\n'
        "grid = { exploration = [0.01, 1000.0] }\nsettings = { dim = 4 }\n"
    )
    code, out, _ = command("sweep", "tiny.toml", "--search", "race", "--out", "out")
    assert code == 0
    assert "1 race between 2 settings" in out
    assert (tmp_path / "out" / "race" / "lin-ucb-h1.json").exists()
    code, _, err = command("sweep", "tiny.toml", "--out", "out")
    assert code == 2
    assert "holds the results of search = race, got search = grid" in err
    code, _, _ = command("resume", "out")
    assert code == 0
