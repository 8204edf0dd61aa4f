"""Progress of experiments: a bar per algorithm, and the time left.

A run with J = t slows down as it goes, so a straight line would promise too little.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from neuralucb.experiments.plans import Plan
from neuralucb.runtime.progress import Progress as Meter
from neuralucb.sweeps.batches import Batch
from neuralucb.sweeps.workers import Event

__all__ = ["Pace", "Watcher", "download_bar", "fit_end", "meters", "watching"]

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


LINE_SECONDS = 10
"""How often a line is printed where there is no terminal, at most, when a batch has ended."""


QUIET_SECONDS = 60
"""And how often while one runs."""


class Watcher:
    """Counts what workers tell."""

    def __init__(self, batches: Sequence[Batch], seconds: Mapping[str, float]) -> None:
        self.seconds, self.whole = seconds, sum(seconds.values())
        self.runs = sum(len(batch.runs) for batch in batches)
        self._share: dict[str, float] = {}
        self.finished = 0
        self.failures: list[str] = []

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        self._share[event.batch.name] = event.done / event.whole
        if event.regret is not None:
            self.finished += len(event.batch.runs)
        if event.failure is not None:
            self.failures.append(f"{event.batch.algorithm} on {event.batch.problem}: {event.failure}")

    @property
    def done(self) -> float:
        """Estimated seconds of what is done: a round of one batch may cost a thousand of another."""
        return sum(share * self.seconds[name] for name, share in self._share.items())


@contextmanager
def watching(
    batches: Sequence[Batch], seconds: Mapping[str, float], console: Console
) -> Iterator[tuple[Watcher, Callable[[Event], None]]]:
    """A watcher, and whom to tell.

    seconds  about how long each batch will take, by its name
    """
    watcher = Watcher(batches, seconds)
    if console.is_terminal:
        with _bars(watcher, console) as tell:
            yield watcher, tell
    else:
        yield watcher, _lines(watcher, console)


@contextmanager
def _bars(watcher: Watcher, console: Console) -> Iterator[Callable[[Event], None]]:
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        pace = Pace()
        overall = bars.add_task("runs", total=watcher.runs, words="compiling")
        workers: dict[int, Any] = {}

        def tell(event: Event) -> None:
            watcher.hear(event)
            if event.worker not in workers:
                workers[event.worker] = bars.add_task("", total=None, words="")
            title = f"{event.batch.algorithm} {event.batch.problem}"
            words = f"regret {event.regret:.0f}" if event.regret is not None else event.failure or ""
            bars.update(workers[event.worker], description=title, completed=event.done, total=event.whole, words=words)
            left = pace.left(watcher.done, watcher.whole) if watcher.done else "compiling"
            bars.update(overall, completed=watcher.finished, words=left)

        yield tell


def _lines(watcher: Watcher, console: Console) -> Callable[[Event], None]:
    pace, last = Pace(), [0.0]

    def tell(event: Event) -> None:
        watcher.hear(event)
        since = time.monotonic() - last[0]
        if since >= (LINE_SECONDS if event.regret is not None else QUIET_SECONDS):
            last[0] = time.monotonic()
            left = pace.left(watcher.done, watcher.whole)
            how = f"mean regret {event.regret:.0f}" if event.regret is not None else f"{event.done / event.whole:.0%}"
            what = f"{event.batch.algorithm} on {event.batch.problem}, {how}"
            console.print(f"{watcher.finished} of {watcher.runs} runs, {left}; {what}", soft_wrap=True)

    return tell
