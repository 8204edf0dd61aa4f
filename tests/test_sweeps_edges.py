"""Sweeps where something goes wrong: other data, lost folders, damaged files, too much of it, a stop."""

import json
import shutil

import numpy as np
import pytest

from neuralucb import memory
from neuralucb.sweeps import batches, local
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
    batches._kept.clear()
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


def test_a_flipped_byte_is_damage_and_not_a_full_disk(tmp_path):
    run_tiny(tmp_path / "out")
    victim = min((tmp_path / "out" / "runs").iterdir())
    content = victim.read_bytes()
    victim.write_bytes(content[:40] + bytes([content[40] ^ 255]) + content[41:])  # in a page: the footer is sound
    with pytest.raises(ValueError, match=f"{victim.name} is damaged; delete it, then `neuralucb resume"):
        run_tiny(tmp_path / "out")


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
