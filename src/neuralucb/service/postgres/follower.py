"""What a replica knows: the newest model and the settings, fetched when the database says that they changed."""

import threading
import time
from collections.abc import Callable
from typing import Any

from neuralucb.policy import Belief
from neuralucb.runtime.errors import StorageError
from neuralucb.service.postgres import models
from neuralucb.service.postgres.link import Link
from neuralucb.service.postgres.models import Served
from neuralucb.service.postgres.schema import read_settings
from neuralucb.service.store import Arm, Settings

__all__ = ["Follower", "read_arms"]

POLL = 0.5
"""Seconds between two looks, where no notification comes, or one was lost."""

SEEN = 5.0
"""Seconds between two signs of life of a process."""


class Follower:
    """Keeps `served` and `settings` up to date, in a thread of its own.

    prepare  called with settings before they are used, which may take a while
    """

    def __init__(
        self, link: Link, initial: Belief, name: str, prepare: Callable[[Settings], None] = lambda settings: None
    ) -> None:
        self.served: Served = Served(initial, 0, time.time())
        self.settings: Settings = Settings()
        self.arms: list[Arm] = []
        self._prepare = prepare
        self._link = link
        self._initial = initial
        self._name = name
        self._arms = -1
        """how often arms had changed when they were read"""
        self._listening = -1
        """on which of the link's connections"""
        self._seen_at = 0.0
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._changes = 0
        """how often this process changed settings or arms itself"""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem: str | None = None

    def start(self) -> None:
        """Fetch once, then follow."""
        self.fetch()
        self._thread = threading.Thread(target=self._run, name="model follower", daemon=True)
        self._thread.start()

    def fetch(self) -> None:
        """Look once."""

        def work(cursor: Any) -> tuple[Settings, int, list[Arm] | None, models.Model | None]:
            cursor.execute("SELECT settings, arms FROM bandit")
            stored, changes = cursor.fetchone()
            arms = read_arms(cursor) if changes != self._arms else None
            is_new = models.newest_version(cursor) > self.served.version
            model = models.newest(cursor, above=self.served.version) if is_new else None
            return read_settings(stored), changes, arms, model

        before = self._changes
        settings, changes, arms, model = self._link.run(work, patience=60.0)
        with self._lock:
            if before == self._changes:  # else what was read may be older than what this process has written since
                self._use(settings)
                if arms is not None:
                    self.arms, self._arms = arms, changes
        if model is not None:
            self.served = models.serve(self._initial, model)

    def change(self, link: Link, work: Callable[[Any], tuple[Any, Settings | None, list[Arm] | None]]) -> Any:
        """Change settings or arms in a transaction, and use at once what it returns of them beside its result."""
        with self._writing:  # so that what is written last is used last
            result, settings, arms = link.run(work)
            with self._lock:
                self._changes += 1
                if settings is not None:
                    self._use(settings)
                if arms is not None:
                    self.arms = arms
        return result

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._link.close()
        if self._thread is not None:
            self._thread.join()

    def _use(self, settings: Settings) -> None:
        """Take over settings, after what they need was prepared."""
        if settings != self.settings:
            self._prepare(settings)
            self.settings = settings

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
                self.fetch()
                self.problem = None
                self._link.notices(POLL)
            except StorageError as problem:
                self.problem = str(problem)
                self._stop.wait(POLL / 2)
            except Exception as problem:  # a model that this version cannot read: the last one stays in use
                self.problem = f"the newest model cannot be used: {type(problem).__name__}: {problem}"
                self._stop.wait(POLL)

    def _listen(self) -> None:
        now = time.monotonic()
        if self._listening != self._link.connections or self._link.failure is not None:
            self._link.execute(f"LISTEN neuralucb_{self._link.address.schema}")
            self._listening = self._link.connections
        if now > self._seen_at + SEEN:
            self._link.execute("UPDATE processes SET seen_at = now() WHERE name = %s", self._name)
            self._seen_at = now


def read_arms(cursor: Any) -> list[Arm]:
    """Registered arms, in the order in which they were put."""
    cursor.execute("SELECT id, features FROM arms ORDER BY place")
    return [Arm(*row) for row in cursor.fetchall()]
