"""Progress of a sweep: overall and a worker, regret so far, time left; lines when nobody watches."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from neuralucb.experiments.pace import Pace
from neuralucb.sweeps.batches import Batch
from neuralucb.sweeps.local import Event

__all__ = ["Watcher", "watching"]

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
