"""Progress of a long computation, reported as plain numbers."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Meter", "Progress", "part"]

Progress: TypeAlias = Callable[[int, int], None]
"""pieces done, pieces in total"""

Meter: TypeAlias = Callable[[str], Progress | None]
"""a name for the work -> where to report its progress"""


def part(progress: Progress | None, index: int, *, of: int) -> Progress | None:
    """The progress of one stage of several, reported as progress of all of them; all stages count the same."""
    if progress is None:
        return None
    return lambda done, total: progress(index * total + done, of * total)
