"""Progress of experiments: a bar per algorithm in a terminal, a line now and then elsewhere, and the time left.

A run with J = t slows down as it goes, so a straight line would promise too little.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress as Bars,
    TextColumn,
    TimeElapsedColumn,
)

from neuralucb.experiments.plans import Plan
from neuralucb.runtime.progress import Meter, Progress
from neuralucb.runtime.words import counted

if TYPE_CHECKING:
    from neuralucb.logs import Chunk, Log  # for types: it imports pyarrow, which most commands do not need

__all__ = ["Lines", "Pace", "download_bar", "fit_end", "line_pause", "meters", "reading"]

MOST_SEEN = 400
"""Beyond it every other point is forgotten: the curve stays, and a fit stays cheap."""

FEWEST_SEEN = 4
"""Points before the first estimate."""

FIRST_SECONDS, MOST_SECONDS, GROWTH = 10.0, 60.0, 0.1
"""Between two lines in a log: a tenth of the time that has passed, but at least ten seconds and at most a minute."""

SELDOM = 0.2
"""Seconds between two points that an estimate uses, where work is reported in very small pieces."""


class Pace:
    """Estimates the time left from how long the work took so far."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.seen: list[tuple[float, float]] = []

    def left(self, done: float, total: float) -> str:
        """Time left in words, given how much of the work (rounds, say) is done."""
        now = time.perf_counter()
        if self.started is None:
            self.started = now
        self.seen.append((done / total, now - self.started))
        if len(self.seen) > MOST_SEEN:
            self.seen = self.seen[:1] + self.seen[1::2]
        if done >= total:
            return "done"
        if len(self.seen) < FEWEST_SEEN:
            return "estimating"
        share, elapsed = np.asarray(self.seen).T
        seconds = max(0.0, fit_end(share - share[0], elapsed, 1 - share[0]) - elapsed[-1])
        return f"{_clock(seconds)} left"


class Lines:
    """Progress in a log: one line when work begins, and one now and then while it goes on, with the time left."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._lock, self._over = threading.Lock(), threading.Event()
        self._name, self._words, self._begun = "", "", 0.0

    def begin(self, name: str, *, what: str = "", unit: str = "") -> Progress:
        """Print that work begins; returns where its progress is reported, in these units or else as a share."""
        self._begun = time.monotonic()
        self._print(f"{name}: {what}" if what else f"{name} …")
        return self.go_on(name, unit=unit)

    def go_on(self, name: str, *, unit: str = "") -> Progress:
        """The same with the next stage of work that has begun: nothing is printed now."""
        pace, noted = Pace(), 0.0
        with self._lock:
            self._name, self._words = name, ""

        def report(done: int, total: int) -> None:
            nonlocal noted
            now = time.monotonic()
            if now - noted < SELDOM and done < total:
                return
            noted = now
            share = f"{done} of {total} {unit}" if unit else f"{done / total:.0%}"
            words = f"{share}, {pace.left(done, total)}, "
            with self._lock:
                self._words = words

        return report

    def in_words(self) -> str:
        """The work that goes on, how much of it is done, the time left, and the time it took so far."""
        with self._lock:
            return f"{self._name}: {self._words}{_clock(time.monotonic() - self._begun)} so far"

    @contextmanager
    def running(self) -> Iterator["Lines"]:
        """Print lines as long as this lasts, whether or not progress is reported."""
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        try:
            yield self
        finally:
            self._over.set()
            watcher.join()

    def _watch(self) -> None:
        started = time.monotonic()
        pause = FIRST_SECONDS
        while not self._over.wait(pause):
            if self._name:
                self._print(self.in_words())
            pause = line_pause(time.monotonic() - started)

    def _print(self, line: str) -> None:
        self.console.print(line, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def meters(plan: Plan, console: Console, *, quiet: bool) -> Iterator[Meter]:
    """Show the progress of a plan: a bar per algorithm; without a terminal lines, and nothing if quiet.

    Yields what `play` takes as `progress`.
    """
    if not console.is_terminal:
        if quiet:
            yield lambda name: None
            return
        what = f"{counted(plan.rounds, 'round')} × {counted(len(plan.seeds), 'seed')}"
        with Lines(console).running() as lines:
            yield lambda name: lines.begin(f"{name} on {plan.problem.name}", what=what, unit="rounds")
        return
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bars(*columns, console=console) as bars:

        def meter(name: str) -> Progress:
            pace = Pace()
            task = bars.add_task(f"{plan.problem.name} {name}", total=None, left="compiling")

            def report(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total, left=pace.left(done, total))

            return report

        yield meter


@contextmanager
def reading(log: "Log", what: str, console: Console, *, quiet: bool) -> Iterator["Log"]:
    """Show work on a log; yields the log to read, of which passes are counted. Without a terminal, nothing if quiet.

    A log is read several times, and between two times a policy is trained: how often, and for how long, is not known.
    """
    name = f"{what} {log.path}"
    if console.is_terminal:
        with console.status(name):
            yield log
        return
    if quiet:
        yield log
        return
    with Lines(console).running() as lines:
        lines.begin(name, what=counted(log.decisions, "decision"))
        passes = 0

        def chunks() -> "Iterator[Chunk]":
            nonlocal passes
            passes += 1
            report, read = lines.go_on(f"{name}, pass {passes}", unit="decisions"), 0
            for chunk in log.chunks():
                yield chunk
                read += len(chunk.line)
                report(read, max(read, log.decisions))
            lines.go_on(f"{name}, computing")

        yield log._replace(chunks=chunks)


@contextmanager
def download_bar(name: str, console: Console) -> Iterator[Callable[[int], None]]:
    """Show a download; yields a function to call with the bytes downloaded so far. Their total is not known."""
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(f"downloading {name}", total=None)
        yield lambda done: bars.update(task, completed=done)


def line_pause(passed: float) -> float:
    """Seconds between two lines in a log, after work of so many seconds."""
    return min(MOST_SECONDS, max(FIRST_SECONDS, GROWTH * passed))


def fit_end(share: np.ndarray, elapsed: np.ndarray, end: float) -> float:
    """Elapsed time at the share `end`: elapsed = a·share + b·share² by least squares, a and b not negative."""
    terms = np.stack([share, share**2], axis=1)
    linear, quadratic = np.linalg.lstsq(terms, elapsed, rcond=None)[0]
    if quadratic < 0 or linear < 0:
        kept = 0 if quadratic < 0 else 1
        only = terms[:, kept] @ elapsed / (terms[:, kept] @ terms[:, kept])
        return float(only * end ** (kept + 1))
    return float(linear * end + quadratic * end**2)


def _clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
