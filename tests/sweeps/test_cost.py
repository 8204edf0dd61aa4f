"""Time and memory that a sweep will need."""

import pytest

from neuralucb.runtime import memory
from neuralucb.sweeps import cost
from neuralucb.sweeps.engine import prepare
from neuralucb.sweeps.spec import Part, Sweep
from tests.sweeps.helpers import tiny, with_data


def test_a_sweep_that_does_not_fit_into_memory_is_refused_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "host_bytes", lambda: 300)
    with pytest.raises(ValueError, match="tiny, about .* GB in each of 2 processes, needs .* are free; take fewer"):
        prepare(tiny(), tmp_path / "out", device="cpu", workers=2, engine="local")
    prepare(tiny(), tmp_path / "out", device="cpu", workers=2, engine="ray")


def test_the_memory_of_a_worker_counts_its_process_and_its_data(tmp_path, monkeypatch):
    with_data(tmp_path / "data", monkeypatch, 1)
    jobs = [
        prepare(
            Sweep("x", 20, (0,), (Part("uniform", name),)), tmp_path / name, device="cpu", workers=1, engine="local"
        )
        for name in ("h1", "shuttle", "digits")
    ]
    small, given, larger = (job.cost.bytes - cost.PROCESS for job in jobs)
    assert 0 <= small < 10_000
    assert 8 * 40 * 3 * 4 <= given < larger
    assert larger >= 8 * 1797 * 64 * 4
