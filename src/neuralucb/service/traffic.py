"""Traffic of the last hour: the store's counters, looked at every few seconds, and their differences."""

import itertools
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["SERIES", "Bucket", "Traffic"]

BURST_SECONDS = 2.0
"""For how long what was not used of a rate may be used later."""

SAMPLE_SECONDS = 5.0
SAMPLES = 720
"""An hour."""

POINTS = 60
"""Of a chart."""

SERIES = ("decisions", "observed", "defaulted", "late", "expired", "repeated", "unknown")
"""Counters that are followed."""


class Sample(NamedTuple):
    """Counters at a moment."""

    time: float
    counts: tuple[float, ...]
    """one for each of SERIES"""


class Bucket:
    """A limit on a rate that may be changed at any time: a token bucket that holds two seconds' worth."""

    def __init__(self) -> None:
        self._level, self._at = 0.0, float("-inf")

    def take(self, count: int, rate: float) -> bool:
        """Whether so many more are within the rate, per second; a batch larger than the bucket may empty it."""
        now, most = time.monotonic(), max(1.0, BURST_SECONDS * rate)
        self._level, self._at = min(most, self._level + (now - self._at) * rate), now
        if self._level < min(count, most):
            return False
        self._level -= count
        return True


class Traffic:
    """Samples of counters. They begin when the process does."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)

    def look(self, now: float, counters: Mapping[str, float]) -> None:
        """Note the counters, if the last look was long enough ago."""
        if not self._samples or now - self._samples[-1].time >= SAMPLE_SECONDS:
            self._samples.append(Sample(now, tuple(float(counters.get(name, 0)) for name in SERIES)))

    def per_minute(self, now: float, counters: Mapping[str, float], seconds: float = 60.0) -> dict[str, float | None]:
        """Rates over about the last so many seconds; None before there is something to compare with."""
        earlier = [each for each in self._samples if now - each.time >= SAMPLE_SECONDS]
        if not earlier:
            return dict.fromkeys(SERIES)
        since = next((each for each in earlier if now - each.time <= seconds), earlier[-1])
        latest = Sample(now, tuple(float(counters.get(name, 0)) for name in SERIES))
        return dict(zip(SERIES, _rates(since, latest), strict=True))

    def series(self) -> dict[str, list[float]]:
        """Rates per minute over time, in at most so many points as a chart has: `time` and SERIES."""
        step = max(1, -(-(len(self._samples) - 1) // POINTS))
        chosen = list(self._samples)[::-1][::step][::-1]
        pairs = list(itertools.pairwise(chosen))
        columns: dict[str, list[float]] = {"time": [after.time for _, after in pairs]}
        rates = [_rates(before, after) for before, after in pairs]
        return columns | {name: [each[index] for each in rates] for index, name in enumerate(SERIES)}


def _rates(before: Sample, after: Sample) -> list[float]:
    """Per minute; a counter that fell belongs to another store, and counts from 0."""
    minutes = max(after.time - before.time, 1e-9) / 60
    return [max(0.0, late - early) / minutes for early, late in zip(before.counts, after.counts, strict=True)]
