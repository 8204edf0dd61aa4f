"""One connection to PostgreSQL that comes back by itself: outages are StorageError at once, attempts back off."""

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.service.postgres.address import Address

try:
    import psycopg
except ImportError:  # pragma: no cover
    raise InputError("postgresql:// needs psycopg: pip install 'neuralucb[postgres]'.") from None

__all__ = ["PATIENCE", "Link"]

Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds that one transaction may take before its connection is given up: a network that swallows packets is not
noticed otherwise."""

SHORTEST, LONGEST = 0.05, 2.0
"""Seconds between two attempts to connect; doubled after every failure."""

OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}
"""Of the connection, unless the address sets others."""

SESSION = """
    SET search_path TO {schema}, pg_catalog;
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 2
"""
"""The server, too, notices within seconds that a client is gone, and releases its locks."""


class Link:
    """A connection that is made when it is needed and made again when it is lost. One thread at a time may use it."""

    def __init__(self, address: Address, use: str, *, patience: float | None = None) -> None:
        self.address: Address = address
        self._use = use
        """what the database's administrator sees as `application_name`"""
        self._patience = PATIENCE if patience is None else patience
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._failure = ""
        self.failed_at: float = float("-inf")
        """when an attempt to connect failed last, by the monotonic clock"""
        self._failures = 0
        self._retry_at = 0.0
        self._closed = False
        self._watchdog = _Watchdog()
        self.connections: int = 0
        """made so far: whoever keeps something in the session looks whether this has changed"""

    def run(self, work: Callable[[Any], Result], *, patience: float | None = None) -> Result:
        """Do the work in one transaction, given a cursor; all of it is committed when this returns.

        It is tried twice where the connection was lost, even while committing, and after a deadlock: it must be
        idempotent.

        Raises:
            StorageError: The database cannot be reached, or does not answer.
        """
        with self._lock:
            for is_last in (False, True):
                try:
                    with self.transaction(patience=patience) as cursor:
                        return work(cursor)
                except StorageError:
                    if is_last or self._failures:
                        raise
                except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                    if is_last:
                        raise StorageError(f"{self.address.shown} is too busy: a deadlock; try again.") from None
            raise AssertionError("unreachable")

    @contextmanager
    def transaction(self, *, patience: float | None = None) -> Iterator[Any]:
        """A cursor in a transaction of its own, tried once."""
        with self._lock:
            connection = self._connect()
            try:
                with (
                    self._watchdog.watch(connection, patience or self._patience),
                    connection.transaction(),
                    connection.cursor() as cursor,
                ):
                    yield cursor
            except psycopg.Error as problem:
                if isinstance(problem, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure):
                    raise
                self._drop()  # also where a standby server refuses to write: the next connection may be to the primary
                raise StorageError(f"{self.address.shown} failed: {_words(problem)}; try again.") from problem

    def notices(self, seconds: float) -> list[str]:
        """Wait for notifications of a channel that the session listens to, at most so long; their payloads."""
        with self._lock:
            connection = self._connect()
            try:
                with self._watchdog.watch(connection, seconds + self._patience):
                    return [each.payload for each in connection.notifies(timeout=seconds, stop_after=1)]
            except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
                self._drop()
                raise StorageError(f"{self.address.shown} failed: {_words(problem)}; try again.") from problem

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own; its rows."""

        def work(cursor: Any) -> list[tuple[Any, ...]]:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

        return self.run(work)

    def close(self) -> None:
        """Release the connection, also under the hands of a thread that waits for it."""
        self._closed = True
        connection = self._connection
        if connection is not None:
            _cut(connection)
        with self._lock:
            self._drop()
            self._watchdog.close()

    @property
    def failure(self) -> str | None:
        """Why the last attempt to connect failed; None while there is a connection."""
        return self._failure or None

    def _connect(self) -> "psycopg.Connection[Any]":
        if self._closed:
            raise StorageError(f"{self.address.shown} has been closed.")
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if time.monotonic() < self._retry_at:
            raise StorageError(f"{self.address.shown} cannot be reached: {self._failure}; try again in a moment.")
        try:
            self._connection = self._open()
        except psycopg.Error as problem:
            self._failures += 1
            wait = min(LONGEST, SHORTEST * 2**self._failures) * random.uniform(0.5, 1.0)
            self.failed_at = time.monotonic()
            self._retry_at = self.failed_at + wait
            self._failure = _words(problem)
            raise StorageError(
                f"{self.address.shown} cannot be reached: {self._failure}; try again in a moment."
            ) from problem
        self._failures, self._failure, self.connections = 0, "", self.connections + 1
        return self._connection

    def _open(self) -> "psycopg.Connection[Any]":
        given = psycopg.conninfo.conninfo_to_dict(self.address.conninfo)
        options: dict[str, Any] = {**OPTIONS, "application_name": f"neuralucb {self._use}", **given}
        connection = psycopg.connect(autocommit=True, **options)
        try:
            with self._watchdog.watch(connection, self._patience):
                connection.execute(SESSION.format(schema=self.address.schema).encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


class _Watchdog:
    """Cuts connections whose transaction takes too long: a thread that only sleeps while nothing is late."""

    def __init__(self) -> None:
        self._late = threading.Condition()
        self._deadline: float | None = None
        self._connection: Any = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def watch(self, connection: Any, seconds: float) -> Iterator[None]:
        """Cut the connection if the block takes longer."""
        with self._late:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="database watchdog", daemon=True)
                self._thread.start()
            before = self._connection, self._deadline
            self._connection, self._deadline = connection, time.monotonic() + seconds
        try:
            yield
        finally:
            with self._late:
                self._connection, self._deadline = before

    def close(self) -> None:
        """End the thread."""
        with self._late:
            self._closed = True
            self._late.notify()

    def _run(self) -> None:
        with self._late:
            while not self._closed:
                if self._deadline is not None and time.monotonic() > self._deadline:
                    _cut(self._connection)
                    self._deadline = None
                self._late.wait(0.25)


def _cut(connection: Any) -> None:
    """End a connection from another thread: the one that waits for an answer sees that there will be none."""
    with suppress(psycopg.Error, OSError, ValueError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def _words(problem: BaseException) -> str:
    """The first line of what libpq says, which may have several."""
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__
