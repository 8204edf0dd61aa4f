"""Time left. A run with J = t slows down as it goes, so a straight line would promise too little."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from neuralucb.experiments.plans import Plan
from neuralucb.runtime.progress import Progress as Meter

__all__ = ["Pace", "meters"]

MOST_SEEN = 400
"""Beyond it every other one is forgotten: the curve stays, and a fit stays cheap."""


class Pace:
    """Fits elapsed = a·done + b·done² to what was seen so far, a and b not negative."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.seen: list[tuple[float, float]] = []

    def left(self, done: float, whole: float) -> str:
        """Time left in words, from what is done and what there is to do, such as rounds."""
        now = time.perf_counter()
        if self.started is None:
            self.started = now
        self.seen.append((done / whole, now - self.started))
        if len(self.seen) > MOST_SEEN:
            self.seen = self.seen[:1] + self.seen[1::2]
        if done >= whole:
            return "done"
        if len(self.seen) < 4:
            return "estimating"
        share, elapsed = np.asarray(self.seen).T
        seconds = max(0.0, _at_end(share - share[0], elapsed, 1 - share[0]) - elapsed[-1])
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"


def _at_end(share: np.ndarray, elapsed: np.ndarray, end: float) -> float:
    """Elapsed time at the end, by least squares with both coefficients kept from going negative."""
    terms = np.stack([share, share**2], axis=1)
    linear, quadratic = np.linalg.lstsq(terms, elapsed, rcond=None)[0]
    if quadratic < 0 or linear < 0:
        kept = 0 if quadratic < 0 else 1
        only = terms[:, kept] @ elapsed / (terms[:, kept] @ terms[:, kept])
        return float(only * end ** (kept + 1))
    return float(linear * end + quadratic * end**2)


@contextmanager
def meters(plan: Plan, console: Console, *, quiet: bool) -> Iterator[Callable[[str], Meter | None]]:
    """A bar for each algorithm, with rounds done and time left; a line each when nobody watches."""
    what = f"{plan.rounds} rounds × {len(plan.seeds)} seeds"
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

            def report(done: int, whole: int) -> None:
                bars.update(task, completed=done, total=whole, left=pace.left(done, whole))

            return report

        yield meter
