"""From a sweep and a folder to a report: what is missing is run, by whoever is there to run it."""

from pathlib import Path
from typing import NamedTuple

import jax
from rich.console import Console

from neuralucb.display.progress import watching
from neuralucb.display.sweep_report import write_report
from neuralucb.runtime.compile_cache import keep_compiled
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.threads import cores
from neuralucb.sweeps.batches import Batch, digests_of, make_batches
from neuralucb.sweeps.cost import Cost, estimate
from neuralucb.sweeps.spec import Sweep
from neuralucb.sweeps.store import Store
from neuralucb.sweeps.workers import Listener, run_here, run_in_processes

__all__ = ["Job", "prepare", "run_sweep"]

FEW_LANES, CPU_LANES, GPU_LANES = 10, 20, 5_000
"""Runs of a batch: on a CPU few, since a batch is what a lost process costs; on a GPU as many as there are."""

COMPILED_AHEAD = 4
"""Programs that the machine's cores compile while a GPU runs another: compiling was a third of figure 1's time."""


class Job(NamedTuple):
    """A sweep, where it goes, and what is left to do."""

    sweep: Sweep
    store: Store
    lanes: int
    batches: list[Batch]
    left: list[Batch]
    workers: int
    gpu: bool
    engine: str
    cost: Cost

    def in_words(self) -> str:
        """What will be run, and roughly how long it takes."""
        runs, left = (sum(len(batch.runs) for batch in some) for some in (self.batches, self.left))
        there = f", of which {runs - left} are there" if left < runs else ""
        who = "one GPU" if self.gpu else _processes(self.workers)
        return (
            f"{self.sweep.name}: {runs} runs{there}, {len(self.left)} batches on {who}; about "
            f"{_duration(self.cost.seconds)} and {max(0.1, self.cost.bytes / 1e9):.1f} GB a worker, roughly"
        )


def prepare(sweep: Sweep, folder: Path, *, device: str, workers: int | None, engine: str) -> Job:
    """Everything checked and counted; nothing is written yet."""
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    gpu = jax.default_backend() != "cpu"
    if device == "gpu" and not gpu:
        raise InputError("device must be cpu or auto here: JAX sees no GPU (is jax[cuda13] installed?).")
    store = Store(folder)
    lanes = store.lanes_for(sweep, GPU_LANES if gpu else _cpu_lanes(sweep))
    batches = make_batches(sweep, lanes=lanes)
    store.require_own(batches)
    store.require_data(digests_of(batches))
    left = store.missing(batches)
    count = 1 if gpu else min(workers or cores(), max(1, len(left)))
    cost = estimate(left, workers=count, gpu=gpu)
    if engine == "local" and not gpu:  # a GPU takes fewer lanes at a time; a cluster has memory of its own
        require_memory(
            cost.bytes * count,
            what=f"{sweep.name}, about {cost.bytes / 1e9:.1f} GB in each of {_processes(count)},",
            cure="take fewer --workers, fewer rounds, or a smaller network",
            host=True,
        )
    return Job(sweep, store, lanes, batches, left, count, gpu, engine, cost)


def run_sweep(job: Job, console: Console, *, address: str | None, command: str) -> tuple[Path, list[str]]:
    """Run what is missing, then write the report; returns it, and what failed. What is stored stays in any case."""
    try:
        job.store.open_for(job.sweep, job.lanes, digests_of(job.batches))
    except OSError as problem:
        raise InputError(
            f"{job.store.folder} could not be written ({problem.strerror or problem}); nothing was run. Make room, or "
            "name another folder."
        ) from None
    try:
        with watching(job.left, job.cost.of_batch, console) as (watcher, tell):
            _run(job, tell, address)
        return write_report(job.store, command=command), watcher.failures
    except ConnectionError as problem:
        raise InputError(f"--address {address} does not answer: {problem}.") from None
    except OSError as problem:
        if job.store.is_gone():
            raise InputError(
                f"{job.store.folder} was removed while the sweep ran; nothing more was written. Begin again with the "
                f"command that began it, or put the folder back, and `{command}` goes on."
            ) from None
        safe = len(job.batches) - len(job.store.missing(job.batches))
        raise InputError(
            f"{job.store.folder} could not be written ({problem.strerror or problem}); {safe} of {len(job.batches)} "
            f"batches are safe. Make room, or name another folder; then `{command}` goes on."
        ) from None


def _run(job: Job, tell: Listener, address: str | None) -> None:
    if job.engine == "ray":
        from neuralucb.sweeps.ray import run_on_cluster

        run_on_cluster(job.left, job.store, tell, address=address, gpu=job.gpu)
    elif job.gpu:
        keep_compiled()
        run_here(job.left, job.store, tell, ahead=COMPILED_AHEAD)
    else:  # also for one: in this process JAX would take every core
        run_in_processes(job.left, job.store, tell, workers=job.workers)


def _cpu_lanes(sweep: Sweep) -> int:
    """Runs of a batch with which the largest grid is an even number of equal batches, so that processes end together.

    How many processes there are must not matter: another cut could round other last digits.
    """
    runs = max(part.runs for part in sweep.parts) * len(sweep.seeds)
    fewest = 2 * -(-runs // (2 * CPU_LANES))
    even = (batches for batches in range(fewest, runs // FEW_LANES + 1, 2) if runs % batches == 0)
    return next((runs // batches for batches in even), CPU_LANES)


def _processes(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
