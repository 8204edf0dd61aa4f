"""Requests for tests of the store, and what happens to it, step by step or all by itself."""

import hashlib
import time
from contextlib import contextmanager

import numpy as np

from neuralucb.service.postgres import Retention, open_postgres
from neuralucb.service.postgres.address import read_address
from neuralucb.service.postgres.learner import Learner, new_state
from neuralucb.service.postgres.link import Link
from neuralucb.service.store import Plan, Request

SLOTS = 4
PLAN = Plan(algorithm="lin-ucb", slots=SLOTS, schedule="10", seed=3)


def contexts_of(event, arms=3):
    """Contexts that follow from the event's id."""
    seed = int.from_bytes(hashlib.sha256(event.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=(arms, SLOTS)).astype(np.float32)


def request(event, arms=3, **others):
    contexts = contexts_of(event, arms)
    names = tuple(f"arm {number}" for number in range(arms))
    digest = hashlib.blake2b(event.encode() + contexts.tobytes(), digest_size=16).digest()
    fields = {"features": f'{{"event": "{event}"}}'.encode(), "digest": digest, "allowed": np.ones(arms, bool)}
    return Request(event, contexts, names, **{**fields, **others})


@contextmanager
def opened(address, *, role="serve", plan=PLAN):
    store = open_postgres(address, plan, role=role)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def learning(address, name="learner", *, plan=PLAN, retention=None, elected=True):
    """A learner without a thread: the test calls `step`."""
    read = read_address(address)
    links = Link(read, name), Link(read, f"{name} history")
    learner = Learner(*links, new_state(plan), plan, name=name, retention=retention or Retention())
    try:
        if elected:
            assert learner.lease.elect()
            learner.load()
        yield learner
    finally:
        learner.lease.resign()
        for link in links:
            link.close()


def rows(address, statement, *values):
    """What a person would ask the database."""
    link = Link(read_address(address), "test")
    try:
        return link.execute(statement, *values)
    finally:
        link.close()


def eventually(condition, seconds=20.0):
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
