"""The command line as a whole: exit codes, bad input, faults and Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neuralucb import InputError, StorageError, UnsoundError, experiments
from neuralucb.cli import exit_codes
from tests.processes import started


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "neural_ucb", "h1"], "known: neural-mix"),
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
        (["list", "linucb"], "known: neural-mix"),
    ],
)
def test_bad_input_is_a_short_message_and_exit_code_2(command, arguments, message):
    code, out, err = command(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("the argument x is bad."), "error: the argument x is bad."),
        (StorageError("journal is damaged."), "error: journal is damaged."),
        (FileNotFoundError(2, "No such file or directory", "gone.csv"), "error: gone.csv cannot be used: No such file"),
        (OSError("no space"), "error: a file cannot be used: no space."),
    ],
)
def test_what_the_caller_can_mend_is_one_line_and_exit_code_2(command, monkeypatch, error, message):
    monkeypatch.setattr(experiments, "plan", raises(error))
    code, out, err = command("run", "lin-ucb", "h1")
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_what_is_not_sound_has_an_exit_code_of_its_own(command, monkeypatch):
    monkeypatch.setattr(experiments, "plan", raises(UnsoundError("it diverged.")))
    assert command("run", "lin-ucb", "h1") == (3, "", "not sound: it diverged.\n")


def test_every_exit_code_is_documented_and_has_one_meaning():
    codes = {name: getattr(exit_codes, name) for name in exit_codes.__all__}
    page = (Path(__file__).parents[2] / "docs" / "exit_codes.md").read_text()
    assert len(set(codes.values())) == len(codes)
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [str(code) for code in sorted([0, *codes.values()])]


@pytest.mark.parametrize("error", [ValueError("[red]shapes differ[/red]"), KeyError("belief"), RuntimeError("XLA")])
def test_a_fault_of_the_library_is_a_traceback_and_exit_code_70(command, monkeypatch, error):
    monkeypatch.setattr(experiments, "plan", raises(error))
    code, out, err = command("run", "lin-ucb", "h1")
    assert (code, out) == (70, "")
    assert "Traceback" in err
    assert repr(error.args[0]).strip("'") in err  # printed as it is, without markup
    assert "in raise_it" in err
    assert "please report it with the lines above" in " ".join(err.split())


def raises(error):
    """A function that raises it, whatever it is given."""

    def raise_it(*_, **__):
        raise error

    return raise_it


def test_help_does_not_wait_for_jax():
    code = "import sys, neuralucb.cli.app; sys.exit(bool({'jax', 'matplotlib', 'scipy', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def until_settled(folder, seconds=3):
    """Wait until a folder has files, and has had no other ones for some seconds."""
    before, since = set(), time.monotonic()
    while not before or time.monotonic() - since < seconds:
        now = set(folder.glob("*"))
        if now != before:
            before, since = now, time.monotonic()
        assert time.monotonic() - since < 60
        time.sleep(0.1)


@pytest.mark.waits
def test_ctrl_c_stops_soon_and_leaves_no_file(tmp_path):
    folder, programs = tmp_path / "o", tmp_path / "compiled"
    arguments = ["run", "neural-ucb", "h1", "--rounds", "200000", "--seeds", "4", "--out", str(folder)]
    with started(
        [sys.executable, "-m", "neuralucb.cli", *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(programs)},
    ) as process:  # fmt: skip
        assert process.stderr.readline().startswith(b"neural-ucb on h1")  # compiling begins, then hours of rounds
        until_settled(programs)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"stopped; nothing half-written was left." in err
    assert list(folder.iterdir()) == []
