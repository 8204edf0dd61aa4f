"""A process of a service under test: it decides and rewards as fast as it can, and writes down what was acknowledged.

python -m tests.postgres.replica ADDRESS FOLDER NAME ROLE
"""

import os
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from neuralucb.runtime.errors import StorageError
from neuralucb.service.postgres import open_postgres
from neuralucb.service.store import Reward
from tests.postgres.helpers import CHAOS_PLAN, request

PAUSE = 0.01
"""Seconds between two rounds: processes under test share their cores with others."""


def main(address, folder, name, role):
    parent = os.getppid()
    store = None
    while store is None and os.getppid() == parent:
        try:
            store = open_postgres(address, CHAOS_PLAN, role=role)
        except StorageError:  # the database is being restarted, too
            time.sleep(0.1)
    traffic = Traffic(store, Path(folder), f"{name}.{os.getpid()}")
    while os.getppid() == parent:  # no process is left behind, even if the tests are killed
        if role != "learn":
            traffic.play()
        time.sleep(PAUSE)


class Traffic:
    """Decisions of its own, rewards for anybody's, and a file of what was acknowledged: each line is one write."""

    def __init__(self, store, folder, name):
        self._store = store
        self._folder = folder
        self._name = name
        self._generator = np.random.default_rng(zlib.crc32(name.encode()))
        self._file = (folder / f"{name}.acknowledged").open("ab", buffering=0)
        self._made = 0
        self._events = []
        self._read = {}

    def play(self):
        count = int(self._generator.integers(1, 5))
        events = [f"{self._name}.{self._made + number}" for number in range(count)]
        self._made += count
        while True:
            try:
                answers = self._store.decide([request(event) for event in events])
                break
            except StorageError:
                self._write("refused", "decide")
                time.sleep(0.05)
        for answer in answers:
            self._write("decided", answer.event_id, answer.position)
        self._events += events
        self._learn_of_others()
        chosen = self._generator.choice(self._events, size=count + 1).tolist()
        rewards = [Reward(event, float(self._generator.normal())) for event in chosen]
        try:
            fates = self._store.reward(rewards)
        except StorageError:
            self._write("refused", "reward")
            return
        for reward, fate in zip(rewards, fates, strict=True):
            assert fate in ("learned", "repeated"), fate
            if fate == "learned":
                self._write("rewarded", reward.event_id, repr(reward.value))

    def close(self):
        self._file.close()

    def _learn_of_others(self):
        """Events that other processes decided: a reward may come to any replica."""
        if self._generator.random() > 0.1:
            return
        for path in self._folder.glob("*.acknowledged"):
            with path.open() as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
                whole = text[: text.rfind("\n") + 1]
                self._read[path] = self._read.get(path, 0) + len(whole)
            self._events += [line.split()[1] for line in whole.splitlines() if line.startswith("decided")]
        self._events = self._events[-500:]

    def _write(self, *words):
        self._file.write(" ".join(map(str, words)).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
