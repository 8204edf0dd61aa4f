"""Work cut into pieces, spread over the cores: NumPy leaves Python's lock while it computes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeAlias, TypeVar

from neuralucb.experiments.program import cores

__all__ = ["Meter", "Progress", "part", "spread"]

Piece = TypeVar("Piece")

Progress: TypeAlias = Callable[[int, int], None]
"""pieces done, pieces in all"""
Meter: TypeAlias = Callable[[str], Progress | None]
"""what is done -> progress of it"""


def spread(work: Callable[[Piece], None], pieces: Sequence[Piece], progress: Progress | None = None) -> None:
    """Do `work` on every piece, one thread a core; the first error, or Ctrl-C, ends it."""
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


def part(progress: Progress | None, index: int, *, of: int) -> Progress | None:
    """The progress of one stage of several, told as progress of all of them; every stage counts alike."""
    if progress is None:
        return None
    return lambda done, whole: progress(index * whole + done, of * whole)
