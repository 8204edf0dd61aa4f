"""Charts of the dashboard as inline SVG. Colours and dashes are classes, which the page's style defines."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from neuralucb.service.values import Value

__all__ = ["Line", "bar", "intervals", "lines", "number"]

WIDTH, HEIGHT = 420, 170
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 20
ROW = 34
"""Height of a row of `intervals`."""


class Line(NamedTuple):
    """One line of a chart."""

    name: str
    kind: str
    """its class: a, b or c, which differ in colour and in dashes"""
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    """the band around it, if it has one"""


def lines(title: str, times: Sequence[float], chosen: Sequence[Line], now: float, *, zero: bool = True) -> str:
    """Lines over time, with a band where there is an interval.

    zero  whether the axis begins at 0
    """
    every = [value for line in chosen for value in (*line.values, *line.low, *line.high)]
    if len(times) < 2:
        return '<p class="quiet">The chart begins when there is more to draw.</p>'
    ticks = _ticks(min(0.0, *every) if zero else min(every), max(every))
    bottom, top = ticks[0], ticks[-1]
    first, last = times[0], max(times[-1], times[0] + 1e-6)

    def x(time: float) -> float:
        return LEFT + (time - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        f'<text x="{LEFT - 5}" y="{y(value) + 4:.1f}" text-anchor="end">{number(value)}</text>'
        for value in ticks
    ]
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 5}">{_before(now - first)}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{_before(now - last)}</text>')
    for line in chosen:
        if line.low:
            around = [*zip(times, line.high, strict=True), *reversed(list(zip(times, line.low, strict=True)))]
            parts.append(f'<polygon class="band {line.kind}" points="{_points(around, x, y)}"/>')
        points = _points(zip(times, line.values, strict=True), x, y)
        parts.append(f'<polyline class="line {line.kind}" points="{points}"/>')
    legend = "".join(
        f'<span><svg class="key" viewBox="0 0 24 8" aria-hidden="true"><line class="line {line.kind}" x1="0" x2="24" '
        f'y1="4" y2="4"/></svg>{escape(line.name)}</span>'
        for line in chosen
    )
    return f'{_svg(title, HEIGHT, parts)}<p class="legend">{legend}</p>'


def intervals(title: str, rows: Sequence[tuple[str, Value]]) -> str:
    """Values with their intervals on one axis, a row each; of what is not known there is no row."""
    known = [
        (name, each.value, each.low, each.high)
        for name, each in rows
        if each.value is not None and each.low is not None and each.high is not None
    ]
    if not known:
        return ""
    ticks = _ticks(min(low for *_, low, _ in known), max(high for *_, high in known))
    bottom, top = ticks[0], ticks[-1]
    left, height = 100, ROW * len(known) + BOTTOM

    def x(value: float) -> float:
        return left + (value - bottom) / (top - bottom) * (WIDTH - left - 24)

    parts = [
        f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" y2="{height - BOTTOM}"/>'
        f'<text x="{x(value):.1f}" y="{height - 5}" text-anchor="middle">{number(value)}</text>'
        for value in ticks
    ]
    for row, (name, value, low, high) in enumerate(known):
        at, kind = ROW * row + ROW / 2, "abc"[row % 3]
        parts.append(f'<text x="{left - 12}" y="{at + 4}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<line class="span {kind}" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{at}" y2="{at}"/>')
        parts.append(f'<circle class="dot {kind}" cx="{x(value):.1f}" cy="{at}" r="5"/>')
    return _svg(title, height, parts)


def bar(share: float) -> str:
    """A bar for a share."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" '
        f'width="100" height="8"/><rect class="part" width="{width:.2f}" height="8"/></svg>'
    )


def number(value: float | None) -> str:
    """In few digits; a dash for what is not known."""
    if value is None or value != value:
        return "–"
    if value == round(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    if abs(value) >= 1e6:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _points(pairs: Iterable[tuple[float, float]], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    return " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in pairs)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around an interval, at most five: steps of 1, 2, 2.5 or 5 times a power of ten."""
    reach = high - low if high > low else max(abs(high), 1.0)
    power = 10.0 ** math.floor(math.log10(reach / 3))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if reach <= 3 * size * power)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * index for index in range(first, max(last, first + 1) + 1)]


def _before(seconds: float) -> str:
    if seconds < 20:
        return "now"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min ago" if seconds >= 90 else f"{seconds:.0f} s ago"
    return f"{seconds / 3600:.0f} h ago" if seconds < 2 * 86400 else f"{seconds / 86400:.0f} d ago"
