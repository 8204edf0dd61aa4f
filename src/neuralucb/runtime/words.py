"""Numbers in words: one seed, two seeds; several names in a row."""

from collections.abc import Sequence

__all__ = ["counted", "listed"]


def counted(number: int, noun: str) -> str:
    """A number of things: "1 seed", "10 seeds", "2 batches"."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{number} {noun}{ending}"


def listed(names: Sequence[str]) -> str:
    """Names in a row: "h1", "h1 and h2", "h1, h2 and h3"."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
