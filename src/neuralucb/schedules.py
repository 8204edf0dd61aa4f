"""When to learn: a schedule outside the algorithm, such as every 50 rounds."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = [
    "Phase",
    "Schedule",
    "default_schedule",
    "learning_rounds",
    "next_due",
    "read_schedule",
    "remembered",
    "segment_ends",
]

OFTEN_AT_FIRST = "3:60,5:150,10:300,20:1000,50:2000,100"
LATER_AT_FIRST = "10:200,20:1000,50:2000,100"


class Phase(NamedTuple):
    """Learn after every `every` rounds, up to and including round `until` (None: to the end).

    Example:
        >>> read_schedule("5:100,50") == (Phase(5, until=100), Phase(50))
        True
    """

    every: int
    until: int | None = None
    forgets: bool = False
    """whether only the rounds after which it learns are remembered, as in the authors' released code"""


Schedule: TypeAlias = tuple[Phase, ...]
"""When to learn: phases, one after the other.

Example:
    >>> read_schedule("50") == (Phase(50),)
    True
"""

NAMED: dict[str, Schedule] = {
    "synthetic": (Phase(50),),
    "real": (Phase(1, until=2000), Phase(100)),
}
"""The paper's two sets of experiments, the second as its released code reads it."""


def default_schedule(*, shared: bool) -> str:
    """Often at first: every 3 rounds up to 60, every 5 up to 150, and so on; 188 lessons in 10 000 rounds.

    Args:
        shared: Whether arms share a context. They are told apart only once each has been tried, so that it begins
            with every 10 rounds up to 200; 160 lessons.

    Example:
        >>> default_schedule(shared=True)
        '10:200,20:1000,50:2000,100'
    """
    return LATER_AT_FIRST if shared else OFTEN_AT_FIRST


def read_schedule(schedule: str | Schedule) -> Schedule:
    """Read a schedule: after which rounds a policy learns. Whatever takes a schedule takes such a text.

    Args:
        schedule: A name (`synthetic`, `real`), or phases such as `10:500,50:2000,100`, which learns every 10 rounds up
            to round 500, every 50 up to 2000, and every 100 after. With `100!` the rounds in between are not
            remembered. Phases that were read already are returned as they are.

    Returns:
        The phases, in order.

    Raises:
        InputError: If it is none of these.

    Example:
        >>> read_schedule("10:500,50")
        (Phase(every=10, until=500, forgets=False), Phase(every=50, until=None, forgets=False))
    """
    if isinstance(schedule, tuple) and schedule and all(isinstance(phase, Phase) for phase in schedule):
        return schedule
    text = str(schedule)
    if text in NAMED:
        return NAMED[text]
    phases = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(!?)\s*(?::\s*(\d+)\s*)?", part)
        if match is None or int(match[1]) < 1:
            raise InputError(
                f"schedule must be one of {', '.join(NAMED)}, or phases such as 10:500,50:2000,100 "
                f"(every 10 rounds up to 500, every 50 up to 2000, every 100 after), got {text!r}."
            )
        phases.append(Phase(int(match[1]), int(match[3]) if match[3] else None, bool(match[2])))
    ends = [phase.until for phase in phases]
    if None in ends[:-1] or any(a >= b for a, b in pairwise(ends) if a is not None and b is not None):
        raise InputError(f"schedule phases must have increasing ends, and only the last may have none, got {text!r}.")
    return tuple(phases)


def learning_rounds(schedule: Schedule, *, rounds: int) -> np.ndarray:
    """The rounds, counted from 1, after which the policy learns, in order."""
    chosen, start = [np.zeros(0, dtype=np.int32)], 0
    for phase in schedule:
        end = rounds if phase.until is None else min(phase.until, rounds)
        first = (start // phase.every + 1) * phase.every
        chosen.append(np.arange(first, end + 1, phase.every, dtype=np.int32))
        start = max(start, end)
    return np.concatenate(chosen)


def segment_ends(schedule: Schedule, *, rounds: int) -> list[int]:
    """The last round of every segment: those after which the policy learns, and the last of all."""
    trainings = [int(t) for t in learning_rounds(schedule, rounds=rounds)]
    return trainings if trainings and trainings[-1] == rounds else [*trainings, rounds]


def next_due(schedule: Schedule, *, since: int) -> int | None:
    """The first round after round `since` after which the policy learns; None if there is none."""
    start = 0
    for phase in schedule:
        due = (max(start, since) // phase.every + 1) * phase.every
        if phase.until is None or due <= phase.until:
            return due
        start = phase.until
    return None


def remembered(schedule: Schedule, ends: Sequence[int]) -> np.ndarray:
    """How many rounds of each segment, the last of which are `ends`, are remembered."""
    kept, start = [], 0
    for end in ends:
        phase = next((phase for phase in schedule if phase.until is None or end <= phase.until), schedule[-1])
        kept.append(1 if phase.forgets else end - start)
        start = end
    return np.asarray(kept, dtype=np.int32)
