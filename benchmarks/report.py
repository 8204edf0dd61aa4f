"""The cost of a report over many stored runs: made-up regrets, real files.

python benchmarks/report.py [--runs 100000]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from neuralucb.display.sweep_report import write_report
from neuralucb.sweeps.batches import Outcome, make_batches
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store, as_table

SEEDS, ROUNDS, POINTS = 10, 10_000, 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "out")
        started = time.perf_counter()
        fill(store, runs)
        stored = time.perf_counter()
        write_report(store)
        ended = time.perf_counter()
        size = sum(path.stat().st_size for path in store.folder.rglob("*.parquet"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{runs} runs: planning and storing {stored - started:.0f} s ({size / 1e6:.0f} MB), "
        f"report {ended - stored:.0f} s, peak memory {peak:.2f} GB"
    )


def fill(store: Store, runs: int) -> None:
    """Runs of two algorithms on three problems."""
    values = int(np.sqrt(runs / (6 * SEEDS)))
    steps = -(-runs // (6 * SEEDS * values))
    grids = {
        "neural-ucb": {"exploration": np.geomspace(0.01, 10, values).tolist()},
        "neural-epsilon-greedy": {"epsilon": np.linspace(0.001, 0.2, values).tolist()},
    }
    both = {"step_size": np.geomspace(0.001, 0.1, steps).tolist()}
    parts = [Part(name, problem, grid | both) for problem in ("h1", "h2", "h3") for name, grid in grids.items()]
    sweep = Sweep("many", ROUNDS, tuple(range(SEEDS)), tuple(parts))
    store.open_for(sweep, 500)
    generator = np.random.default_rng(0)
    for batch in make_batches(sweep, lanes=500):
        curves = generator.random((len(batch.runs), POINTS), np.float32).cumsum(axis=1)
        nowhere = np.zeros(len(batch.runs), np.int32)
        outcome = Outcome(curves[:, -1].astype(float), curves, ROUNDS // POINTS, nowhere, 1.0, 1.0, "cpu")
        store.write(batch, as_table(batch, outcome))


if __name__ == "__main__":
    main()
