"""Requests for tests of the store, and what happens to it, step by step or all by itself."""

import hashlib
import time
from contextlib import contextmanager

import numpy as np

from neuralucb import OnlineBandit, build
from neuralucb.service.postgres import Retention, models, open_postgres
from neuralucb.service.postgres.address import read_address
from neuralucb.service.postgres.follower import Follower
from neuralucb.service.postgres.learner import Learner, new_state
from neuralucb.service.postgres.link import Link
from neuralucb.service.store import Plan, Request

SLOTS = 4
PLAN = Plan(algorithm="lin-ucb", slots=SLOTS, schedule="10", seed=3)
CHAOS_PLAN = PLAN._replace(schedule="50")


def contexts_of(event, arms=3):
    """Contexts that follow from the event's id."""
    seed = int.from_bytes(hashlib.sha256(event.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=(arms, SLOTS)).astype(np.float32)


def request(event, arms=3, **others):
    contexts = contexts_of(event, arms)
    names = tuple(f"arm {number}" for number in range(arms))
    digest = hashlib.blake2b(event.encode() + contexts.tobytes(), digest_size=16).digest()
    fields = {"features": {"event": event}, "digest": digest, "allowed": np.ones(arms, bool)}
    return Request(event, contexts, names, **{**fields, **others})


@contextmanager
def opened(address, *, role="serve", plan=PLAN):
    store = open_postgres(address, plan, role=role)
    try:
        yield store
    finally:
        store.close()


def follow_by_hand(store):
    """The store's follower without a thread: the test calls `fetch`."""
    store._follower.stop()
    store._follower = Follower(Link(store.address, "models"), store._deciding.programs.init(), store.name)
    store._follower.fetch()
    return store._follower


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


def observed(address):
    """Contexts and rewards in the order of learning, and after how many of them lessons were made."""
    statement = """
        SELECT o.position, reward, context FROM outcomes o JOIN decisions USING (number)
        WHERE o.position IS NOT NULL AND forgotten IS NULL ORDER BY o.position
    """
    found = [(np.frombuffer(context, np.float32), reward) for _, reward, context in rows(address, statement)]
    lessons = rows(address, "SELECT observations FROM lessons WHERE kind = 'lesson' ORDER BY number")
    return found, [count for (count,) in lessons]


def replayed(address, plan=PLAN):
    """The bandit that is told the same observations, and learns when the learner did."""
    found, lessons = observed(address)
    bandit = OnlineBandit(build(plan.algorithm, dim=plan.slots, **plan.options), seed=plan.seed, learning="manual")
    for number, (context, reward) in enumerate(found, start=1):
        bandit.observe(bandit.select(context[None]).id, reward)
        for _ in range(lessons.count(number)):
            bandit.learn()
    return bandit


def newest_belief(address):
    """The arrays of the model that replicas serve, and its row."""
    (row,) = rows(address, f"SELECT {models.COLUMNS} FROM live_model")
    model = models.Model(*row)
    assert model.is_intact()
    arrays = models.arrays_of(model)
    return [arrays[f"belief.{index}"] for index in range(sum(name.startswith("belief.") for name in arrays))], model


def check_acknowledged(address, folder):
    """Compare what processes were told with what the database has; returns how many decisions and rewards that is."""
    lines = [line.split() for path in folder.glob("*.acknowledged") for line in path.read_text().splitlines()]
    decided = [(event, int(position)) for kind, event, *rest in lines if kind == "decided" for position in rest]
    rewarded = {event: float(rest[0]) for kind, event, *rest in lines if kind == "rewarded"}
    assert len(dict(decided)) == len(decided), "an event was decided twice"
    assert len(rewarded) == sum(kind == "rewarded" for kind, *_ in lines), "an event was told twice that it is learned"
    stored = rows(
        address,
        "SELECT event_id, d.position, reward, status, o.position FROM decisions d JOIN outcomes o USING (number)",
    )
    by_event = {event: rest for event, *rest in stored}
    assert not [event for event, position in decided if by_event[event][0] != position]
    assert not [event for event, value in rewarded.items() if by_event[event][1] != value]
    learned = sorted(row[4] for row in stored if row[3] == "observed")
    assert learned == list(range(1, len(learned) + 1)), "a reward was learned twice, or not at all"
    assert rows(address, "SELECT sum(decisions), sum(learned) FROM processes") == [(len(stored), len(learned))]
    epochs = [epoch for (epoch,) in rows(address, "SELECT epoch FROM lessons ORDER BY number")]
    assert epochs == sorted(epochs), "two learners wrote"
    return len(decided), len(rewarded)
