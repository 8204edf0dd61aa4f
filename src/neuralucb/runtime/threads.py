"""Threads: work spread over the cores, since NumPy and XLA release Python's lock, and how many JAX has of its own."""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import TypeVar

from neuralucb.runtime.progress import Progress

__all__ = ["cores", "in_order", "spread", "start_jax_with"]

Piece = TypeVar("Piece")
Made = TypeVar("Made")


def spread(work: Callable[[Piece], None], pieces: Sequence[Piece], progress: Progress | None = None) -> None:
    """Do `work` on every piece, with one thread per core; the first error, or Ctrl-C, ends it."""
    with ThreadPoolExecutor(min(cores(), len(pieces)) or 1) as pool:
        futures = [pool.submit(work, piece) for piece in pieces]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                if progress is not None:
                    progress(done, len(pieces))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def in_order(works: Sequence[Callable[[], Made]]) -> Generator[Made, None, None]:
    """What each work returns, in their order; the next ones, one per core, are done meanwhile in threads."""
    if len(works) == 1:
        yield works[0]()
        return
    queue = deque(works)
    with ThreadPoolExecutor(min(cores(), len(works)) or 1) as pool:
        futures = deque(pool.submit(queue.popleft()) for _ in range(min(cores(), len(works))))
        try:
            while futures:
                made = futures.popleft().result()
                if queue:
                    futures.append(pool.submit(queue.popleft()))
                yield made
        except BaseException:  # the caller's too, who leaves before the end
            pool.shutdown(cancel_futures=True)
            raise


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_jax_with(threads: int) -> None:
    """Start JAX while only so many cores are allowed, so that each of its thread pools has as many threads.

    Afterwards all cores are allowed again: two processes whose threads stay on the first cores would halve each other.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    import jax

    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:threads])
    jax.jit(lambda number: number + 1)(0)  # the pool that compiles is made by the first compilation
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(int(thread), allowed)
