"""Requests that come together are handled together: one thread takes all that wait, however many, in one call.

Nobody is made to wait for company. But a batch begins only when the event loop has dealt with all that it was told so
far: with what clients had sent meanwhile, and with the answers of the batch before. So batches grow with the load, and
the two threads do not fight for Python's lock over every single request; one at a time costs three times as much.
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
        self._is_busy = self._is_due = False
        """whether a batch is being handled, and whether the event loop will look for the next one"""
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
        loop = asyncio.get_running_loop()
        group: _Group[Result] = _Group(loop.create_future(), len(items))
        self._waiting.extend([(item, group) for item in items])
        self._look_soon(loop)
        return group.future

    def close(self) -> None:
        """Handle what waits, and stop."""
        self._closing = True
        self._ready.set()
        self._thread.join()

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a batch when the loop has done what it has to do now, unless one is under way."""
        if not (self._is_busy or self._is_due):
            self._is_due = True
            loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._is_due = False
        if self._waiting:
            self._is_busy = True
            self._ready.set()

    def _run(self) -> None:
        while True:
            self._ready.wait()
            self._ready.clear()
            if self._closing:
                break
            self._handle_some()
        while self._waiting:
            self._handle_some()

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
        loop = taken[0][1].future.get_loop()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._deliver, loop, complete)

    def _deliver(self, loop: asyncio.AbstractEventLoop, groups: "Sequence[_Group[Result]]") -> None:
        for group in groups:
            if not group.future.done():  # else whoever asked has gone
                group.future.set_result(group.results)
        self._is_busy = False
        if self._waiting:
            self._look_soon(loop)  # after the answers, which are sent first
