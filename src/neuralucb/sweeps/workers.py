"""The local engine: on a CPU one process a core, on a GPU this process, batch by batch."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import jax

from neuralucb.runtime.compile_cache import keep_compiled
from neuralucb.sweeps.batches import Batch, compile_ahead, run_batch
from neuralucb.sweeps.store import Store, as_table

__all__ = ["Event", "Listener", "run_here", "run_in_processes"]

ATTEMPTS = 2
"""A batch whose process dies is tried this often in all; a batch that fails for a reason of its own is not."""


class Event(NamedTuple):
    """What a worker has to tell."""

    worker: int
    batch: Batch
    done: int
    """lane-rounds"""
    whole: int
    regret: float | None = None
    """mean final regret, when the batch has ended"""
    failure: str | None = None


Listener = Callable[[Event], None]


def run_here(batches: Sequence[Batch], store: Store, tell: Listener, *, ahead: int = 0) -> None:
    """All batches in this process; on a GPU each is one large program, and the next few are compiled meanwhile."""
    shapes = list(dict.fromkeys(batch.shape for batch in batches))
    left = sorted(batches, key=lambda batch: shapes.index(batch.shape))  # in order, those of a shape together
    compilers = ThreadPoolExecutor(max(1, ahead))
    try:
        while left:
            if ahead:
                first = {batch.shape: batch for batch in reversed(left)}
                compile_ahead([first[shape] for shape in shapes if shape in first][: 1 + ahead], compilers)
            batch = left.pop(0)
            if store.missing([batch]):  # or another process has done it meanwhile
                tell(_attempt(batch, store, 0, tell))
    finally:
        compile_ahead([], compilers)
        compilers.shutdown(wait=False)


def run_in_processes(batches: Sequence[Batch], store: Store, tell: Listener, *, workers: int) -> None:
    """Batches over processes, one thread each. A process that dies costs its batch, which is tried once more."""
    left, tries = list(batches), {batch.name: 0 for batch in batches}
    team = [_Worker(place, store) for place in range(min(workers, len(left)))]
    try:
        while left or any(worker.batch for worker in team):
            for worker in team:
                if worker.batch is None and left:
                    batch = _next(left, worker, team)
                    tries[batch.name] += 1
                    worker.begin(batch)
            for ready in wait([worker.pipe for worker in team if worker.batch]):
                worker = next(each for each in team if each.pipe is ready)
                try:
                    news = worker.pipe.recv()
                except (EOFError, OSError):
                    lost = [worker.batch] if worker.batch else []
                    worker.restart()
                    for batch in store.missing(lost):
                        left += _again(batch, tries[batch.name], worker.place, store, tell)
                    continue
                if isinstance(news, OSError):
                    raise news
                if isinstance(news, Event):
                    tell(news)
                else:
                    worker.batch = None
    finally:
        for worker in team:
            worker.end()


class _Worker:
    """A process, the pipe to it, and what it is at."""

    def __init__(self, place: int, store: Store) -> None:
        self.place, self.store = place, store
        self.batch: Batch | None = None
        self.shape = ""
        self.restart()

    def restart(self) -> None:
        """A new process, after the start or the death of the last."""
        context = get_context("spawn")
        self.batch = None
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.place, self.store, os.getpid()), daemon=True)
        with _unseen_by_ctrl_c():
            self.process.start()
        theirs.close()

    def begin(self, batch: Batch) -> None:
        self.batch, self.shape = batch, batch.shape
        self.pipe.send(batch)

    def end(self) -> None:
        """At once, whatever it is at: what is stored is whole, and the rest can be done again."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _next(left: list[Batch], worker: _Worker, team: Sequence[_Worker]) -> Batch:
    """A batch of the shape that the worker has compiled; or of one that nobody is at; or the first."""
    taken = {each.shape for each in team if each is not worker}
    for wanted in (lambda shape: shape == worker.shape, lambda shape: shape not in taken, lambda shape: True):
        for index, batch in enumerate(left):
            if wanted(batch.shape):
                return left.pop(index)
    raise AssertionError("nothing is left")


def _again(batch: Batch, tries: int, place: int, store: Store, tell: Listener) -> list[Batch]:
    """The batch of a process that died, if it may be tried once more."""
    if tries < ATTEMPTS:
        return [batch]
    reason = f"its process died {ATTEMPTS} times; is there enough memory?"
    store.note_failure(batch, reason)
    tell(Event(place, batch, 0, 1, failure=reason))
    return []


def _work(pipe: Connection, place: int, store: Store, parent: int) -> None:
    """In a worker process: batches from the pipe, events into it, None after each batch."""
    jax.config.update("jax_platforms", "cpu")
    keep_compiled()
    _start_with_one_thread()
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    try:
        while True:
            batch: Any = pipe.recv()
            try:
                if store.missing([batch]):
                    pipe.send(_attempt(batch, store, place, pipe.send))
            except OSError as problem:  # a full disk: nothing more can be kept
                pipe.send(OSError(problem.errno, problem.strerror or str(problem)))
            pipe.send(None)
    except (EOFError, OSError):  # nobody is there any more
        return


def _start_with_one_thread() -> None:
    """Start JAX while there is one core for it: its pools, sized now, then have one thread each.

    Afterwards the system may choose the core again: two commands that both take the first would halve each other.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    jax.jit(lambda number: number + 1)(0)  # the pool that compiles is made by the first compilation
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread), cores)


@contextmanager
def _unseen_by_ctrl_c() -> Iterator[None]:
    """A process started in here does not see Ctrl-C, and prints nothing then: whoever started it ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with(parent: int) -> None:
    """An orphan must not go on: whoever resumes would compete with it."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _attempt(batch: Batch, store: Store, place: int, tell: Listener) -> Event:
    """Run a batch and keep it. What fails for a reason of its own is noted; a full disk is for the caller."""
    whole = len(batch.runs) * batch.rounds
    tell(Event(place, batch, 0, whole))
    try:
        outcome = run_batch(batch, lambda done, total: tell(Event(place, batch, done, total)))
    except (ValueError, TypeError, RuntimeError, MemoryError) as problem:
        reason = f"{type(problem).__name__}: {problem}"
        store.note_failure(batch, reason)
        return Event(place, batch, whole, whole, failure=reason)
    store.write(batch, as_table(batch, outcome))
    return Event(place, batch, whole, whole, regret=float(outcome.final_regret.mean()))
