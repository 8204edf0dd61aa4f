"""Requests that come together are handled together: a thread takes all that wait, however many, in one call.

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
    """Calls `handle(items)` in threads of its own, with up to `most` items; at most `queue` of them wait.

    `handle` returns one result per item; an exception among the results is raised for its item alone, one that it
    raises for all of them. With two threads, one can run compiled code while the other runs Python.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[Sequence[Item]], Sequence[Result | Exception]],
        *,
        most: int,
        queue: int,
        threads: int = 1,
    ) -> None:
        self._handle, self._most, self._queue = handle, most, queue
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._ready = threading.Semaphore(0)
        """counts calls of `submit_many` that no thread has answered by looking what waits"""
        self._closing = False
        self.batches: int = 0
        self.handled: int = 0
        self._threads = [threading.Thread(target=self._run, name=name, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

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
        for _ in range(-(-len(items) // self._most)):  # a thread for each part
            self._ready.release()
        return [future for _, future in pairs]

    def close(self) -> None:
        """Handle what waits, and stop."""
        self._closing = True
        self._ready.release(len(self._threads))
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            self._ready.acquire()
            while taken := self._take():
                self._handle_some(taken)
            if self._closing:
                return

    def _take(self) -> "list[tuple[Item, asyncio.Future[Result]]]":
        taken: list[tuple[Item, asyncio.Future[Result]]] = []
        with suppress(IndexError):  # another thread has taken the last
            while len(taken) < self._most:
                taken.append(self._waiting.popleft())
        return taken

    def _handle_some(self, taken: "list[tuple[Item, asyncio.Future[Result]]]") -> None:
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
