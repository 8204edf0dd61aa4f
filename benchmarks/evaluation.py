"""A million logged decisions valued with a frozen NeuralUCB (K = 10, d = 50, m = 100, diagonal Z)."""

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from neuralucb import build
from neuralucb.evaluation import evaluate, target_probabilities
from neuralucb.logs import Chunk, Log, open_log, recorded, write_log
from neuralucb.logs.batches import batches, shape_of
from neuralucb.logs.chunk import unnamed

ARMS, DIM, WIDTH, BATCH = 10, 50, 100, 8192


def decisions(count: int) -> Iterator[Chunk]:
    """Made as they are read, so that the reading of files is not measured."""
    random = np.random.default_rng(0)
    p = np.full((BATCH, ARMS), 1 / ARMS, np.float32)
    for first in range(0, count, BATCH):
        n = min(BATCH, count - first)
        contexts = random.standard_normal((n, ARMS, DIM), np.float32) / np.float32(np.sqrt(DIM))
        yield recorded(contexts, random.integers(ARMS, size=n), random.random(n), p[:n], first=first + 1)


def timed(name: str, work: "object") -> None:
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {seconds:.1f} s ({busy:.0f} s of processor) | peak {peak:.0f} MB |", flush=True)
    return result


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    names = unnamed(0, DIM)
    log = Log(Path("generated"), names, ARMS, count, lambda: decisions(count))
    bandit = build("neural-ucb", **shape_of(log), width=WIDTH, design="diagonal")
    belief = bandit.init(jax.random.key(0))
    timed("generating them alone, once", lambda: sum(1 for _ in batches(log)))

    def ask() -> None:
        wanted = target_probabilities(bandit, belief)
        for batch in batches(log):
            np.asarray(wanted(batch))

    timed(f"probabilities of {count:,} decisions, generating included", ask)
    timed("ips and snips, generating included", lambda: evaluate(bandit, belief, log, methods=("ips", "snips")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        timed("writing them as Parquet", lambda: write_log(path, decisions(count)))
        stored = open_log(path)
        timed("all five estimators from Parquet, two passes", lambda: evaluate(bandit, belief, stored))
