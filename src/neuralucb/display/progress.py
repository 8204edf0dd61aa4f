"""Progress of experiments: a bar per algorithm, and the time left.

A run with J = t slows down as it goes, so a straight line would promise too little.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from neuralucb.experiments.plans import Plan
from neuralucb.runtime.progress import Progress as Meter
from neuralucb.runtime.words import counted

__all__ = ["Pace", "download_bar", "fit_end", "meters"]

MOST_SEEN = 400
"""Beyond it every other point is forgotten: the curve stays, and a fit stays cheap."""


FEWEST_SEEN = 4
"""Points before the first estimate."""


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
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"


@contextmanager
def meters(plan: Plan, console: Console, *, quiet: bool) -> Iterator[Callable[[str], Meter | None]]:
    """Show the progress of a plan: a bar per algorithm; without a terminal one line each; nothing if quiet.

    Yields what `play` takes as `progress`.
    """
    what = f"{counted(plan.rounds, 'round')} × {counted(len(plan.seeds), 'seed')}"
    if quiet:
        yield lambda name: None
        return
    if not console.is_terminal:
        yield lambda name: console.print(f"{name} on {plan.problem.name}: {what}")
        return
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as bars:

        def meter(name: str) -> Meter:
            pace = Pace()
            task = bars.add_task(f"{plan.problem.name} {name}", total=None, left="compiling")

            def report(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total, left=pace.left(done, total))

            return report

        yield meter


@contextmanager
def download_bar(name: str, console: Console) -> Iterator[Callable[[int], None]]:
    """Show a download; yields a function to call with the bytes downloaded so far. Their total is not known."""
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(f"downloading {name}", total=None)
        yield lambda done: bars.update(task, completed=done)


def fit_end(share: np.ndarray, elapsed: np.ndarray, end: float) -> float:
    """Elapsed time at the share `end`: elapsed = a·share + b·share² by least squares, a and b not negative."""
    terms = np.stack([share, share**2], axis=1)
    linear, quadratic = np.linalg.lstsq(terms, elapsed, rcond=None)[0]
    if quadratic < 0 or linear < 0:
        kept = 0 if quadratic < 0 else 1
        only = terms[:, kept] @ elapsed / (terms[:, kept] @ terms[:, kept])
        return float(only * end ** (kept + 1))
    return float(linear * end + quadratic * end**2)
