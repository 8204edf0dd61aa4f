"""Programs of decisions, compiled before a request waits for them: for as many arms as requests have, and a floor."""

import itertools
from collections.abc import Iterable

import numpy as np

from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.policy import Belief
from neuralucb.service.store import Plan

__all__ = ["DecisionPrograms"]

BATCH = 16
"""Decisions per call of a program: larger ones are no faster per decision, and each size is compiled."""


class DecisionPrograms:
    """The programs of one plan; `use_floor` is called from one thread."""

    def __init__(self, programs: Programs, plan: Plan) -> None:
        self.programs: Programs = programs
        self.programs.batch = BATCH
        self._plan = plan
        self._floor = plan.floor
        self._sizes: frozenset[int] = frozenset()
        """numbers of arms that are compiled"""

    def warm_up(self, counts: Iterable[int], belief: Belief) -> None:
        """Compile decisions over so many arms each."""
        self._sizes = frozenset(map(power_of_two, counts))
        self._compile(self.programs, belief)

    def use_floor(self, floor: float | None, belief: Belief) -> None:
        """Choose uniformly with this probability, or the plan's; compiled before, while the old one is in use."""
        floor = self._plan.floor if floor is None else floor
        if floor != self._floor:
            self._compile(Programs(self.programs.policy, self._plan.seed, floor), belief)
            self.programs.set_floor(floor)
            self._floor = floor

    def _compile(self, programs: Programs, belief: Belief) -> None:
        programs.batch = BATCH
        for size, power in itertools.product(self._sizes, range(BATCH.bit_length())):
            contexts = np.zeros((1 << power, size, self._plan.slots), np.float32)
            programs.choose_many(0, belief, contexts, np.ones((1 << power, size), bool), capacity=size)
