"""Work in pieces, spread over the cores: NumPy releases Python's lock while it computes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from neuralucb.runtime.progress import Progress

__all__ = ["cores", "spread"]

Piece = TypeVar("Piece")


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


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
