"""From a sweep to its stored runs: plan it, check it, and run what is missing, on processes, a GPU or a cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax

from neuralucb.problems import Definition
from neuralucb.problems.datasets import data_folder
from neuralucb.runtime.child import end_script_here
from neuralucb.runtime.compile_cache import keep_compiled
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import add_modules
from neuralucb.runtime.memory import require_memory
from neuralucb.runtime.records import brief
from neuralucb.runtime.threads import cores
from neuralucb.runtime.words import counted
from neuralucb.settings import check_integer
from neuralucb.sweeps.batches import NO_STAND_INS, Batch, digests_of, make_batches
from neuralucb.sweeps.callbacks import Callback, told
from neuralucb.sweeps.cost import Cost, estimate
from neuralucb.sweeps.race import CPU_LANES as RACE_LANES, Race, races_of
from neuralucb.sweeps.spec import Sweep
from neuralucb.sweeps.store import Failure, Store
from neuralucb.sweeps.workers import Event, Listener, ignore, run_here, run_in_processes

__all__ = ["Job", "explained_storage_errors", "lanes_on_cpu", "prepare", "run_sweep"]

FEW_LANES, CPU_LANES, GPU_LANES = 10, 20, 5_000
"""Runs per batch: few on a CPU, since a process that dies costs its batch; on a GPU as many as possible."""

COMPILED_AHEAD = 4
"""Programs that the CPU compiles while the GPU runs another: compiling was a third of the time of figure 1."""

ENGINES, DEVICES = ("local", "ray"), ("auto", "cpu", "gpu")


@brief
class Job(NamedTuple):
    """A sweep that was checked, the folder of its results, and what is still to be run.

    Example:
        >>> from neuralucb.sweeps import read_sweep
        >>> job = prepare(read_sweep("mine.toml"), "mine", device="cpu", workers=1)  # checked, and nothing run
        >>> len(job.missing) == len(job.batches)
        True
    """

    sweep: Sweep
    store: Store
    lanes: int
    """runs per batch"""
    batches: list[Batch]
    missing: list[Batch]
    """the batches that are not stored yet"""
    workers: int
    """processes, or threads of this one"""
    gpu: bool
    engine: str
    cost: Cost
    not_found: tuple[str, ...] = ()
    """data sets that others stood in for: the job can be looked at, but not be run"""
    races: tuple[Race, ...] = ()
    """one per algorithm and problem, where the search is a race; `batches` are then those of the stages known so far"""
    here: bool = False
    """whether threads of this process run it"""

    def in_words(self) -> str:
        """What will be run, and roughly how long it will take."""
        if self.races:
            return self._race_in_words()
        runs, missing = (sum(len(batch.runs) for batch in some) for some in (self.batches, self.missing))
        stored = runs - missing
        done = f", of which {stored} {'is' if stored == 1 else 'are'} done" if stored else ""
        where = "one GPU" if self.gpu else counted(self.workers, "process")
        what = f"{self.sweep.name}: {counted(runs, 'run')}{done}, {counted(len(self.missing), 'batch')} on {where}"
        return f"{what}; roughly {_duration(self.cost.seconds)} and {max(0.1, self.cost.bytes / 1e9):.1f} GB per worker"

    def _race_in_words(self) -> str:
        over = sum(race.over for race in self.races)
        settings = sum(race.part.runs for race in self.races)
        done = f", of which {over} {'is' if over == 1 else 'are'} over" if over else ""
        where = "one GPU" if self.gpu else counted(self.workers, "process")
        what = f"{self.sweep.name}: {counted(len(self.races), 'race')} between {settings} settings{done}, on {where}"
        return (
            f"{what}; at most roughly {_duration(self.cost.seconds)}, which all settings would take to the end, and "
            f"{max(0.1, self.cost.bytes / 1e9):.1f} GB per worker"
        )


def prepare(
    sweep: Sweep,
    folder: Path | str,
    *,
    device: str = "auto",
    workers: int | None = None,
    engine: str = "local",
    stand_ins: Mapping[str, Definition] = NO_STAND_INS,
    here: bool = False,
) -> Job:
    """Check and plan a sweep. Nothing is written yet.

    Args:
        sweep: What to run.
        folder: Where the results go; a folder that holds some of them is continued.
        device: "auto" (a GPU if JAX sees one), "cpu" or "gpu".
        workers: Processes on a CPU; None for one per core.
        engine: "local", or "ray" for a Ray cluster.
        stand_ins: By name, problems of the right size in place of data sets that are not on this machine; such a job
            can be looked at, but not be run.
        here: Whether to run a race in threads of this process, for what other processes could not be told by name.

    Returns:
        The job, for `run_sweep`; `job.in_words()` says how much it is.

    Raises:
        InputError: An argument or a setting is wrong, the folder belongs to another sweep or other data, or memory is
            too small.

    Example:
        >>> from neuralucb.sweeps import read_sweep
        >>> job = prepare(read_sweep("mine.toml"), "mine", device="cpu", workers=1)
        >>> job.sweep.runs
        2
    """
    end_script_here()
    _check(sweep, device, engine)
    at_most = cores() if workers is None else check_integer("workers", workers, 1)
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    gpu = device != "cpu" and jax.default_backend() != "cpu"  # JAX may have started on a GPU before
    if device == "gpu" and not gpu:
        raise InputError("device must be cpu or auto here: JAX sees no GPU (is jax[cuda13] installed?).")
    add_modules(sweep.imports)
    store = Store(folder)
    races: tuple[Race, ...] = ()
    if sweep.search == "race":
        threads = at_most if here else 1
        lanes = store.lanes_for(sweep, GPU_LANES if gpu else RACE_LANES * threads)
        races = tuple(races_of(sweep, lanes=lanes, gpu=gpu, threads=threads, stand_ins=stand_ins))
        missing = [batch for race in races for batch in race.advance(store)]
        batches = [batch for race in races for batch in race.batches]
    else:
        lanes = store.lanes_for(sweep, GPU_LANES if gpu else lanes_on_cpu(sweep))
        batches = make_batches(sweep, lanes=lanes, stand_ins=stand_ins)
        missing = store.missing(batches)
    if not (races and missing):  # else what later stages stored, before a file of this one was lost, would look foreign
        store.require_no_other_files(batches)
    store.require_data(digests_of(batches))
    to_estimate = make_batches(sweep, lanes=lanes, stand_ins=stand_ins) if races and missing else missing
    count = 1 if gpu else min(at_most, max(1, len(to_estimate)))  # more batches follow in a race than are missing now
    cost = estimate(to_estimate, workers=count, gpu=gpu, stand_ins=stand_ins)
    if engine == "local" and not gpu:  # on a GPU fewer lanes run at a time; the nodes of a cluster are not this machine
        require_memory(
            cost.bytes * count,
            what=f"{sweep.name}, about {cost.bytes / 1e9:.1f} GB in each of {counted(count, 'process')},",
            cure="take fewer workers, fewer rounds, or a smaller network",
            host=True,
        )
    return Job(sweep, store, lanes, batches, missing, count, gpu, engine, cost, tuple(stand_ins), races, here)


def run_sweep(
    job: Job, listener: Listener = ignore, *, address: str | None = None, callbacks: Sequence[Callback] = ()
) -> list[Failure]:
    """Run what is missing and store it, batch by batch. What is stored stays stored, whatever happens.

    Args:
        job: What `prepare` has planned.
        listener: Called with an `Event` as batches make progress, end or fail.
        address: Of the Ray cluster, with `engine="ray"`; None for a local one.
        callbacks: Told of every run after its batch is stored, in this process.

    Returns:
        The batches that failed, each with its reason; the others were run all the same.

    Raises:
        InputError: The folder cannot be written, the cluster does not answer, no worker can start, or a callback
            raised; the message says what is stored and how to resume.

    Example:
        >>> from neuralucb.sweeps import read_sweep
        >>> run_sweep(prepare(read_sweep("mine.toml"), "mine", device="cpu", workers=1))  # no failures
        []
    """
    if address is not None and job.engine != "ray":
        raise InputError(f"address goes with engine='ray', got {address!r}; set the engine, or omit the address.")
    if job.not_found:
        raise InputError(
            f"{', '.join(job.not_found)}: not found in {data_folder()}, and only planned with the sizes of Table 1; "
            f"`neuralucb data fetch {job.not_found[0]}` downloads it."
        )
    try:
        job.store.open_for(job.sweep, job.lanes, digests_of(job.batches))
    except OSError as problem:
        raise InputError(
            f"{job.store.folder} could not be written ({problem.strerror or problem}); nothing was run. Free some "
            "space, or name another folder."
        ) from None
    failures: list[Failure] = []

    with told(callbacks, job.sweep, failures, _safe(job)) as tell_of:

        def tell(event: Event) -> None:
            if event.failure is not None:
                failures.append(event.failure)
            if event.regret is not None and event.batch.until is None and callbacks:
                tell_of(job.store.runs_of(event.batch))
            listener(event)

        with explained_storage_errors(job):
            for race in job.races:
                race.save(job.store)
            _run(job, tell, address)
            for race in job.races:
                if race.over:
                    job.store.forget_kept(batch.name for batch in race.batches)
        if job.races and all(race.over for race in job.races):
            job.store.require_no_other_files([batch for race in job.races for batch in race.batches])
    return failures


@contextmanager
def explained_storage_errors(job: Job) -> Iterator[None]:
    """Turn an OSError of the folder into an InputError that says what is safe and how to resume."""
    folder, resume, safe = job.store.folder, job.store.resume_command, _safe(job)
    try:
        yield
    except OSError as problem:
        if job.store.is_gone():
            raise InputError(
                f"{folder} was removed while the sweep ran; nothing more was written. Start again with the first "
                f"command, or restore the folder, then `{resume}`."
            ) from None
        raise InputError(
            f"{folder} could not be written ({problem.strerror or problem}); {safe()}. Free some space, or move the "
            f"folder to a larger disk, then `{resume}`."
        ) from None


def lanes_on_cpu(sweep: Sweep) -> int:
    """Runs per batch that cut the largest grid into an even number of equal batches, so that processes end together.

    It does not depend on the number of processes: another cut could round the last digits differently.
    """
    runs = max(part.runs for part in sweep.parts) * len(sweep.seeds)
    fewest = 2 * -(-runs // (2 * CPU_LANES))
    even = (batches for batches in range(fewest, runs // FEW_LANES + 1, 2) if runs % batches == 0)
    return next((runs // batches for batches in even), CPU_LANES)


def _check(sweep: Sweep, device: str, engine: str) -> None:
    for name, value, known in (("device", device, DEVICES), ("engine", engine, ENGINES)):
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    if sweep.search == "race" and engine == "ray":
        raise InputError(
            "engine must be local for search = race, whose stages go on from states in the folder, got ray; take "
            "engine = local, or search = grid."
        )
    if not sweep.parts or not sweep.seeds:
        raise InputError(f"sweep {sweep.name!r} has no {'seeds' if sweep.parts else 'parts'}: there is nothing to run.")


def _safe(job: Job) -> Callable[[], str]:
    """How much is stored, in words, when it is asked."""

    def words() -> str:
        total, missing = len(job.batches), len(job.store.missing(job.batches))
        return f"{total - missing} of {counted(total, 'batch')} {'is' if total == 1 else 'are'} safe"

    return words


def _run(job: Job, tell: Listener, address: str | None) -> None:
    if not job.missing:
        return  # a finished sweep starts no process and no cluster

    def follow(batch: Batch) -> list[Batch]:
        return [more for race in job.races for more in race.follow(batch, job.store)]

    if job.engine == "ray":
        from neuralucb.sweeps.ray import disconnected_afterwards, run_on_cluster

        with disconnected_afterwards():
            run_on_cluster(job.missing, job.store, tell, address=address, gpu=job.gpu)
    elif job.gpu or job.here:
        keep_compiled()
        run_here(job.missing, job.store, tell, ahead=COMPILED_AHEAD if job.gpu else 0, follow=follow)
    else:  # one worker is a process too: in this process JAX would use every core
        run_in_processes(job.missing, job.store, tell, workers=job.workers, follow=follow)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
