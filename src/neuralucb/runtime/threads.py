"""Work in pieces, spread over the cores: NumPy and XLA release Python's lock while they compute."""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from neuralucb.runtime.progress import Progress

__all__ = ["cores", "in_order", "spread"]

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
