"""Pending decisions by number, in blocks: what is done to all of them is done block by block, never under one lock."""

import math
import time
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

__all__ = ["BLOCK", "Pending", "let_others_run"]

BLOCK = 64
"""Decisions per block: what Python does to one block takes a fraction of a millisecond."""

PAUSE = 0.0003
"""Seconds without Python's lock between two blocks: long enough for a waiting thread to wake up and take it."""


class _Timed(Protocol):
    """What is pending knows since when."""

    @property
    def time(self) -> float: ...


Batch = TypeVar("Batch", bound=_Timed)


class _Block(Generic[Batch]):
    """Decisions whose numbers are the same when divided by BLOCK."""

    __slots__ = ("batches", "epoch", "oldest")

    def __init__(self, batches: dict[int, Batch], oldest: float, epoch: int) -> None:
        self.batches, self.oldest, self.epoch = batches, oldest, epoch


class Pending(Generic[Batch]):
    """A dictionary from numbers to batches of decisions, of which a moment can be kept without copying it.

    Blocks that a kept moment shares are copied when they change.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block[Batch]] = {}
        self._epoch = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        block = self._blocks.get(number // BLOCK)
        return block is not None and number in block.batches

    def __getitem__(self, number: int) -> Batch:
        return self._blocks[number // BLOCK].batches[number]

    def __iter__(self) -> Iterator[int]:
        for block in self._blocks.values():
            yield from block.batches

    def values(self) -> Iterator[Batch]:
        """The batch of every number."""
        for block in self._blocks.values():
            yield from block.batches.values()

    def put(self, first: int, count: int, batch: Batch) -> None:
        """Record a batch under `count` numbers."""
        for key in range(first // BLOCK, (first + count - 1) // BLOCK + 1):
            block = self._own(key)
            before = len(block.batches)
            numbers = range(max(first, key * BLOCK), min(first + count, (key + 1) * BLOCK))
            block.batches.update(dict.fromkeys(numbers, batch))
            block.oldest = min(block.oldest, batch.time)
            self._count += len(block.batches) - before

    def pop(self, number: int) -> Batch:
        """The batch of a number, which is removed."""
        key = number // BLOCK
        batch = self._own(key).batches.pop(number)
        self._count -= 1
        if not self._blocks[key].batches:
            del self._blocks[key]
        return batch

    def older_than(self, seconds: float, now: float, *, below: int) -> list[int]:
        """Up to BLOCK numbers below a bound that have been pending for so long.

        A clock that was set back gives no negative ages.
        """
        found: list[int] = []
        for block in self._blocks.values():
            if max(0.0, now - block.oldest) >= seconds:
                found += [
                    number
                    for number, batch in block.batches.items()
                    if number < below and max(0.0, now - batch.time) >= seconds
                ]
            if len(found) >= BLOCK:
                break
        return found[:BLOCK]

    def freeze(self) -> list[dict[int, Batch]]:
        """The blocks at this moment, which change no more."""
        self._epoch += 1
        return [block.batches for block in self._blocks.values()]

    def _own(self, key: int) -> _Block[Batch]:
        """A block that may be changed."""
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = _Block({}, math.inf, self._epoch)
        elif block.epoch != self._epoch:
            block = self._blocks[key] = _Block(block.batches.copy(), block.oldest, self._epoch)
        return block


def let_others_run() -> None:
    """Give Python's lock to a thread that waits for it: one that only computes would keep it for 5 ms at a time."""
    time.sleep(PAUSE)
