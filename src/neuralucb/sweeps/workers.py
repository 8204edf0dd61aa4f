"""The local engine: on a CPU one process per core, on a GPU this process, batch by batch."""

import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import jax

from neuralucb.runtime.child import Crash, enter, main_script, name_and_message, run_script, without_main_module
from neuralucb.runtime.compile_cache import keep_compiled
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.progress import Progress
from neuralucb.runtime.records import brief
from neuralucb.runtime.threads import start_jax_with
from neuralucb.sweeps.batches import Batch, Kept, Outcome, compile_ahead, forget_programs, run_batch
from neuralucb.sweeps.store import Failure, Store, as_table

__all__ = [
    "Event",
    "Follow",
    "Listener",
    "end_with_parent",
    "ignore",
    "nothing_follows",
    "run_here",
    "run_in_processes",
    "serve",
    "shielded_from_ctrl_c",
]

ATTEMPTS = 2
"""How often a batch is tried whose process dies, and how often a process is started that fails to start."""

GRACE_SECONDS = 5
"""How long a process may take to end after it has closed its pipe."""

READY, DONE = "ready", "done"
"""What a worker process sends when it has started, and after each batch."""


@brief
class Event(NamedTuple):
    """Progress of a batch: some of it done, all of it, or failed.

    Example:
        >>> def listener(event):  # given to `run_sweep`
        ...     print(f"{event.batch.algorithm}: {event.done} of {event.total}")
    """

    worker: int
    batch: Batch
    done: int
    """lane-rounds: rounds times runs"""
    total: int
    regret: float | None = None
    """mean final regret, once the batch is stored"""
    failure: Failure | None = None


Listener = Callable[[Event], None]

Follow = Callable[[Batch], Sequence[Batch]]
"""A batch that is stored -> batches that can be run now: the next stage of a race."""


def ignore(event: Event) -> None:
    """A listener for when nobody watches."""


def nothing_follows(batch: Batch) -> Sequence[Batch]:
    """In a full grid, all batches are known at the beginning."""
    return ()


def run_here(
    batches: Sequence[Batch], store: Store, tell: Listener, *, ahead: int = 0, follow: Follow = nothing_follows
) -> None:
    """Run all batches in this process; while one runs, the programs of the next `ahead` shapes are compiled."""
    shapes: list[str] = []
    queue: list[Batch] = []

    def add(more: Sequence[Batch]) -> None:
        shapes.extend(shape for shape in dict.fromkeys(batch.shape for batch in more) if shape not in shapes)
        queue.extend(more)
        queue.sort(key=lambda batch: shapes.index(batch.shape))  # in order, those of one shape together

    add(batches)
    compilers = ThreadPoolExecutor(max(1, ahead))
    try:
        while queue:
            if ahead:
                first = {batch.shape: batch for batch in reversed(queue)}
                compile_ahead([first[shape] for shape in shapes if shape in first][: 1 + ahead], compilers)
            batch = queue.pop(0)
            if store.missing([batch]):  # another process on the same folder may have stored it by now
                kept: list[Kept] = []
                tell(_attempt(batch, store, 0, tell, kept.append))
                more = follow(batch)
                for each in kept:  # of all runs, or, if it is known by now, of those that go on
                    rows = {one.row for later in more for one in later.origins if one.batch == batch.name}
                    store.write_kept(batch, each, sorted(rows) or None)
                add(more)
            else:
                add(follow(batch))
    finally:
        forget_programs()
        compilers.shutdown(wait=False)


def run_in_processes(
    batches: Sequence[Batch], store: Store, tell: Listener, *, workers: int, follow: Follow = nothing_follows
) -> None:
    """Spread batches over processes with one thread each. A process that dies costs its batch, which is tried again."""
    pool = _Pool(batches, store, tell, follow)
    try:
        pool.start(min(workers, len(batches)) if follow is nothing_follows else workers)
        while pool.queue or pool.busy():
            pool.assign()
            for worker in pool.wait():
                pool.receive(worker)
    finally:
        for worker in pool.workers:
            worker.end()


def serve(pipe: Connection, index: int, folder: str, parent: int) -> None:
    """In a worker process: take batches from the pipe, send events into it, and DONE after each batch."""
    store = Store(folder)
    jax.config.update("jax_platforms", "cpu")
    keep_compiled()
    start_jax_with(1)
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    try:
        pipe.send(READY)
        while True:
            batch: Batch = pipe.recv()
            try:
                if store.missing([batch]):
                    pipe.send(_attempt(batch, store, index, pipe.send))
            except OSError as problem:  # such as a full disk: nothing more can be stored
                pipe.send(OSError(problem.errno, problem.strerror or str(problem)))
            pipe.send(DONE)
    except (EOFError, OSError):  # the parent has ended
        return


@contextmanager
def shielded_from_ctrl_c() -> Iterator[None]:
    """A process started in here ignores Ctrl-C and prints nothing then: the process that started it ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise it starts with the process, and unblocks the signal then
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(parent: int) -> None:
    """End this process when its parent has ended: it would compete with the sweep that is resumed."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


