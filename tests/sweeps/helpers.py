"""Small sweeps and stores that several tests use."""

import os
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from pyarrow import dataset

from neuralucb.sweeps import engine
from neuralucb.sweeps.batches import Outcome, make_batches
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store, as_table
from neuralucb.sweeps.workers import run_here
from tests.processes import started

TINY = """
name = "tiny"
rounds = 30
seeds = 3

[[runs]]
algorithms = ["lin-ucb", "uniform"]
problems = ["h1", "h3"]
grid = { exploration = [0.01, 1.0] }
settings = { dim = 4 }
"""


def tiny(seeds=3, rounds=30):
    """Nine runs in two batches, of which the second is uniform's."""
    grid = {"exploration": [0.01, 1.0]}
    parts = [Part(name, "h1", grid if name == "lin-ucb" else {}, {"dim": 4}) for name in ("lin-ucb", "uniform")]
    return Sweep("tiny", rounds, tuple(range(seeds)), tuple(parts))


def run_tiny(folder, sweep=None):
    """Run a sweep in this process, since a new one takes seconds to start; returns its store."""
    job = prepare(sweep or tiny(), folder, device="cpu", workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
        )
        run_sweep(job)
    return job.store


def numbers(folder):
    """Every run of a store, by what it is."""
    table = dataset.dataset(folder / "runs").to_table()
    rows = table.select(["algorithm", "problem", "swept", "seed", "final_regret", "curve", "diverged_at"]).to_pylist()
    keys = [tuple(row[name] for name in ("algorithm", "problem", "swept", "seed")) for row in rows]
    assert len(set(keys)) == len(keys), "a run is stored twice"
    return dict(zip(keys, [(row["final_regret"], row["curve"], row["diverged_at"]) for row in rows], strict=True))


def with_data(folder, monkeypatch, seed):
    """Another shuttle under the same name."""
    generator = np.random.default_rng(seed)
    folder.mkdir()
    np.savez(folder / "shuttle.npz", X=generator.normal(size=(40, 3)), y=np.arange(40) % 2)
    monkeypatch.setenv("NEURALUCB_DATA", str(folder))


def stored(folder, grids, seeds):
    """A store with these final regrets: {algorithm: {setting: [regret of each seed]}}."""
    parts = [
        Part(name, "h1", {"exploration": list(settings)} if name == "lin-ucb" else {})
        for name, settings in grids.items()
    ]
    sweep = Sweep("made up", 10, tuple(range(seeds)), tuple(parts))
    store = Store(folder)
    store.open_for(sweep, 1000)
    for batch in make_batches(sweep, lanes=1000):
        regret = np.array([grids[batch.algorithm][run.swept.get("exploration")][run.seed] for run in batch.runs])
        curves = np.outer(regret, np.linspace(0.1, 1, 10)).astype(np.float32)
        outcome = Outcome(regret.astype(float), curves, 1, np.zeros(len(regret), np.int32), 1.0, 0.5, "cpu")
        store.write(batch, as_table(batch, outcome))
    return store


@contextmanager
def running(*arguments, cwd, log="log"):
    """The command in a process of its own; what it prints goes into a file."""
    with (
        (cwd / log).open("w") as printed,
        started(
            [sys.executable, "-m", "neuralucb.cli", *arguments],
            cwd=cwd, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stdout=printed, stderr=printed,
        ) as process,
    ):  # fmt: skip
        yield process


def in_children(folder, code, monkeypatch):
    """Have this code run at the start of worker processes, by way of Python's sitecustomize."""
    lines = [
        "import sys",
        "if '--multiprocessing-fork' in sys.orig_argv:",
        *(f"    {line}" for line in code.splitlines()),
    ]
    (folder / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
