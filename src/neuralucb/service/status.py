"""What an operator looks at, in one record: traffic, rewards, arms, lessons, latency, and alarms in words."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from neuralucb import __version__
from neuralucb.runtime.words import counted
from neuralucb.service.http import Call, Reply, Route, json_reply
from neuralucb.service.metrics import Metrics
from neuralucb.service.operations import candidate_json
from neuralucb.service.store import CandidateReport, LessonReport, Settings, StoreHealth
from neuralucb.service.values import Values

__all__ = ["ROUTES", "Alarm", "Status", "collect"]

ARMS = 50
"""Arms that are listed; the others are summed up."""

LESSONS = 20
"""Lessons that are listed."""

OVERLOAD_SECONDS = 600.0
"""For how long it is told that requests were refused."""

STALE_SECONDS = 1800.0
"""Without a good lesson although rewards come, after which that is told."""

LATE_SHARE, UNKNOWN_SHARE = 0.05, 0.05
"""Of rewards of the last minutes, above which it is told."""

PENDING_SHARE = 0.8
"""Of the events that may wait, above which it is told."""

DECIDING = ("POST /v1/decide", "POST /v1/decide/batch", "POST /personalizer/{version}/rank")
"""Routes whose latency is shown."""


class Alarm(NamedTuple):
    """What an operator should know."""

    level: str
    """bad: something does not work; warning: it will not for long, or not well; note: as somebody has set it"""
    words: str


class Status(NamedTuple):
    """The service at a moment, in plain values: `/v1/status`, and what the dashboard is drawn from."""

    time: float
    version: str
    role: str
    uptime_seconds: float
    alarms: tuple[Alarm, ...]
    learning: str
    """when the last good lesson was, in words"""
    settings: Settings
    counters: Mapping[str, float]
    gauges: Mapping[str, float]
    per_minute: Mapping[str, float | None]
    """rates over the last minute"""
    series: Mapping[str, Sequence[float]]
    """rates per minute over the last hour"""
    values: Values
    lessons: tuple[LessonReport, ...]
    """newest first"""
    latency: Mapping[str, Mapping[str, float]]
    """per route: p50 and p99 of the last answers, in seconds, and how many those are"""
    deciding: str
    """the name of the policy that decides"""
    candidates: tuple[CandidateReport, ...]

    def as_json(self) -> dict[str, Any]:
        """For `/v1/status`."""
        values = self.values._asdict()
        values |= {name: values[name]._asdict() for name in ("served", "baseline", "uniform")}
        values["arms"] = [{**arm._asdict(), "reward": arm.reward._asdict()} for arm in self.values.arms[:ARMS]]
        values["arms_left_out"] = max(0, len(self.values.arms) - ARMS)
        return {
            **self._asdict(),
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "settings": self.settings._asdict(),
            "values": values,
            "lessons": [lesson._asdict() for lesson in self.lessons],
            "candidates": [candidate_json(each) for each in self.candidates],
        }


async def show(call: Call) -> Reply:
    """All of it as JSON."""
    return json_reply((await collect(call)).as_json())


ROUTES = (Route("GET", "/v1/status", "read", show),)


async def collect(call: Call) -> Status:
    """Look at everything."""
    engine = call.engine
    health: StoreHealth = await engine.call(engine.store.health)
    values, lessons = await engine.values()
    candidates = tuple(await engine.call(engine.store.candidates))
    now, settings = time.time(), engine.store.settings()
    rates = engine.traffic.per_minute(now, health.counters)
    latest = engine.traffic.per_minute(now, health.counters, seconds=300.0)
    found = (
        *_failures(health, engine.problem, stopping=call.application.stopping),
        *_strains(health, latest, call.metrics, now, engine.config.limits.pending, settings),
        *(Alarm("warning", _sentence(f"candidate {each.name}: {each.failure}")) for each in candidates if each.failure),
        *_notes(settings),
    )
    return Status(
        now, __version__, health.role, now - engine.began, found, health.learning, settings, health.counters,
        health.gauges, rates, engine.traffic.series(), values, tuple(reversed(lessons))[:LESSONS],
        _latency(call.metrics), engine.store.deciding()[0], candidates,
    )  # fmt: skip


def _failures(health: StoreHealth, problem: str | None, *, stopping: bool) -> Iterator[Alarm]:
    """What does not work."""
    if stopping:
        yield Alarm("warning", "The service is stopping.")
    if not health.writable:
        yield Alarm("bad", "No decisions are accepted: the store cannot be written.")
    if health.failure is not None:
        yield Alarm("bad", _sentence(health.failure))
    if problem is not None:
        yield Alarm("bad", f"Deadlines could not be kept: {problem}")


def _strains(
    health: StoreHealth,
    rates: Mapping[str, float | None],
    metrics: Metrics,
    now: float,
    most_pending: int,
    settings: Settings,
) -> Iterator[Alarm]:
    """What will not work for long, or does not work well."""
    if metrics.overloaded_at is not None and now - metrics.overloaded_at < OVERLOAD_SECONDS:
        count = sum(number for (_, status), number in metrics.requests.items() if status == 429)
        last = _ago(now - metrics.overloaded_at)
        limit = "" if settings.rate is None else f", or than the rate of {settings.rate:g} per second that is set"
        yield Alarm(
            "warning",
            f"{counted(count, 'request')} answered 429 since the start, the last {last} ago: there is more traffic "
            f"than this process can hold{limit}.",
        )
    if health.gauges.get("relearning"):
        yield Alarm("note", "Observations were removed: the model is learned again without them.")
    age, rewards = health.gauges.get("model_age_seconds", 0.0), rates["observed"] or 0.0
    if settings.learning and age > STALE_SECONDS and rewards > 0:
        yield Alarm("warning", f"No good lesson for {_ago(age)}, although rewards arrive: {health.learning}.")
    received = rewards + (rates["late"] or 0.0) + (rates["unknown"] or 0.0)
    if received and (late := (rates["late"] or 0.0) / received) > LATE_SHARE:
        yield Alarm("warning", f"{late:.0%} of the rewards come late and are not learned: raise wait_seconds.")
    if received and (unknown := (rates["unknown"] or 0.0) / received) > UNKNOWN_SHARE:
        yield Alarm("warning", f"{unknown:.0%} of the rewards are for events that are not known: check their ids.")
    if health.gauges.get("pending", 0.0) > PENDING_SHARE * most_pending:
        yield Alarm(
            "warning",
            f"{health.gauges['pending']:.0f} events wait for a reward; at {most_pending} requests are refused.",
        )


def _notes(settings: Settings) -> Iterator[Alarm]:
    """What somebody has set."""
    if not settings.learning:
        yield Alarm("note", "Learning is paused; rewards are recorded all the same.")
    if settings.mode == "apprentice":
        yield Alarm("note", "Apprentice mode: the first arm is answered, and learned from.")
    if settings.pinned is not None:
        yield Alarm("note", f"The arm {settings.pinned!r} is pinned: it is answered wherever it is allowed.")
    if settings.excluded:
        shown = ", ".join(map(repr, settings.excluded[:5])) + (" …" if len(settings.excluded) > 5 else "")
        yield Alarm("note", f"Excluded and never chosen: {shown}.")


def _latency(metrics: Metrics) -> dict[str, dict[str, float]]:
    found = {}
    for route in DECIDING:
        seconds = sorted(metrics.recent.get(route, ()))
        if seconds:
            p50, p99 = (seconds[math.ceil(share * len(seconds)) - 1] for share in (0.5, 0.99))
            found[route] = {"p50": p50, "p99": p99, "answers": len(seconds)}
    return found


def _ago(seconds: float) -> str:
    if seconds < 90:
        return counted(round(seconds), "second")
    return counted(round(seconds / 60), "minute") if seconds < 5400 else counted(round(seconds / 3600), "hour")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith(".") else ".")