class _Worker:
    """A process, the pipe to it, and the batch it works on."""

    def __init__(self, index: int, store: Store) -> None:
        self.index, self.store = index, store
        self.shape = ""
        self.failed_starts = 0
        self.start()

    def start(self) -> None:
        """Start a new process."""
        context = get_context("spawn")
        self.batch: Batch | None = None
        self.ready, self.crash = False, Crash("", "")
        self.pipe, theirs = context.Pipe()
        what = (main_script(), __name__, serve.__name__, self.index, str(self.store.folder), os.getpid())
        self.process = context.Process(target=enter, args=(theirs, *what), daemon=True)
        with shielded_from_ctrl_c(), without_main_module():
            self.process.start()
        theirs.close()

    def begin(self, batch: Batch) -> None:
        """Send a batch; if the process has died, reading from the pipe will show it."""
        self.batch, self.shape = batch, batch.shape
        with suppress(OSError):
            self.pipe.send(batch)

    def end(self) -> None:
        """End the process at once: what is stored is complete, and the rest can be run again."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def cause_of_death(self) -> Crash:
        """Why a process that has died did so."""
        self.process.join(GRACE_SECONDS)
        self.process.kill()
        self.process.join()
        return self.crash if self.crash.reason else Crash(_exit_in_words(self.process.exitcode or 0), "")


class _Pool:
    """Worker processes, and the batches that are still to be run."""

    def __init__(self, batches: Sequence[Batch], store: Store, tell: Listener, follow: Follow) -> None:
        self.queue, self.store, self.tell, self.follow = list(batches), store, tell, follow
        self.deaths: Counter[str] = Counter()
        self.workers: list[_Worker] = []

    def start(self, count: int) -> None:
        """Start so many workers."""
        for index in range(count):
            self.workers.append(_Worker(index, self.store))

    def busy(self) -> bool:
        """Whether a worker has a batch."""
        return any(worker.batch for worker in self.workers)

    def assign(self) -> None:
        """Give a batch to every worker that has none."""
        for worker in self.workers:
            if worker.batch is None and self.queue:
                worker.begin(self.queue.pop(self._best_for(worker)))

    def wait(self) -> list[_Worker]:
        """Wait until busy workers have sent something, or died; returns these."""
        ready = wait([worker.pipe for worker in self.workers if worker.batch])
        return [worker for worker in self.workers if worker.pipe in ready]

    def receive(self, worker: _Worker) -> None:
        """Take one message from a worker."""
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        if isinstance(message, Event):
            self.tell(message)
        elif isinstance(message, Crash):
            worker.crash = message
        elif isinstance(message, OSError):
            raise message
        elif message == READY:
            worker.ready, worker.failed_starts = True, 0
        else:
            done, worker.batch = worker.batch, None
            self.queue += self.follow(done) if done else ()

    def _best_for(self, worker: _Worker) -> int:
        """Index of a batch with the shape that the worker has compiled; else of a shape that no worker has; else 0."""
        shapes = [batch.shape for batch in self.queue]
        if worker.shape in shapes:
            return shapes.index(worker.shape)
        taken = {other.shape for other in self.workers}
        return next((index for index, shape in enumerate(shapes) if shape not in taken), 0)

    def _replace(self, worker: _Worker) -> None:
        """Start another process for one that has died; its batch is queued again, or given up."""
        cause, batch, was_ready = worker.cause_of_death(), worker.batch, worker.ready
        worker.pipe.close()
        if not was_ready:
            worker.failed_starts += 1
            if worker.failed_starts >= ATTEMPTS:
                raise InputError(self._cannot_start(cause))
        worker.start()
        for lost in self.store.missing([batch] if batch else []):
            self.deaths[lost.name] += was_ready
            if self.deaths[lost.name] < ATTEMPTS:
                self.queue.append(lost)
            else:
                reason = f"its process died {ATTEMPTS} times: {cause.reason}"
                failure, total = self.store.note_failure(lost, reason, cause.traceback), lost.lane_rounds
                self.tell(Event(worker.index, lost, total, total, failure=failure))

    def _cannot_start(self, cause: Crash) -> str:
        reason = cause.reason.removesuffix(".") + ("" if cause.traceback else "; what it printed is above")
        cure = f"Batches that have ended are safe; once this is fixed, `{self.store.resume_command}` runs the rest."
        return f"worker processes cannot start: {reason}. {cure}" + f"\n\n{cause.traceback}" * bool(cause.traceback)


def _attempt(
    batch: Batch, store: Store, index: int, tell: Listener, keep: Callable[[Kept], None] | None = None
) -> Event:
    """Run a batch and store its rows or its failure. An OSError is raised: then nothing can be stored.

    The states of a stage's runs are stored too, or given to `keep`.
    """
    total = batch.lane_rounds
    tell(Event(index, batch, 0, total))
    try:
        outcome = _run(batch, store.read_kept(batch), lambda done, total: tell(Event(index, batch, done, total)))
    except OSError:
        raise
    except Exception as problem:
        failure = store.note_failure(batch, name_and_message(problem), traceback.format_exc())
        return Event(index, batch, total, total, failure=failure)
    if outcome.kept is not None:
        (partial(store.write_kept, batch) if keep is None else keep)(outcome.kept)
    store.write(batch, as_table(batch, outcome))
    return Event(index, batch, total, total, regret=float(outcome.final_regret.mean()))


def _run(batch: Batch, kept: Kept | None, progress: Progress) -> Outcome:
    """Run a batch. In a worker process, a name that is not known may be registered by the script that was started."""
    try:
        return run_batch(batch, progress, kept)
    except InputError:
        if not run_script():
            raise
    return run_batch(batch, progress, kept)


def _exit_in_words(code: int) -> str:
    """How a process ended that could not say so itself."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    memory = ", as the system does when memory runs out: try fewer --workers" if name == "SIGKILL" else ""
    return f"killed by {name}{memory}"
