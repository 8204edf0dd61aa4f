"""Worker processes: what they survive, and what they say when they do not."""

import os
import signal

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps import batches, workers
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.store import Store
from tests.processes import run_python
from tests.sweeps.helpers import TINY, in_children, numbers, tiny


def test_compiling_ahead_changes_no_number_and_what_fails_is_noted(finished, tmp_path, monkeypatch):
    """As on a GPU: while one batch runs, the programs of the next are compiled."""
    sweep, sound = tiny(), batches.compile_batch

    def compile_one(batch):
        if batch.algorithm == "uniform":
            raise ValueError("no room today")
        return sound(batch)

    monkeypatch.setattr(batches, "compile_batch", compile_one)
    store = Store(tmp_path / "ahead")
    planned = make_batches(sweep, lanes=3)
    store.open_for(sweep, 3, {})
    workers.run_here(planned, store, lambda event: None, ahead=2)
    assert len(store.missing(planned)) == 1
    assert "no room today" in next((tmp_path / "ahead" / "failures").iterdir()).read_text()
    monkeypatch.setattr(batches, "compile_batch", sound)
    workers.run_here(planned, store, lambda event: None, ahead=2)
    ahead, now = numbers(tmp_path / "ahead"), numbers(finished)
    assert {run: regret for run, (regret, *_) in ahead.items()} == pytest.approx(
        {run: regret for run, (regret, *_) in now.items()}
    )


@pytest.mark.waits
def test_a_process_that_dies_costs_its_batch_and_no_other(command, tmp_path, monkeypatch):
    """A batch that ends its process every time is given up, with the true reason; the others are not."""
    code = """
import os, signal
from neuralucb.sweeps import workers
sound = workers.run_batch
def run_batch(batch, progress=None, kept=None):
    if batch.algorithm == "uniform" and batch.problem == "h1":
        os._exit(9)
    if batch.algorithm == "uniform":
        os.kill(os.getpid(), signal.SIGKILL)
    return sound(batch, progress, kept)
workers.run_batch = run_batch
"""
    (tmp_path / "tiny.toml").write_text(TINY)
    with monkeypatch.context() as patch:
        in_children(tmp_path, code, patch)
        ended, _, err = command("sweep", "tiny.toml", "--workers", "2", "--out", "out")
    assert ended == 1, err
    assert err.count("its process died 2 times") == 2
    assert "uniform on h1, 3 runs: its process died 2 times: exit code 9\n" in err
    assert "uniform on h3, 3 runs: its process died 2 times: killed by SIGKILL, as the system does when memory" in err
    assert {key[0] for key in numbers(tmp_path / "out")} == {"lin-ucb"}
    assert len(numbers(tmp_path / "out")) == 12
    ended, _, err = command("resume", "out")
    assert ended == 0, err
    assert len(numbers(tmp_path / "out")) == 18


NO_JAX = """
class NoJax:
    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            raise ModuleNotFoundError("no jax today")
sys.meta_path.insert(0, NoJax())
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [(NO_JAX, "ModuleNotFoundError: no jax today"), ("import os\nos._exit(3)", "exit code 3")],
    ids=["import", "exit"],
)
def test_a_worker_that_cannot_start_says_why_and_ends_the_sweep(tmp_path, monkeypatch, code, reason):
    in_children(tmp_path, code, monkeypatch)
    job = prepare(tiny(), tmp_path / "out", device="cpu", workers=2)
    with pytest.raises(InputError, match="worker processes cannot start.*neuralucb resume") as told:
        run_sweep(job)
    assert f"cannot start: {reason}" in str(told.value)
    assert "memory" not in str(told.value)
    assert ("Traceback (most recent call last)" in str(told.value)) == ("jax" in reason)
    assert job.store.failures() == []  # it is no fault of a batch


def test_a_worker_whose_parent_was_killed_ends_quietly(tmp_path, monkeypatch):
    class Broken:
        def send(self, message):
            assert message == workers.READY

        def recv(self):
            raise ConnectionResetError

    for name in ("keep_compiled", "end_with_parent", "start_jax_with"):  # what would last beyond this test
        monkeypatch.setattr(workers, name, lambda *_: None)
    workers.serve(Broken(), 0, str(tmp_path), os.getppid())


def test_a_worker_does_not_see_ctrl_c():
    code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with workers.shielded_from_ctrl_c():
        masked = run_python("-c", code)
    assert (masked.stdout.strip(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])) == ("True", False)


def test_the_first_worker_does_not_see_ctrl_c_either():
    code = (
        "import signal; from multiprocessing import resource_tracker; from neuralucb.sweeps import workers\n"
        "with workers.shielded_from_ctrl_c():\n"
        "    resource_tracker.ensure_running()  # as the first process does that multiprocessing starts\n"
        "    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    assert run_python("-c", code).stdout.strip() == "True"
