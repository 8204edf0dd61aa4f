"""Sweeps where something goes wrong: other data, lost folders, damaged files, too much of it, a stop."""

import json

import numpy as np
import pytest

from neuralucb.sweeps import batches
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.spec import Part, Sweep
from tests.test_sweeps import run_tiny


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
