"""Progress of a long computation, reported as plain numbers.

Functions for users take one kind of `progress`: None for silence, True for a line on stderr, or a function that is told
the stage, how much of it is done and how much it is in total; `as_meter` reads it.
"""

import inspect
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeAlias

from neuralucb.runtime.errors import InputError

__all__ = ["Meter", "Progress", "Told", "as_meter", "part", "stderr_meter"]

Progress: TypeAlias = Callable[[int, int], None]
"""pieces done, pieces in total"""

Meter: TypeAlias = Callable[[str], Progress | None]
"""a name for the work -> where to report its progress"""

Told: TypeAlias = Callable[[str, int, int], Any]
"""What users give as `progress`: the name of a stage, such as "lin-ucb on h1"; pieces of it done; pieces in total."""

LINE_SECONDS = 10
"""The least time between two lines where stderr is not a terminal."""

REDRAW_SECONDS = 0.1
"""And between two states of the line where it is one."""

BAR = 24
"""Letters of a whole bar."""


def as_meter(progress: bool | Told | Callable[..., Any] | None) -> Meter | None:
    """What `progress=` means.

    Args:
        progress: None or False for nothing, True for a line on stderr, or a function of stage, done and total. What
            version 0.1 took is still read: a function of done and total, or one from a stage to such a function.

    Returns:
        A meter; None if nothing is to be told.

    Raises:
        InputError: If it is none of these.

    Example:
        >>> meter = as_meter(lambda stage, done, total: print(f"{stage}: {done} of {total}"))
        >>> meter("lin-ucb on h1")(10, 100)
        lin-ucb on h1: 10 of 100
    """
    if progress is None or progress is False:
        return None
    if progress is True:
        return stderr_meter(sys.stderr)
    if not callable(progress):
        raise InputError(
            f"progress must be True, or a function of the stage, how much is done and how much it is, got {progress!r}."
        )
    told: Callable[..., Any] = progress
    arguments = _positional_arguments(told)
    if arguments == 1:
        return told
    if arguments == 2:
        return lambda stage: told
    return lambda stage: lambda done, total: told(stage, done, total)


def stderr_meter(file: TextIO) -> Meter:
    """A line per stage: redrawn in a terminal; elsewhere written now and then, and at the end of the stage."""
    redraws = file.isatty()

    def meter(stage: str) -> Progress:
        started = last = time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal last
            now, ended = time.monotonic(), done >= total
            if not ended and now - last < (REDRAW_SECONDS if redraws else LINE_SECONDS):
                return
            last = now
            share = done / total if total else 1.0
            line = f"{stage}: {share:4.0%}, {now - started:.0f} s"
            if redraws:
                bar = "█" * round(BAR * share) + "·" * (BAR - round(BAR * share))
                line = f"\r{bar} {line}\x1b[K"
            file.write(line + ("\n" if ended or not redraws else ""))
            file.flush()

        return report

    return meter


def part(progress: Progress | None, index: int, *, of: int) -> Progress | None:
    """The progress of one stage of several, reported as progress of all of them; all stages count the same."""
    if progress is None:
        return None
    return lambda done, total: progress(index * total + done, of * total)


def _positional_arguments(function: Callable[..., Any]) -> int:
    """How many arguments a function needs; 3 where that cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 3
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return 3
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len([each for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty])
