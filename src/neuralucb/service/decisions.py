"""Decisions of the embedded store: alike requests are padded, decided by the bandit together, and kept to be shown.

Beginning is apart from ending: while the policy computes, in threads of JAX, the next requests can be read, and the
decisions before be written.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from neuralucb.online import OnlineBandit
from neuralucb.runtime.errors import InputError
from neuralucb.service.arm_sizes import ArmSizes
from neuralucb.service.candidates import Candidates
from neuralucb.service.event_life import due_at
from neuralucb.service.events import EventBook, entry_of, read_rows
from neuralucb.service.shown import in_json
from neuralucb.service.store import Answer, Refusal, Request

__all__ = ["Decisions"]

RECENT = 2000
"""Events whose features can be shown; they are not in the journal, where they would be most of it."""


class Decisions:
    """What is begun ends in the same order, and in the same thread."""

    def __init__(
        self, bandit: OnlineBandit, book: EventBook, sizes: ArmSizes, candidates: Candidates, now: Callable[[], float]
    ) -> None:
        self._bandit, self._book, self._sizes, self._candidates, self._now = bandit, book, sizes, candidates, now
        self._begun: set[str] = set()
        """events that are not in the book yet"""
        self._recent: OrderedDict[str, Any] = OrderedDict()

    def begin(self, requests: Sequence[Request]) -> Callable[[], list[Answer | Refusal]]:
        """Begin to decide together; what has the same event id as an earlier one is answered as that was."""
        groups: dict[int, list[int]] = defaultdict(list)
        new: set[str] = set()
        for index, request in enumerate(requests):
            if not any(request.event_id in known for known in (self._book.events, self._begun, new)):
                new.add(request.event_id)  # the same id again is a repeat, also within a batch
                groups[self._sizes.of(len(request.arms))].append(index)
        parts = [self._select(requests, indices, size) for size, indices in groups.items()]
        self._begun |= new

        def end() -> list[Answer | Refusal]:
            made: dict[int, Answer | Refusal] = {}
            try:
                for part in parts:
                    made |= part()
            finally:
                self._begun -= new
            return [made[index] if index in made else self._repeated(each) for index, each in enumerate(requests)]

        return end

    def shown(self, event_id: str) -> bytes | None:
        """The features of a recent event, in JSON."""
        shown = self._recent.get(event_id)
        return None if shown is None else in_json(shown)

    def _select(
        self, requests: Sequence[Request], indices: list[int], size: int
    ) -> Callable[[], dict[int, Answer | Refusal]]:
        """Begin to decide some requests with one call."""
        chosen = [requests[index] for index in indices]
        counts = [len(each.arms) for each in chosen]
        contexts = np.zeros((len(chosen), size, chosen[0].contexts.shape[1]), np.float32)
        allowed = np.zeros((len(chosen), size), bool)
        for row, request in enumerate(chosen):
            contexts[row, : counts[row]] = request.contexts
            allowed[row, : counts[row]] = request.allowed
        available = allowed
        imposed = [(row, each.imposed) for row, each in enumerate(chosen) if each.imposed is not None]
        if imposed:
            available = allowed.copy()
            for row, position in imposed:
                available[row] = np.arange(size) == position
        due = due_at(self._book.settings, self._now())
        try:
            made = self._bandit.begin_many(contexts, available, {"events": [entry_of(each, due) for each in chosen]})
        except InputError as problem:
            return partial(self._refuse, requests, indices, size, problem)

        def end() -> dict[int, Answer | Refusal]:
            try:
                batch = made()
            except InputError as problem:
                return self._refuse(requests, indices, size, problem)
            for request in chosen:
                self._recent[request.event_id] = request.features
                if self._candidates.watch.is_on:
                    self._candidates.watch.offer(self._book.events[request.event_id], request.contexts, request.allowed)
            while len(self._recent) > RECENT:
                self._recent.popitem(last=False)
            read = read_rows(batch.rows, allowed, counts)
            return {
                index: Answer(request.event_id, request.arms, *each, batch.version, batch.time)
                for index, request, each in zip(indices, chosen, read, strict=True)
            }

        return end

    def _refuse(
        self, requests: Sequence[Request], indices: list[int], size: int, problem: InputError
    ) -> dict[int, Answer | Refusal]:
        """Some requests of which one cannot be scored: it is found by halves, and the others are decided."""
        if len(indices) == 1:
            return {indices[0]: Refusal("invalid", str(problem))}
        half = len(indices) // 2
        first, second = (self._select(requests, part, size) for part in (indices[:half], indices[half:]))
        return first() | second()

    def _repeated(self, request: Request) -> Answer | Refusal:
        """The answer to an earlier request of the same id."""
        event = self._book.events.get(request.event_id)
        if event is None:  # it was in this batch, and was refused
            return Refusal("invalid", f"event {request.event_id!r:.80} was refused.")
        if event.digest != request.digest.hex():
            return Refusal("conflict", f"event {request.event_id!r:.80} was decided for another request; use a new id.")
        return event.answer(repeated=True)
