"""Progress of a sweep: a bar per worker in a terminal, a line now and then elsewhere."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from neuralucb.display.progress import SELDOM, Pace, line_pause
from neuralucb.runtime.words import counted
from neuralucb.sweeps.batches import Batch
from neuralucb.sweeps.engine import Job
from neuralucb.sweeps.workers import Event

__all__ = ["SweepProgress", "sweep_progress"]


class SweepProgress:
    """Counts what the workers of a sweep have done."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.seconds: dict[str, float] = {}
        self.total: float = 0.0
        """estimated seconds of all batches; in a race, of those that are known so far"""
        self.runs: int = 0
        self.finished: int = 0
        """runs that are stored"""
        self._share: dict[str, float] = {}
        for batch in job.missing:
            self._expect(batch)

    def add(self, event: Event) -> None:
        """Count an event."""
        if event.batch.name not in self.seconds:  # of the next stage of a race
            self._expect(event.batch)
        self._share[event.batch.name] = event.done / event.total
        if event.regret is not None:
            self.finished += len(event.batch.runs)

    def _expect(self, batch: Batch) -> None:
        known = self._job.cost.of_batch.get(batch.name)
        seconds = float(batch.lane_rounds) if known is None else known
        self.seconds[batch.name] = seconds
        self.total += seconds
        self.runs += len(batch.runs)

    @property
    def raced(self) -> bool:
        """Whether more runs may follow than are known."""
        return bool(self._job.races)

    @property
    def done(self) -> float:
        """Estimated seconds of what is done: a round of one batch may take a thousand times as long as of another."""
        return sum(share * self.seconds[name] for name, share in self._share.items())


@contextmanager
def sweep_progress(job: Job, console: Console) -> Iterator[Callable[[Event], None]]:
    """Show the progress of a job; yields the listener for `run_sweep`."""
    progress = SweepProgress(job)
    if console.is_terminal:
        with _bars(progress, console) as listener:
            yield listener
    else:
        yield _lines(progress, console)


@contextmanager
def _bars(progress: SweepProgress, console: Console) -> Iterator[Callable[[Event], None]]:
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        pace = Pace()
        overall = bars.add_task("runs", total=progress.runs, words="compiling")
        workers: dict[int, Any] = {}

        def listener(event: Event) -> None:
            progress.add(event)
            if event.worker not in workers:
                workers[event.worker] = bars.add_task("", total=None, words="")
            title = f"{event.batch.algorithm} {event.batch.problem}"
            words = f"regret {event.regret:.0f}" if event.regret is not None else ""
            if event.failure is not None:
                words = event.failure.reason
            bars.update(workers[event.worker], description=title, completed=event.done, total=event.total, words=words)
            left = pace.left(progress.done, progress.total) if progress.done else "compiling"
            bars.update(overall, completed=progress.finished, words=left)

        yield listener


def _lines(progress: SweepProgress, console: Console) -> Callable[[Event], None]:
    pace, started = Pace(), time.monotonic()
    printed = noted = -math.inf
    left = "compiling"

    def listener(event: Event) -> None:
        nonlocal printed, noted, left
        progress.add(event)
        now = time.monotonic()
        if progress.done and now - noted >= SELDOM:
            noted, left = now, pace.left(progress.done, progress.total)
        if progress.finished == progress.runs and not progress.raced:
            left = "done"
        elif now - printed < line_pause(now - started):
            return
        printed = now
        how = f"mean regret {event.regret:.0f}" if event.regret is not None else f"{event.done / event.total:.0%}"
        what = f"{event.batch.algorithm} on {event.batch.problem}, {event.failure.reason if event.failure else how}"
        known = " known so far" if progress.raced else ""
        line = f"{progress.finished} of {counted(progress.runs, 'run')}{known}, {left}; {what}"
        console.print(line, soft_wrap=True, markup=False, highlight=False)

    return listener
