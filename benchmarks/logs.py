"""Events per second, converted between Parquet and dsjson on one core, and the memory it takes. Run it with taskset."""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from neuralucb.logs import Chunk, convert, recorded, write_log

EVENTS = 400_000
BATCH = 8192


def events(count: int, arms: int, dim: int) -> "list[Chunk]":
    """Decisions with features of every arm, in float32, with rewards to three digits and all probabilities."""
    random = np.random.default_rng(0)
    for first in range(0, count, BATCH):
        n = min(BATCH, count - first)
        p = random.dirichlet(np.full(arms, 3.0), size=n).round(4) + 1e-4
        p /= p.sum(axis=1, keepdims=True)
        arm = (p.cumsum(axis=1) > random.random((n, 1))).argmax(axis=1)
        contexts = random.normal(size=(n, arms, dim)).astype(np.float32)
        yield recorded(contexts, arm, random.random(n).round(3), p.astype(np.float32), first=first + 1)


def measure(arms: int, dim: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        parquet, dsjson, back = (Path(folder) / name for name in ("log.parquet", "log.dsjson", "back.parquet"))
        write_log(parquet, events(count, arms, dim))
        for source, target in ((parquet, dsjson), (dsjson, back)):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.process_time()
            convert(source, target)
            seconds = time.process_time() - start
            size = dsjson.stat().st_size / count
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(
                f"| {arms} arms × {dim} features, {size:.0f} bytes of JSON | {source.suffix} → {target.suffix} | "
                f"{count / seconds:,.0f} events/s | peak {after / 1024:.0f} MB (+{(after - before) / 1024:.0f}) |",
                flush=True,
            )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    for arms, dim in ((5, 3), (5, 5), (10, 10)):
        measure(arms, dim, count)
