"""Requests that come together are handled together: one thread takes all that wait, however many, in one call.

Nobody is made to wait for company: while one batch is handled the next one gathers, so that batches grow with the load.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from neuralucb.service.errors import ServiceError

__all__ = ["Batcher"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Group(Generic[Result]):
    """The items of one caller."""

    __slots__ = ("future", "results", "size")

    def __init__(self, future: "asyncio.Future[list[Result | Exception]]", size: int) -> None:
        self.future, self.size = future, size
        self.results: list[Result | Exception] = []


class Batcher(Generic[Item, Result]):
    """Calls `handle(items)` in a thread of its own, with up to `most` items; at most `queue` of them wait.

    `handle` returns one result per item, of which some may be exceptions; one that it raises is the result of all.
    """

    def __init__(
        self, name: str, handle: Callable[[Sequence[Item]], Sequence[Result | Exception]], *, most: int, queue: int
    ) -> None:
        self._handle, self._most, self._queue = handle, most, queue
        self._waiting: deque[tuple[Item, _Group[Result]]] = deque()
        self._ready = threading.Event()
        self._closing = False
        self.batches: int = 0
        self.handled: int = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Items that nobody has begun to handle."""
        return len(self._waiting)

    def submit(self, items: Sequence[Item]) -> "asyncio.Future[list[Result | Exception]]":
        """The results of items, in order and later: all are accepted, or none. Called from an event loop.

        Where nothing waits, also more than the queue holds. Raises ServiceError if too many wait, or the service is
        stopping.
        """
        if self._closing:
            raise ServiceError("unavailable", "the service is stopping; try again with another replica, or later.")
        if self._waiting and len(self._waiting) + len(items) > self._queue:
            raise ServiceError("overloaded", f"{len(self._waiting)} requests wait already; try again later.")
        group: _Group[Result] = _Group(asyncio.get_running_loop().create_future(), len(items))
        self._waiting.extend([(item, group) for item in items])
        self._ready.set()
        return group.future

    def close(self) -> None:
        """Handle what waits, and stop."""
        self._closing = True
        self._ready.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._ready.wait()
            self._ready.clear()
            while self._waiting:
                self._handle_some()
            if self._closing:
                return

    def _handle_some(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
        try:
            results: Sequence[Result | Exception] = self._handle([item for item, _ in taken])
        except Exception as problem:
            results = [problem] * len(taken)
        self.batches += 1
        self.handled += len(taken)
        complete = []
        for (_, group), result in zip(taken, results, strict=True):
            group.results.append(result)
            if len(group.results) == group.size:
                complete.append(group)
        if complete:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                complete[0].future.get_loop().call_soon_threadsafe(_deliver, complete)


def _deliver(groups: "Sequence[_Group[Result]]") -> None:
    for group in groups:
        if not group.future.done():  # else whoever asked has gone
            group.future.set_result(group.results)
