"""Threads that take turns stay on one core, whose cache has what they share; which core is looked at now and then.

Python's lock lets one thread run at a time. The event loop parses what the deciding thread reads and frees: half a
thousand numbers as objects per request, which another core would have to fetch line by line, and give back. On two
cores the same work takes twice as long, and the second core gains nothing. JAX's threads, lessons, and what is rare run
where the system likes.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["OneCore", "allowed_cores", "anywhere"]

MARGIN = 0.25
"""How much more of its time another core must have left before the threads move there: moving has a price."""

TICKS = Path("/proc/stat")
"""Where Linux counts what each core does."""

IDLE, KINDS = slice(3, 5), 8
"""Of the ticks of a core: idle, and waiting for a disk; the first eight kinds are all its time."""


class _Ticks(NamedTuple):
    idle: float
    all: float


class OneCore:
    """Keeps threads together where Linux can, and this process may use several cores.

    threads  as the system numbers them
    """

    def __init__(self, threads: Sequence[int]) -> None:
        self._threads = tuple(threads)
        self._allowed = allowed_cores()
        self.core: int | None = None
        """where they are; None: where the system likes"""
        self._ticks, self._seconds = self._read(), self._ran()

    def look(self) -> None:
        """Move to the core that others have left the most time since the last look, if it is clearly better."""
        if len(self._allowed) < 2:
            return
        (before, ran), self._ticks, self._seconds = (self._ticks, self._seconds), self._read(), self._ran()
        left: dict[int, float] = {}
        for core in self._ticks.keys() & before.keys():
            ticks = max(1.0, self._ticks[core].all - before[core].all)
            own = (self._seconds - ran) * os.sysconf("SC_CLK_TCK") if core == self.core else 0.0
            left[core] = (self._ticks[core].idle - before[core].idle + own) / ticks
        if not left:
            return
        best = max(left, key=left.__getitem__)
        if self.core is None or left[best] > left.get(self.core, 0.0) + MARGIN:
            self._move(best)

    def _move(self, core: int) -> None:
        try:
            for thread in self._threads:
                os.sched_setaffinity(thread, {core})
            self.core = core
        except OSError:  # the administrator has taken the core away
            self._allowed = frozenset()

    def _ran(self) -> float:
        """Seconds that the threads have run."""
        nanoseconds = 0
        for thread in self._threads if len(self._allowed) > 1 else ():
            try:
                nanoseconds += int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])
            except (OSError, IndexError):  # a kernel that does not count
                return 0.0
        return 1e-9 * nanoseconds

    def _read(self) -> dict[int, _Ticks]:
        """Of every core that may be used; nothing where the system does not say."""
        try:
            lines = TICKS.read_text().splitlines() if len(self._allowed) > 1 else []
        except OSError:
            return {}
        found = {}
        for name, *numbers in (line.split() for line in lines if line.startswith("cpu") and line[3].isdigit()):
            if int(name[3:]) in self._allowed:
                ticks = [float(each) for each in numbers[:KINDS]]
                found[int(name[3:])] = _Ticks(sum(ticks[IDLE]), sum(ticks))
        return found


def anywhere(cores: frozenset[int]) -> None:
    """Let the thread that calls this run on all of these: threads inherit the one of whoever makes them."""
    if cores:
        with suppress(OSError):  # an administrator has taken some away
            os.sched_setaffinity(0, cores)


def allowed_cores() -> frozenset[int]:
    """Those on which the thread that calls this may run; none where the system does not let us choose."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else frozenset()
