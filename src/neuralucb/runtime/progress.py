"""How far a long piece of work is: told as plain numbers, shown by whoever watches."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Meter", "Progress", "part"]

Progress: TypeAlias = Callable[[int, int], None]
"""pieces done, pieces in all"""


Meter: TypeAlias = Callable[[str], Progress | None]
"""what is done -> progress of it"""


def part(progress: Progress | None, index: int, *, of: int) -> Progress | None:
    """The progress of one stage of several, told as progress of all of them; every stage counts alike."""
    if progress is None:
        return None
    return lambda done, whole: progress(index * whole + done, of * whole)
