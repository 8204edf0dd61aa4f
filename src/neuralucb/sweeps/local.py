"""The local engine: on a CPU one process a core, on a GPU this process, batch by batch."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

import jax

from neuralucb.experiments.compiling import keep_compiled
from neuralucb.sweeps.batches import Batch, run_batch
from neuralucb.sweeps.store import Store, as_table

__all__ = ["Event", "cores", "run_here", "run_in_processes"]

ATTEMPTS = 2
"""A batch whose process dies is tried again this often in all; a batch that fails by itself is not."""


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


def run_here(batches: Sequence[Batch], store: Store, tell: Listener) -> None:
    """All batches in this process; on a GPU each is one large program."""
    for batch in batches:
        if not store.missing([batch]):  # another process has done it meanwhile
            continue
        tell(_attempt(batch, store, 0, tell))


def run_in_processes(batches: Sequence[Batch], store: Store, tell: Listener, *, workers: int) -> None:
    """Batches over processes, one core each. A process that dies costs its batch, which is tried again."""
    context = get_context("spawn")
    left, tries = deque(batches), dict.fromkeys((batch.name for batch in batches), 0)
    while left:
        events, places = context.SimpleQueue(), context.SimpleQueue()
        for place in range(workers):
            places.put(place)
        listening = threading.Thread(target=_listen, args=(events, tell), daemon=True)
        listening.start()
        arguments = (events, places, store, os.getpid())
        with ProcessPoolExecutor(workers, context, initializer=_start, initargs=arguments) as pool:
            died = _lead(pool, left, tries, workers)
        events.put(None)
        listening.join(timeout=10)
        for batch in died:
            if tries[batch.name] < ATTEMPTS:
                left.append(batch)
            else:
                reason = f"its process died {ATTEMPTS} times; is there enough memory?"
                store.note_failure(batch, reason)
                tell(Event(0, batch, 0, 1, failure=reason))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _lead(pool: ProcessPoolExecutor, left: deque[Batch], tries: dict[str, int], workers: int) -> list[Batch]:
    """Hand out batches until all are done or a process dies; returns those that were being worked on then."""
    running: dict[Future[None], Batch] = {}
    try:
        while left or running:
            while left and len(running) < workers:
                batch = left.popleft()
                tries[batch.name] += 1
                running[pool.submit(_work, batch)] = batch
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
                del running[future]
    except BrokenProcessPool:
        return list(running.values())
    return []


def _listen(events: Any, tell: Listener) -> None:
    while (event := events.get()) is not None:
        tell(event)


class _Worker:
    """What a worker process knows of its place; set once, when it starts."""

    events: Any
    place: int
    store: Store


def _start(events: Any, places: Any, store: Store, parent: int) -> None:
    _Worker.events, _Worker.place, _Worker.store = events, places.get(), store
    if hasattr(os, "sched_setaffinity"):
        mine = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {mine[_Worker.place % len(mine)]})
    jax.config.update("jax_platforms", "cpu")
    keep_compiled()
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent: int) -> None:
    """An orphan must not go on: whoever resumes would compete with it."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _work(batch: Batch) -> None:
    if not _Worker.store.missing([batch]):
        return
    _Worker.events.put(_attempt(batch, _Worker.store, _Worker.place, _Worker.events.put))


def _attempt(batch: Batch, store: Store, place: int, tell: Listener) -> Event:
    """Run a batch and keep it. What fails for a reason of its own is noted; a full disk is for the caller."""
    whole = len(batch.runs) * batch.rounds
    tell(Event(place, batch, 0, whole))
    try:
        outcome = run_batch(batch, lambda done, total: tell(Event(place, batch, done, total)))
    except (ValueError, RuntimeError, MemoryError) as problem:
        reason = f"{type(problem).__name__}: {problem}"
        store.note_failure(batch, reason)
        return Event(place, batch, whole, whole, failure=reason)
    store.write(batch, as_table(batch, outcome))
    return Event(place, batch, whole, whole, regret=float(outcome.final_regret.mean()))
