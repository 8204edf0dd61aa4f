"""Sweeps where something goes wrong: other data, lost folders, damaged files, too much of it, a stop."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from neuralucb.runtime import memory
from neuralucb.sweeps import batches, engine, store
from neuralucb.sweeps import cost as estimates
from neuralucb.sweeps import workers as local
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.engine import prepare
from neuralucb.sweeps.spec import Part, Sweep, read_sweep
from neuralucb.sweeps.store import FAILURES, Store

from .test_sweeps import TINY, run_tiny, tiny


def with_data(folder, monkeypatch, seed):
    """Another shuttle under the same name."""
    generator = np.random.default_rng(seed)
    folder.mkdir()
    np.savez(folder / "shuttle.npz", X=generator.normal(size=(40, 3)), y=np.arange(40) % 2)
    monkeypatch.setenv("NEURALUCB_DATA", str(folder))


def test_data_are_not_mixed_in_one_folder(tmp_path, monkeypatch):
    sweep = Sweep("real", 20, (0, 1), (Part("uniform", "shuttle"),))
    with_data(tmp_path / "first", monkeypatch, 1)
    run_tiny(tmp_path / "out", sweep)
    (planned,) = make_batches(sweep, lanes=20)
    with_data(tmp_path / "second", monkeypatch, 2)
    with pytest.raises(ValueError, match=r"begun with other data of shuttle than those in .*second; put the same"):
        run_tiny(tmp_path / "out", sweep)
    batches._programs.clear()
    with pytest.raises(ValueError, match="shuttle has other data here than where the sweep was planned"):
        batches.run_batch(planned)  # as a worker that finds other data than were planned with
    manifest = tmp_path / "out" / "sweep.json"
    record = json.loads(manifest.read_text())
    del record["data"]
    manifest.write_text(json.dumps(record))
    run_tiny(tmp_path / "out", sweep)  # begun before data were recorded


@pytest.mark.parametrize("fails", [False, True], ids=["a batch", "a failure"])
def test_a_folder_removed_while_a_sweep_runs_is_not_made_again(tmp_path, monkeypatch, fails):
    sound = local.run_batch

    def removed(batch, progress=None):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        if fails:
            raise ValueError("no luck either")
        return sound(batch, progress)

    monkeypatch.setattr(local, "run_batch", removed)
    with pytest.raises(ValueError, match="was removed while the sweep ran.*Begin again.*neuralucb resume"):
        run_tiny(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(local, "run_batch", sound)
    run_tiny(tmp_path / "out")


def test_a_folder_that_cannot_be_written_from_the_start_is_not_called_removed(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"out could not be written \(Not a directory\); nothing was run"):
        run_tiny(tmp_path / "file" / "out")


def test_files_of_others_among_the_runs_are_refused(tmp_path):
    run_tiny(tmp_path / "out")
    other = tmp_path / "out" / "runs" / "zzz.parquet"
    shutil.copy(min(other.parent.iterdir()), other)
    with pytest.raises(
        ValueError, match=r"runs/zzz.parquet: not of this sweep; move it elsewhere, then `neuralucb res"
    ):
        run_tiny(tmp_path / "out")


def test_a_flipped_byte_is_damage_and_not_a_full_disk(tmp_path):
    run_tiny(tmp_path / "out")
    victim = min((tmp_path / "out" / "runs").iterdir())
    content = victim.read_bytes()
    victim.write_bytes(content[:40] + bytes([content[40] ^ 255]) + content[41:])  # in a page: the footer is sound
    with pytest.raises(ValueError, match=f"{victim.name} is damaged; delete it, then `neuralucb resume"):
        run_tiny(tmp_path / "out")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_that_of_our_own_checkout(tmp_path, monkeypatch):
    file = tmp_path / "store.py"
    file.touch()
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]

    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    def commit():
        return store._commit.__wrapped__()

    monkeypatch.setattr(store, "__file__", str(file))
    git("init")
    git("commit", "--allow-empty", "-m", "another project")
    assert commit() == ""  # installed below its checkout, and none of its files
    git("add", "store.py")
    git("commit", "-m", "ours")
    assert len(commit()) == 40
    file.write_text("changed")
    assert commit().endswith("-dirty")


@pytest.mark.parametrize("text", ["{", "[]", '{"reason": "none"}'])
def test_a_damaged_note_of_a_failure_is_named(tmp_path, text):
    (tmp_path / FAILURES).mkdir()
    (tmp_path / FAILURES / "x.json").write_text(text)
    with pytest.raises(ValueError, match="failures/x.json is damaged; delete it"):
        Store(tmp_path).failures()


def test_more_rounds_than_rows_are_told_with_their_line_and_cure(tmp_path):
    (tmp_path / "a.toml").write_text('rounds = 200\n[[runs]]\nalgorithms = ["uniform"]\nproblems = ["iris"]\n')
    cure = r"line 1: rounds is wrong: .*at most 150, the rows of iris, got 200; .*settings = \{ repeat = true \}\.$"
    with pytest.raises(ValueError, match=cure):
        read_sweep(tmp_path / "a.toml")


def test_a_mark_before_the_first_letter_is_no_part_of_a_sweep(tmp_path):
    (tmp_path / "a.toml").write_text(TINY, encoding="utf-8-sig")
    assert read_sweep(tmp_path / "a.toml").rounds == 30


def test_a_sweep_of_too_many_runs_is_refused_before_it_is_planned(tmp_path):
    text = 'rounds = 100\nseeds = 100000\n[[runs]]\nalgorithms = "neural-ucb0"\nproblems = "h1"\ngrid = "paper"\n'
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ValueError, match="line 2: seeds times grids makes 10800000 runs; at most 1000000"):
        read_sweep(tmp_path / "a.toml")


def test_a_sweep_that_does_not_fit_into_memory_is_refused_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "host_bytes", lambda: 300)
    with pytest.raises(ValueError, match="tiny, about .* GB in each of 2 processes, needs .* are free; take fewer"):
        prepare(tiny(), tmp_path / "out", device="cpu", workers=2, engine="local")
    prepare(tiny(), tmp_path / "out", device="cpu", workers=2, engine="ray")


def test_the_memory_of_a_worker_counts_its_process_and_its_data(tmp_path, monkeypatch):
    with_data(tmp_path / "data", monkeypatch, 1)
    costs = [
        prepare(
            Sweep("x", 20, (0,), (Part("uniform", name),)), tmp_path / name, device="cpu", workers=1, engine="local"
        )
        for name in ("h1", "shuttle", "digits")
    ]
    small, given, larger = (job.cost.bytes - estimates.PROCESS for job in costs)
    assert 0 <= small < 10_000
    assert 8 * 40 * 3 * 4 <= given < larger
    assert larger >= 8 * 1797 * 64 * 4


def test_ctrl_c_says_how_to_go_on(command, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.setattr(engine, "run_sweep", stopped)
    code, _, err = command("sweep", "tiny.toml", "--out", "my out", "--workers", "1")
    assert code == 130
    assert "stopped; every batch that has ended is safe, and `neuralucb resume 'my out'` goes on." in err


def test_a_worker_whose_parent_was_killed_ends_quietly(tmp_path, monkeypatch):
    class Broken:
        def recv(self):
            raise ConnectionResetError

    for name in ("keep_compiled", "_die_with", "_start_with_one_thread"):  # what would last beyond this test
        monkeypatch.setattr(local, name, lambda *_: None)
    local._work(Broken(), 0, Store(tmp_path), os.getppid())


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are the system's affair here")
def test_a_worker_computes_with_one_thread_on_any_core():
    code = """
import os, pathlib
from neuralucb.sweeps.workers import _start_with_one_thread
before = os.sched_getaffinity(0)
_start_with_one_thread()
threads = [pathlib.Path(f"/proc/self/task/{each}") for each in os.listdir("/proc/self/task")]
assert all(os.sched_getaffinity(int(thread.name)) == before for thread in threads)
print(sum("XLAEigen" in (thread / "comm").read_text() for thread in threads))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.strip() == "1"


def test_a_worker_does_not_see_ctrl_c():
    with local._unseen_by_ctrl_c():
        masked = subprocess.run([sys.executable, "-c", MASK], check=True, capture_output=True, text=True).stdout
    assert (masked.strip(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])) == ("True", False)


MASK = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


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
