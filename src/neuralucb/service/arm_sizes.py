"""To how many arms a request is padded: to sizes whose programs are compiled, and that fit those which come often.

Every arm that padding adds costs as much as a real one. So besides the size that is compiled before the first request,
sizes that waste at most a fifth are compiled beside traffic, once requests have often asked for them.
"""

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.online.context_shape import ContextShape
from neuralucb.policy import Belief

__all__ = ["ArmSizes", "fitting"]

OFTEN = 256
"""Decisions after which a size is worth its programs."""


KINDS = 4096
"""Numbers of arms whose size is remembered."""


class ArmSizes:
    """Sizes of one policy's programs.

    arms     the size with which to begin
    batch    decisions per call, up to which programs are compiled
    shape    of contexts
    prepare  compiles a size for the programs in use; in a thread beside traffic
    """

    def __init__(self, arms: int, batch: int, shape: ContextShape, prepare: Callable[[int], None]) -> None:
        self.ready: frozenset[int] = frozenset((fitting(arms),))
        """those whose programs are compiled"""
        self._shape, self._prepare = shape, prepare
        self.decisions: tuple[int, ...] = tuple(1 << power for power in range(batch.bit_length()))
        """per call, of which each size has a program"""
        self._asked: Counter[int] = Counter()
        self._wanted: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.is_closing: bool = False
        self._thread = threading.Thread(target=self._run, name="compiling", daemon=True)
        self._thread.start()

    def of(self, count: int) -> int:
        """The size for so many arms; if none is compiled that is large enough, the request waits for it."""
        best = fitting(count)
        if best in self.ready:
            return best
        larger = [size for size in self.ready if size >= count]
        if not larger:
            self.ready |= {best}
            return best
        self._asked[best] += 1
        if self._asked[best] == OFTEN:
            self._wanted.put(best)
        return min(larger)

    def expect(self, counts: Iterable[int]) -> None:
        """Requests with so many arms, as they came before, will come again: prepare for those that come often."""
        asked = Counter(map(fitting, counts))
        for size, times in asked.items():
            if times >= OFTEN and size not in self.ready:
                self._asked[size] += OFTEN  # not again
                self._wanted.put(size)

    def compile(self, programs: Programs, belief: Belief) -> None:
        """Compile decisions of all sizes in use, and observations."""
        for size in self.ready:
            self.compile_size(programs, belief, size)
        kept = self._shape.noted(programs.note_size)
        programs.absorb(belief, kept.zeros(1), np.zeros(1, np.float32))

    def compile_size(self, programs: Programs, belief: Belief, size: int) -> None:
        """Compile decisions of one size."""
        for decisions in self.decisions:
            contexts, available = self._shape.zeros(decisions, size), np.ones((decisions, size), bool)
            programs.choose_many(0, belief, contexts, available, capacity=size)

    def close(self) -> None:
        """Wait for the program that is being compiled."""
        self.is_closing = True
        self._wanted.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (size := self._wanted.get()) is not None:
            self._prepare(size)
            self.ready |= {size}


@lru_cache(maxsize=KINDS)
def fitting(count: int) -> int:
    """The size for so many arms, of which at most a fifth is padding: up to 8 each, then 10, 12, 14, 16, 20, 24, …"""
    step = max(1, power_of_two(count) // 8)
    return -(-count // step) * step
