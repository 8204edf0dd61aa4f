"""The service without HTTP: features are encoded, decisions batched, rewards recorded, and deadlines kept."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from neuralucb.features import Encoder
from neuralucb.service.batching import Batcher
from neuralucb.service.bodies import Ask
from neuralucb.service.config import Config
from neuralucb.service.errors import ServiceError
from neuralucb.service.one_core import allowed_cores, anywhere
from neuralucb.service.requests import read_asks
from neuralucb.service.store import Activated, Answer, LessonReport, Refusal, Request, Reward, Rewarded, Store
from neuralucb.service.traffic import Bucket, Traffic
from neuralucb.service.values import Values, value_of

__all__ = ["Engine"]

MOST = 64
"""Requests that are decided in one call: more would make the first of them wait for the last."""

PIECE = 32
"""Requests of a call that are read together: while the policy computes for these, the next ones are read."""

VALUE_SECONDS = 2.0
"""For how long what decisions were worth counts as new."""

OPERATING = 4
"""Threads for all else: a snapshot waits for the lesson under way, and health must not wait for the snapshot."""

SETTLE_SECONDS = 0.5
"""Between two looks at deadlines."""

Outcome = TypeVar("Outcome")


class Made(NamedTuple):
    """A decision, and the arms in the caller's order that were allowed."""

    answer: Answer
    allowed: np.ndarray


class Engine:
    """Everything between HTTP and the store. Its methods are called from one event loop."""

    def __init__(self, store: Store, config: Config) -> None:
        self.store: Store = store
        self.config: Config = config
        plan = store.plan
        self.encoder: Encoder = Encoder(
            plan.slots, store.vocabulary(), interactions=plan.interactions, assign=store.assign_slots
        )
        """used by the deciding thread alone"""
        queue = config.limits.queue
        self.deciding: Batcher[Ask, Made] = Batcher("deciding", self._decide, most=MOST, queue=queue)
        self.rewarding: Batcher[Reward, Rewarded] = Batcher("rewarding", store.reward, most=4 * MOST, queue=4 * queue)
        self._others = ThreadPoolExecutor(OPERATING, "operating", anywhere, (allowed_cores(),))
        self._settler: asyncio.Task[None] | None = None
        self._closing = threading.Event()
        self.pending: float = store.health().gauges.get("pending", 0)
        """events that wait for a reward, about a second ago"""
        self.settled: int = 0
        self.traffic: Traffic = Traffic()
        self._bucket = Bucket()
        self.began: float = time.time()
        self._valued: tuple[float, tuple[Values, Sequence[LessonReport]]] | None = None
        self.problem: str | None = None
        """why deadlines could not be kept the last time, if so"""

    async def decide(self, asks: Sequence[Ask]) -> list[Made | Exception]:
        """Decide requests, together with others that wait; of each its decision, or what is wrong with it."""
        if self.pending >= self.config.limits.pending:
            raise ServiceError(
                "overloaded",
                f"{self.pending:.0f} events wait for a reward; send rewards, or set a shorter wait_seconds.",
            )
        rate = self.store.settings().rate
        if rate is not None and not self._bucket.take(len(asks), rate):
            raise ServiceError(
                "overloaded", f"more than {rate:g} decisions per second, the rate that is set; try later."
            )
        return await self.deciding.submit(asks)

    async def reward(self, rewards: Sequence[Reward]) -> list[Rewarded | Exception]:
        """Record rewards, together with others that wait."""
        return await self.rewarding.submit(rewards)

    async def activate(self, event_id: str) -> Activated:
        """Let a deferred event count."""
        (result,) = await self.call(lambda: self.store.activate([event_id]))
        return result

    async def call(self, work: Callable[[], Outcome]) -> Outcome:
        """Let the store do something that is rare, in a thread."""
        if self._closing.is_set():
            raise ServiceError("unavailable", "the service is stopping.")
        return await asyncio.get_running_loop().run_in_executor(self._others, work)

    async def values(self) -> tuple[Values, Sequence[LessonReport]]:
        """What recent decisions were worth, and recent lessons; at most a few seconds old, however many ask."""
        if self._valued is None or time.monotonic() - self._valued[0] > VALUE_SECONDS:
            activity = await self.call(self.store.activity)
            values = await self.call(lambda: value_of(activity.outcomes))
            self._valued = time.monotonic(), (values, activity.lessons)
        return self._valued[1]

    async def start(self) -> None:
        """Begin to look after deadlines."""
        self._settler = asyncio.get_running_loop().create_task(self._settle_regularly())

    async def close(self) -> None:
        """Finish what was accepted, and close the store."""
        if self._settler is not None:
            self._settler.cancel()
        self._closing.set()
        loop = asyncio.get_running_loop()
        for finish in (self.deciding.close, self.rewarding.close, self._others.shutdown, self.store.close):
            await loop.run_in_executor(None, finish)

    def _decide(self, asks: Sequence[Ask]) -> list[Made | Exception]:
        """Encode requests, and let the store decide all that can be; in the deciding thread."""
        pieces = [asks[first : first + PIECE] for first in range(0, len(asks), PIECE)]
        ends = [_or_problem(partial(self._begin, piece)) for piece in pieces]
        made: list[Made | Exception] = []
        for piece, end in zip(pieces, ends, strict=True):  # also after one that failed: what was begun must end
            results = end if isinstance(end, Exception) else _or_problem(end)
            made += [results] * len(piece) if isinstance(results, Exception) else results
        return made

    def _begin(self, asks: Sequence[Ask]) -> Callable[[], list[Made | Exception]]:
        read = read_asks(asks, self.encoder, self.store)
        requests = [each for each in read if isinstance(each, Request)]
        end = self.store.begin(requests) if requests else tuple

        def results() -> list[Made | Exception]:
            answers = iter(end())
            return [each if isinstance(each, Exception) else _made(each, next(answers)) for each in read]

        return results

    async def _settle_regularly(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            try:
                self.settled += await self.call(self.store.settle)
                health = await self.call(self.store.health)
                self.pending = health.gauges.get("pending", 0)
                self.traffic.look(time.time(), health.counters)
                self.problem = None
            except Exception as problem:
                words = f"{type(problem).__name__}: {problem}"
                if words != self.problem:
                    logging.getLogger("neuralucb").warning("deadlines could not be kept: %s", words)
                self.problem = words


def _or_problem(work: Callable[[], Outcome]) -> Outcome | Exception:
    try:
        return work()
    except Exception as problem:
        return problem


def _made(request: Request, answer: Answer | Refusal) -> Made | Exception:
    if isinstance(answer, Refusal):
        code = "conflict" if answer.code == "conflict" else "invalid_features"
        return ServiceError(code, answer.message, "event_id" if code == "conflict" else None)
    return Made(answer, request.allowed)
