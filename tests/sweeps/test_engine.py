"""Sweeps: run, resumed, and stopped by what goes wrong around them."""

import html
import re
import shutil

import numpy as np
import pytest

from neuralucb import run
from neuralucb.display.sweep_page import sweep_page
from neuralucb.display.sweep_report import best_table, write_report
from neuralucb.runtime.errors import InputError
from neuralucb.sweeps import engine, workers
from neuralucb.sweeps.engine import prepare
from neuralucb.sweeps.report import read_report
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store
from neuralucb.sweeps.toml import as_toml
from tests.sweeps.helpers import numbers, run_tiny, tiny


def page_of(store):
    """The page without its figures."""
    report = read_report(store)
    return sweep_page(report, best_table(report.best), [])


@pytest.mark.parametrize(
    ("runs", "lanes"), [(2, 20), (10, 20), (20, 10), (30, 15), (53, 20), (60, 15), (120, 20), (648, 18)]
)
def test_batches_are_even_in_number_where_they_can_be_so_that_two_processes_end_together(runs, lanes):
    sweep = Sweep("even", 30, tuple(range(runs)), (Part("uniform", "h1"),))
    assert engine.lanes_on_cpu(sweep) == lanes


def test_a_sweep_gives_what_run_gives_and_its_report(finished):
    page = write_report(Store(finished)).read_text()
    alone = run("lin-ucb", "h1", rounds=30, seeds=3, dim=4, exploration=0.01)
    stored = numbers(finished)
    for seed in range(3):
        final, curve, _ = stored["lin-ucb", "h1", '{"exploration": 0.01}', seed]
        np.testing.assert_allclose(final, alone.final_regret[seed], rtol=1e-5)
        np.testing.assert_allclose(curve, alone.regret[seed], rtol=1e-5)
    assert "9 of 9" in page
    assert html.escape(as_toml(tiny())) in page  # how to run it anew
    assert page.count("<svg") == 1
    assert not re.search(r"(src|href)=[\"']?http", page)  # nothing is fetched from elsewhere
    assert {path.suffix for path in (finished / "figures").iterdir()} == {".svg", ".pdf", ".png"}
    assert "LinUCB" in (finished / "best.md").read_text()


def test_only_what_is_missing_is_run_again(finished):
    before = {path: path.stat().st_mtime_ns for path in (finished / "runs").iterdir()}
    gone = next(iter(before))
    expected = numbers(finished)
    gone.unlink()
    job = prepare(tiny(), finished, device="cpu", workers=1)
    assert len(job.missing) == 1
    assert "of which" in job.in_words()
    run_tiny(finished)
    after = {path: path.stat().st_mtime_ns for path in (finished / "runs").iterdir()}
    assert set(after) == set(before)
    assert all(after[path] == before[path] for path in before if path != gone)
    assert numbers(finished) == expected


@pytest.mark.parametrize("problem", [ValueError("no luck today"), ModuleNotFoundError("no module today")])
def test_a_batch_that_fails_is_noted_with_its_traceback_and_the_others_go_on(tmp_path, monkeypatch, problem):
    sound = workers.run_batch

    def fails(batch, progress=None, kept=None):
        if batch.algorithm == "uniform":
            raise problem
        return sound(batch, progress, kept)

    monkeypatch.setattr(workers, "run_batch", fails)
    store = run_tiny(tmp_path / "out")
    (failure,) = store.failures()
    assert failure.reason == f"{type(problem).__name__}: {problem}"
    assert failure.traceback.startswith("Traceback (most recent call last):\n  File")
    assert "raise problem" in failure.last_lines()[-2]
    assert failure.file.exists()
    page = page_of(store)
    assert "today" in page
    assert "raise problem" in page  # the last lines of its traceback
    assert "Traceback (most" not in page
    assert f"Whole traceback: failures/{failure.file.name}" in page
    assert "3 runs are missing" in page
    monkeypatch.setattr(workers, "run_batch", sound)
    page = page_of(run_tiny(tmp_path / "out"))
    assert "today" not in page
    assert "Incomplete" not in page


def test_a_full_disk_stops_with_what_is_safe(tmp_path, monkeypatch):
    def full(self, batch, table):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(InputError, match=r"No space left on device.*0 of 2 batches are safe.*neuralucb resume"):
        run_tiny(tmp_path / "out")


@pytest.mark.parametrize("fails", [False, True], ids=["a batch", "a failure"])
def test_a_folder_removed_while_a_sweep_runs_is_not_made_again(tmp_path, monkeypatch, fails):
    sound = workers.run_batch

    def removed(batch, progress=None, kept=None):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        if fails:
            raise ValueError("no luck either")
        return sound(batch, progress, kept)

    monkeypatch.setattr(workers, "run_batch", removed)
    with pytest.raises(InputError, match="was removed while the sweep ran.*Start again.*neuralucb resume"):
        run_tiny(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(workers, "run_batch", sound)
    run_tiny(tmp_path / "out")


def test_a_folder_that_cannot_be_written_from_the_start_is_not_called_removed(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"out could not be written \(Not a directory\); nothing was run"):
        run_tiny(tmp_path / "file" / "out")
