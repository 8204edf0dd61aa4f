"""A lock of one process: in a fork of it, taking the lock is refused at once.

A fork has none of its parent's threads: JAX would wait for its own for ever, and a lock that another thread held at the
moment of the fork is never released.
"""

import os
import threading

from neuralucb.runtime.errors import StorageError

__all__ = ["ProcessLock"]


class ProcessLock:
    """A lock that its thread may take again, and that a fork may not take."""

    def __init__(self) -> None:
        self._lock, self._owner = threading.RLock(), os.getpid()

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that made the lock."""
        return os.getpid() != self._owner

    def check(self) -> None:
        """Raise StorageError in a fork."""
        if self.is_inherited:
            raise StorageError(
                f"the bandit belongs to process {self._owner}, of which this one, {os.getpid()}, is a fork; make the "
                "bandit after the fork, with a folder of its own, or start processes with the method 'spawn'."
            )

    def take(self, *, wait: bool = True) -> bool:
        """Take the lock; without waiting, only if no other thread has it. Returns whether it was taken."""
        self.check()
        return self._lock.acquire(blocking=wait)

    def release(self) -> None:
        """Give back what was taken."""
        self._lock.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.release()
