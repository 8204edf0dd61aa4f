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


class Batcher(Generic[Item, Result]):
    """Calls `handle(items)` in a thread of its own, with up to `most` items; at most `queue` of them wait.

    `handle` returns one result per item; an exception among the results is raised for its item alone, one that it
    raises for all of them.
    """

    def __init__(
        self, name: str, handle: Callable[[Sequence[Item]], Sequence[Result | Exception]], *, most: int, queue: int
    ) -> None:
        self._handle, self._most, self._queue = handle, most, queue
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
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

    def submit(self, item: Item) -> "asyncio.Future[Result]":
        """The result of an item, later. Called from an event loop.

        Raises ServiceError if too many wait, or the service is stopping.
        """
        (future,) = self.submit_many([item])
        return future

    def submit_many(self, items: Sequence[Item]) -> "list[asyncio.Future[Result]]":
        """The same for many: all are accepted, or none; where nothing waits, also more than the queue holds."""
        if self._closing:
            raise ServiceError("unavailable", "the service is stopping; try again with another replica, or later.")
        if self._waiting and len(self._waiting) + len(items) > self._queue:
            raise ServiceError("overloaded", f"{len(self._waiting)} requests wait already; try again later.")
        loop = asyncio.get_running_loop()
        pairs: list[tuple[Item, asyncio.Future[Result]]] = [(item, loop.create_future()) for item in items]
        self._waiting.extend(pairs)
        self._ready.set()
        return [future for _, future in pairs]

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
        futures = [future for _, future in taken]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            futures[0].get_loop().call_soon_threadsafe(_deliver, futures, results)


def _deliver(futures: Sequence["asyncio.Future[Result]"], results: Sequence[Result | Exception]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():  # whoever asked has gone
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
