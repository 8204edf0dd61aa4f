"""To how many arms a request is padded: to sizes whose programs are compiled, and that fit those which come often.

Every arm that padding adds costs as much as a real one. So besides the size that is compiled before the first request,
sizes that waste at most a fifth are compiled beside traffic, once requests have often asked for them.
"""

import queue
import threading
from collections import Counter
from collections.abc import Callable
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
        self._ready = frozenset((power_of_two(arms),))
        self._batch, self._shape, self._prepare = batch, shape, prepare
        self._asked: Counter[int] = Counter()
        self._wanted: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="compiling", daemon=True)
        self._thread.start()

    def of(self, count: int) -> int:
        """The size for so many arms; if none is compiled that is large enough, the request waits for it."""
        best = fitting(count)
        if best in self._ready:
            return best
        larger = [size for size in self._ready if size >= count]
        if not larger:
            self._ready |= {best}
            return best
        self._asked[best] += 1
        if self._asked[best] == OFTEN:
            self._wanted.put(best)
        return min(larger)

    def compile(self, programs: Programs, belief: Belief) -> None:
        """Compile decisions of all sizes in use, and observations."""
        for size in self._ready:
            self.compile_size(programs, belief, size)
        kept = self._shape.noted(programs.note_size)
        programs.absorb(belief, kept.zeros(1), np.zeros(1, np.float32))

    def compile_size(self, programs: Programs, belief: Belief, size: int) -> None:
        """Compile decisions of one size."""
        decisions = 1
        while decisions <= self._batch:
            contexts, available = self._shape.zeros(decisions, size), np.ones((decisions, size), bool)
            programs.choose_many(0, belief, contexts, available, capacity=size)
            decisions *= 2

    def close(self) -> None:
        """Wait for what is being compiled."""
        self._wanted.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (size := self._wanted.get()) is not None:
            self._prepare(size)
            self._ready |= {size}


@lru_cache(maxsize=KINDS)
def fitting(count: int) -> int:
    """The size for so many arms, of which at most a fifth is padding: up to 8 each, then 10, 12, 14, 16, 20, 24, …"""
    step = max(1, power_of_two(count) // 8)
    return -(-count // step) * step
