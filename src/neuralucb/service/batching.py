"""Requests that come together are handled together: one thread takes all that wait, however many, in one call.

A batch begins when as many wait as batches had of late, or a millisecond after one might have begun. So a request
alone waits for nobody, batches grow with the load, and shrink with it; one at a time costs three times as much as
sixteen together. It begins after what the event loop has to do at that moment, such as to send the answers of the batch
before, so that the two threads do not fight for Python's lock.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from neuralucb.service.errors import ServiceError

__all__ = ["Batcher"]

PATIENCE = 0.001
"""Seconds for which a request waits for others, at most."""

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
        """whether a batch is being handled, and whether the event loop will begin the next one at once"""
        self._usual = 1
        """items of a batch of late"""
        self._timer: asyncio.TimerHandle | None = None
        """begins the next one at the latest"""
        self._closing = False
        self.batches: int = 0
        self.handled: int = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Items that nobody has begun to handle."""
        return len(self._waiting)

    @property
    def thread(self) -> int | None:
        """As the system numbers it."""
        return self._thread.native_id

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
        """Begin a batch when it is time, unless one is under way."""
        if self._is_busy or self._is_due:
            return
        if len(self._waiting) >= self._usual:
            self._is_due = True
            loop.call_soon(self._begin)
        elif self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_due = False
        if self._waiting and not self._is_busy:
            count = min(self._most, len(self._waiting))
            self._is_busy, self._usual = True, max(count, (self._usual + count) // 2)
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
