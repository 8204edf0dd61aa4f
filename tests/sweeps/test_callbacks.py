"""Callbacks: told of what is stored, ended whatever happens, and harmless when they fail."""

import json

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps import engine, sweep, workers
from neuralucb.sweeps.callbacks import FinishedRun
from neuralucb.sweeps.workers import run_here
from tests.sweeps.helpers import numbers, tiny


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Sweeps run in this process, since a new one takes seconds to start."""
    monkeypatch.setattr(
        engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
    )


class Noting:
    """Notes what it is told; raises where it should."""

    def __init__(self, raises="", problem=None):
        self.raises, self.problem, self.told = raises, problem or OSError(28, "No space left"), []

    def note(self, method, what):
        self.told.append((method, what))
        if method == self.raises:
            raise self.problem

    def start(self, sweep):
        self.note("start", sweep)

    def run(self, run):
        self.note("run", run)

    def end(self, failures):
        self.note("end", list(failures))

    @property
    def order(self):
        return [method for method, _ in self.told]


def test_a_callback_is_told_of_every_run_once_it_is_stored(tmp_path):
    noting, stored = Noting(), []
    noting.run = lambda run: (noting.note("run", run), stored.append(len(numbers(tmp_path / "out"))))
    sweep(tiny(), out=tmp_path / "out", workers=1, callbacks=[noting])
    assert noting.order == ["start", *["run"] * 9, "end"]
    assert noting.told[0][1] == tiny()
    assert noting.told[-1][1] == []
    assert stored == [6] * 6 + [9] * 3  # its batch was on disk by then
    expected = numbers(tmp_path / "out")
    for _, run in noting.told[1:-1]:
        swept = json.dumps(run.swept)
        final, curve, _ = expected[run.algorithm, run.problem, swept, run.seed]
        assert (run.regret.tolist(), run.regret[-1]) == (curve, pytest.approx(final))
    assert len({run.name for _, run in noting.told[1:-1]}) == 9
    again = Noting()
    sweep(tiny(), out=tmp_path / "out", callbacks=[again])
    assert again.order == ["start", "end"]  # nothing was run


def test_a_callback_hears_of_what_failed(tmp_path, monkeypatch):
    def fails(batch, progress=None, kept=None):
        raise ValueError("no luck today")

    monkeypatch.setattr(workers, "run_batch", fails)
    noting = Noting()
    sweep(tiny(), out=tmp_path / "out", workers=1, callbacks=[noting])
    assert [failure.reason for failure in noting.told[-1][1]] == ["ValueError: no luck today"] * 2


@pytest.mark.parametrize(("method", "safe", "order"), [
    ("start", 0, ["start"]), ("run", 1, ["start", "run", "end"]), ("end", 2, ["start", *["run"] * 9, "end"]),
])  # fmt: skip
def test_a_callback_that_raises_ends_the_sweep_and_nothing_stored_is_lost(tmp_path, method, safe, order):
    noting, other = Noting(method), Noting()
    with pytest.raises(InputError) as told:
        sweep(tiny(), out=tmp_path / "out", workers=1, callbacks=[noting, other])
    assert f"callbacks: Noting.{method} raised OSError: [Errno 28] No space left; {safe} of 2 batches" in str(
        told.value
    )
    assert isinstance(told.value.__cause__, OSError)  # with its traceback
    assert noting.order == order
    assert other.order[-1:] == ([] if method == "start" else ["end"])
    result = sweep(tiny(), out=tmp_path / "out", workers=1)
    assert (result.stored, result.failures) == (9, ())


def test_callbacks_are_ended_when_a_sweep_is_interrupted_and_do_not_hide_it(tmp_path, monkeypatch):
    def stopped(batch, progress=None, kept=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "run_batch", stopped)
    noting = Noting("end")
    with pytest.raises(KeyboardInterrupt) as told:
        sweep(tiny(), out=tmp_path / "out", workers=1, callbacks=[noting])
    assert noting.order == ["start", "end"]
    (note,) = told.value.__notes__
    assert note.startswith("And callbacks: Noting.end raised OSError: [Errno 28] No space left; 0 of 2 batches")


def test_the_name_of_a_run_is_fit_for_a_folder_and_unlike_others():
    first = FinishedRun("lin-ucb", "h1", {"schedule": "1:2,3/4"}, {}, 0, [1], [0.5], 0, 0.1)
    then = first._replace(swept={"schedule": "1:2,3:4"})
    assert first.name != then.name
    assert not set("/:\\ ") & set(first.name + then.name)
    assert len(first._replace(swept={f"setting{i}": 0.123456789 for i in range(40)}).name) < 200
    assert first._replace(swept={"exploration": 1e-05}).name == "lin-ucb-h1-exploration=1e-05-seed0"
