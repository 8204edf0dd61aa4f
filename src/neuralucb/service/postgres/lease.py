"""Who learns: one process, elected by an advisory lock. Every write is fenced by the epoch of the election.

The lock belongs to a connection. If that dies while the process lives, another process may be elected; so a learner
writes only in transactions in which the epoch with which it was elected is still the newest, and holds that row until
it has committed. A learner that was frozen, or whose network swallows packets, is not seen for `LEASE` seconds; its
connection is then ended by whoever waits, which frees the lock.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from neuralucb.runtime.errors import StorageError
from neuralucb.service.postgres.link import Link
from neuralucb.service.postgres.schema import LOCKS

__all__ = ["DeposedError", "Lease"]

LEASE = 10.0
"""Seconds without a sign of life after which a learner's connection is ended."""

BEAT = 1.0
"""Seconds between two signs of life."""

TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_locks, learner
    WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = %s AND objid = (hashtext(current_schema())::bigint & 4294967295)::oid AND pid <> pg_backend_pid()
      AND seen_at < now() - make_interval(secs => %s)
"""


class DeposedError(Exception):
    """Another learner was elected, or the model was changed underneath: what this one computed must not be written."""


class Lease:
    """The right to learn, held or sought by one process."""

    def __init__(self, link: Link, holder: str) -> None:
        self.epoch: int | None = None
        """of the election that this process won; None while it does not learn"""
        self._link = link
        self._holder = holder
        self._connection = -1
        self._lost = threading.Event()
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def elect(self) -> bool:
        """Try to become the learner; whether it worked."""
        self.resign()
        with self._link.transaction() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))", (LOCKS["learner"],))
            if not cursor.fetchone()[0]:
                cursor.execute(TERMINATE, (LOCKS["learner"], LEASE))
                return False
            cursor.execute(
                "UPDATE learner SET epoch = epoch + 1, holder = %s, since = now(), seen_at = now() RETURNING epoch",
                (self._holder,),
            )
            epoch = int(cursor.fetchone()[0])
        self._connection, self.epoch = self._link.connections, epoch
        self._lost, self._ended = threading.Event(), threading.Event()
        beat = (epoch, self._lost, self._ended)
        self._beating = threading.Thread(target=self._beat, args=beat, name="learner's heartbeat", daemon=True)
        self._beating.start()
        return True

    @contextmanager
    def writing(self, *, patience: float | None = None) -> Iterator[Any]:
        """A cursor in a transaction that is committed only if this process is still the learner.

        Raises:
            DeposedError: It is not.
            StorageError: The database cannot be reached; the lock is lost then, too.
        """
        if self.epoch is None or self._lost.is_set():
            raise DeposedError
        with self._link.transaction(patience=patience) as cursor:
            if self._link.connections != self._connection:
                raise DeposedError
            fence(cursor, self.epoch)
            yield cursor

    def resign(self) -> None:
        """Let another process learn."""
        epoch, self.epoch = self.epoch, None
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
            self._beating = None
        if epoch is not None and self._link.connections == self._connection:
            with suppress(StorageError), self._link.transaction() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(current_schema()))", (LOCKS["learner"],))

    def _beat(self, epoch: int, lost: threading.Event, ended: threading.Event) -> None:
        """Show signs of life, also during a lesson."""
        while not ended.wait(BEAT):
            try:
                with self._link.transaction() as cursor:
                    cursor.execute("UPDATE learner SET seen_at = now() WHERE epoch = %s", (epoch,))
                    if cursor.rowcount:
                        continue
            except StorageError:
                pass
            lost.set()
            return


def fence(cursor: Any, epoch: int) -> None:
    """Refuse to go on unless the epoch is the newest, and keep it so until the transaction ends."""
    cursor.execute("SELECT 1 FROM learner WHERE epoch = %s FOR SHARE", (epoch,))
    if cursor.fetchone() is None:
        raise DeposedError
