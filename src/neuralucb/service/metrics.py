"""Metrics in Prometheus' text format: requests and their latency, queues, and what the store counts."""

import math
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping

from neuralucb import __version__

__all__ = ["Metrics", "escape"]

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the latency's histogram, in seconds."""

RECENT = 1000
"""Answers per route whose latency is known exactly."""


class Metrics:
    """Counts of what the service has answered since it started. Used from one event loop."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """by route and status"""
        self.latency: dict[str, list[int]] = {}
        """per route, how many took up to each of the BUCKETS, and more"""
        self.seconds: Counter[str] = Counter()
        self.matched: Counter[str] = Counter()
        """apprentice mode: whether the policy would have chosen what the application did"""
        self.recent: dict[str, deque[float]] = {}
        """seconds of the last answers, per route"""
        self.overloaded_at: float | None = None
        """when the last request was answered 429, seconds since 1970"""

    def count(self, route: str, status: int, seconds: float) -> None:
        """One more answer."""
        self.requests[route, status] += 1
        self.latency.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        self.recent.setdefault(route, deque(maxlen=RECENT)).append(seconds)
        if status == 429:
            self.overloaded_at = time.time()

    def text(
        self,
        counters: Mapping[str, float],
        gauges: Mapping[str, float],
        candidates: Mapping[str, Mapping[str, float]] | None = None,
    ) -> str:
        """All of it, with counters and gauges of others, and gauges of each candidate."""
        return "\n".join([*self._lines(counters, gauges), *_of_candidates(candidates or {}), ""])

    def _lines(self, counters: Mapping[str, float], gauges: Mapping[str, float]) -> Iterator[str]:
        yield from _head("info", "gauge", "version")
        yield f'neuralucb_info{{version="{escape(__version__)}"}} 1'
        yield from _head("requests_total", "counter", "answers by route and status")
        for (route, status), count in sorted(self.requests.items()):
            yield f'neuralucb_requests_total{{route="{escape(route)}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "from the first byte of a request to its answer")
        for route, counts in sorted(self.latency.items()):
            label, below = f'route="{escape(route)}"', 0
            for bound, count in zip((*BUCKETS, math.inf), counts, strict=True):
                below += count
                shown = "+Inf" if bound == math.inf else f"{bound:g}"
                yield f'neuralucb_request_seconds_bucket{{{label},le="{shown}"}} {below}'
            yield f"neuralucb_request_seconds_sum{{{label}}} {float(self.seconds[route]):.6f}"
            yield f"neuralucb_request_seconds_count{{{label}}} {below}"
        yield from _head("apprentice_total", "counter", "apprentice mode: would the policy have chosen the same")
        for matched, count in sorted(self.matched.items()):
            yield f'neuralucb_apprentice_total{{matched="{matched}"}} {count}'
        for name, value in counters.items():
            yield from _head(f"{name}_total", "counter", "")
            yield f"neuralucb_{name}_total {_number(value)}"
        for name, value in gauges.items():
            yield from _head(name, "gauge", "")
            yield f"neuralucb_{name} {_number(value)}"


def escape(text: str) -> str:
    """A label's value."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _of_candidates(candidates: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for name in dict.fromkeys(name for gauges in candidates.values() for name in gauges):
        yield from _head(f"candidate_{name}", "gauge", "")
        for candidate, gauges in candidates.items():
            if name in gauges:
                yield f'neuralucb_candidate_{name}{{candidate="{escape(candidate)}"}} {_number(gauges[name])}'


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    if words:
        yield f"# HELP neuralucb_{name} {words}"
    yield f"# TYPE neuralucb_{name} {kind}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
