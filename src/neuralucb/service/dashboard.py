"""The dashboard at `/`: one page, drawn by the service, complete without JavaScript; a small script draws it again.

Everything that comes from outside, ids of arms above all, is escaped where it enters the page.
"""

from collections.abc import Iterable, Sequence
from html import escape
from time import gmtime, strftime

from neuralucb.service.charts import Line, bar, intervals, lines, number
from neuralucb.service.dashboard_assets import POLICY, SCRIPT, STYLE
from neuralucb.service.errors import ServiceError
from neuralucb.service.http import Call, Reply, Route
from neuralucb.service.status import ARMS, Status, collect
from neuralucb.service.store import CandidateReport, LessonReport
from neuralucb.service.values import ArmValue, Value

__all__ = ["ROUTES", "page", "shell"]

SHOWN_ARMS = 12
SHOWN_LESSONS = 8
LEVELS = {"bad": "Failing", "warning": "Warning", "note": "Note"}
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
FATES = (
    ("observed", "learned"),
    ("defaulted", "never came: the default was learned"),
    ("late", "came late: not learned"),
    ("expired", "of events never activated"),
    ("repeated", "repeated: ignored"),
    ("unknown", "of events not known: ignored"),
)


async def show(call: Call) -> Reply:
    """The page; without the token that its numbers need, only a form that asks for one."""
    try:
        call.application.authorize("read", call.headers)
    except ServiceError as problem:
        is_wrong = any(name in (b"authorization", b"ocp-apim-subscription-key") for name, _ in call.headers)
        return _reply(shell(problem.message if is_wrong else None))
    return _reply(page(await collect(call)))


ROUTES = (Route("GET", "/", "anyone", show),)


def page(status: Status) -> str:
    """The page of a status."""
    worst = next((level for level in LEVELS if any(alarm.level == level for alarm in status.alarms)), None)
    state = {"bad": "Failing", "warning": "Needs a look"}.get(worst or "", "Healthy")
    alarms = "".join(
        f'<li class="{alarm.level}"><b>{LEVELS[alarm.level]}</b>{escape(alarm.words)}</li>' for alarm in status.alarms
    )
    body = f"""
<header><h1>neuralucb</h1><span class="state">{state}</span>
<span class="quiet">{escape(status.role)} store · version {escape(status.version)} · up for
{_duration(status.uptime_seconds)} · {strftime("%Y-%m-%d %H:%M:%S", gmtime(status.time))} UTC</span></header>
{f'<ul class="alarms">{alarms}</ul>' if alarms else ""}
<dl class="tiles">{"".join(_tiles(status))}</dl>
<div class="panels"><div class="column">
{_panel("Traffic, per minute", _traffic(status))}
{_panel("What other policies would have earned", _policies(status))}
{_panel("Candidates", _candidates(status)) if status.candidates else ""}
{_panel("What became of rewards", _fates(status), "later")}
{_panel("Settings", _settings(status), "last")}
</div><div class="column">
{_panel("Reward per decision", _rewards(status))}
{_panel("Arms", _arms(status.values.arms))}
{_panel("Lessons", _lessons(status), "later")}
</div></div>"""
    return _document(f"{state} – neuralucb", body)


def shell(problem: str | None = None) -> str:
    """The page without any numbers, which asks for a token."""
    told = "" if problem is None else f'<ul class="alarms"><li class="warning">{escape(problem)}</li></ul>'
    body = f"""
<header><h1>neuralucb</h1></header>{told}
<section><h2>A token is needed</h2>
<p>This service shows its numbers to tokens of the role read or admin. The token stays in this tab.</p>
<form><input type="password" name="token" aria-label="Token" autocomplete="off" required><button>Show</button></form>
<noscript><p>Without JavaScript: send the header Authorization: Bearer TOKEN.</p></noscript></section>"""
    return _document("neuralucb", body)


def _document(title: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<noscript><meta http-equiv="refresh" content="15"></noscript>
<style>{STYLE}</style></head>
<body><p id="stale" role="alert" hidden>The service does not answer; these are the last numbers that it gave.</p>
<main>{body}
</main>
<script>{SCRIPT}</script></body></html>
"""


def _reply(text: str) -> Reply:
    return Reply(200, text.encode(), b"text/html; charset=utf-8", HEADERS)


def _panel(title: str, body: str, place: str = "") -> str:
    """A part of the page; `place` says whether it comes later where there is room for one column only."""
    return f'<section class="{place}"><h2>{escape(title)}</h2>{body}</section>'


def _tiles(status: Status) -> Iterable[str]:
    values, rates = status.values, status.per_minute
    yield _tile(
        "Decisions per minute", number(rates["decisions"]), f"{_whole(status.counters.get('decisions', 0))} in all"
    )
    rewards = _sum(rates["observed"], rates["defaulted"])
    told = _sum(status.counters.get("observed"), status.counters.get("defaulted"))
    yield _tile("Rewards per minute", number(rewards), f"{_whole(told or 0)} in all")
    served = values.served
    under = served.words if served.value is None else f"95 %: {number(served.low)} to {number(served.high)}"
    yield _tile("Mean reward", number(served.value), under)
    yield _tile("Explored", _percent(values.explored), f"of {_whole(values.decisions)} recent decisions")
    pending = status.gauges.get("pending", 0.0)
    yield _tile("Waiting for a reward", _whole(pending), f"{_whole(status.counters.get('late', 0))} came late in all")
    latency = next(iter(status.latency.values()), None)
    slow = "no decisions yet" if latency is None else f"p99 {_milliseconds(latency['p99'])}"
    yield _tile("Latency, p50", "–" if latency is None else _milliseconds(latency["p50"]), slow)


def _tile(name: str, value: str, under: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(under)}</dd></div>"


def _traffic(status: Status) -> str:
    series = status.series
    rewards = [a + b for a, b in zip(series["observed"], series["defaulted"], strict=True)]
    chosen = (Line("decisions", "a", series["decisions"]), Line("rewards", "b", rewards))
    return lines("decisions and rewards per minute, over time", series["time"], chosen, status.time)


def _rewards(status: Status) -> str:
    blocks = status.values.blocks
    times, means, low, high = zip(*blocks, strict=True) if blocks else ((), (), (), ())
    mean = Line("mean, with its 95 % interval", "a", means, low, high)
    chart = lines("mean reward over time, with its interval", times, (mean,), status.time, zero=False)
    words = f"{_whole(status.values.complete)} of {_whole(status.values.decisions)} recent decisions are complete: no "
    words += f"earlier one still waits for its reward. {status.values.words}"
    return f'{chart}<p class="quiet">{escape(words)}</p>'


def _policies(status: Status) -> str:
    values = status.values
    rows = (("as decided", values.served), ("first arm", values.baseline), ("uniform", values.uniform))
    table = "".join(
        f'<tr><td class="name">{escape(name)}</td><td class="number">{_interval(value)}</td></tr>{_words(value)}'
        for name, value in rows
    )
    return (
        f'{intervals("reward per decision of three policies", rows)}<table>{table}</table><p class="quiet">'
        "Estimated by SNIPS from the propensities of the same decisions; 95 % intervals. “First arm” is what an "
        "application without a bandit would use.</p>"
    )


def _candidates(status: Status) -> str:
    drawn: list[tuple[str, Value]] = [(_label(each.name), each.values["candidate"]) for each in status.candidates]
    served = max(status.candidates, key=lambda each: each.decisions).values["served"]
    rows = "".join(_candidate(each) for each in status.candidates)
    return (
        f"{intervals('reward per decision of candidates', [(_label(status.deciding), served), *drawn])}"
        '<table class="stacked"><tr><th>candidate</th><th class="number">reward</th>'
        f'<th class="number">difference</th></tr>{rows}</table><p class="quiet">'
        f"“{escape(status.deciding)}” decides. Each candidate is valued by what it would have done before it learned "
        "from the reward, since it was added; the difference is to what was served in the same decisions.</p>"
    )


def _label(name: str) -> str:
    """A name that fits beside a chart."""
    return name if len(name) <= 14 else f"{name[:13]}…"


def _candidate(report: CandidateReport) -> str:
    value, difference = report.values["candidate"], report.values["difference"]
    words = report.failure or value.words
    told = f'<tr class="words"><td colspan="3" class="quiet">{escape(words)}</td></tr>' if words else ""
    return (
        f'<tr><td class="name">{escape(report.name)} '
        f'<span class="quiet">{escape(report.candidate.algorithm)}</span></td>'
        f'<td class="number">{_interval(value)}</td>'
        f'<td class="number">{_interval(difference)}</td></tr>{told}'
    )


def _arms(arms: Sequence[ArmValue]) -> str:
    if not arms:
        return '<p class="quiet">No decisions yet.</p>'
    rows = "".join(
        f'<tr><td class="name">{escape(_short(arm.id))}</td><td class="share wide">{bar(arm.share)}</td>'
        f'<td class="number">{_percent(arm.share)}</td><td class="number">{_interval(arm.reward)}</td></tr>'
        for arm in arms[:SHOWN_ARMS]
    )
    rest = arms[SHOWN_ARMS:]
    more = f"{len(rest)} more arms have {_percent(sum(arm.share for arm in rest))}" if rest else ""
    listed = f"; /v1/status lists the first {ARMS}." if rest else ""
    return (
        '<table><tr><th>arm</th><th class="wide"></th><th class="number">share</th><th class="number">reward</th></tr>'
        f'{rows}</table><p class="quiet">{more}{listed}</p>'
    )


def _fates(status: Status) -> str:
    rows = "".join(
        f'<tr><td class="name">{escape(words)}</td><td class="number">{number(status.per_minute.get(name))}</td>'
        f'<td class="number">{_whole(status.counters.get(name, 0))}</td></tr>'
        for name, words in FATES
    )
    refused = status.counters.get("rewards_refused", 0)
    words = f"{_whole(refused)} observations were refused by the model." if refused else ""
    return (
        '<table><tr><th>rewards</th><th class="number">per minute</th><th class="number">in all</th></tr>'
        f'{rows}</table><p class="quiet">{words}</p>'
    )


def _lessons(status: Status) -> str:
    good = [each for each in reversed(status.lessons) if each.promoted and each.loss is not None]
    chart = ""
    if len(good) > 1:
        losses = [each.loss for each in good if each.loss is not None]
        chart = lines(
            "loss of lessons over time", [each.time for each in good], (Line("loss", "c", losses),), status.time
        )
    rows = "".join(_lesson(each, status.time) for each in status.lessons[:SHOWN_LESSONS])
    head = (
        '<tr><th>ended</th><th class="number">observations</th><th class="number">loss</th>'
        '<th class="number wide">took</th><th>result</th></tr>'
    )
    table = f"<table>{head}{rows}</table>" if rows else ""
    promoted, failed = (_whole(status.counters.get(name, 0)) for name in ("lessons", "lessons_failed"))
    words = f"{status.learning}; {promoted} promoted, {failed} failed in all."
    return f'{chart}{table}<p class="quiet">{escape(words[:1].upper() + words[1:])}</p>'


def _lesson(lesson: LessonReport, now: float) -> str:
    result = "promoted" if lesson.promoted else f"failed: {lesson.failure or 'unknown'}"
    return (
        f'<tr><td>{_duration(now - lesson.time)} ago</td><td class="number">{_whole(lesson.observations)}</td>'
        f'<td class="number">{number(lesson.loss)}</td><td class="number wide">{_milliseconds(lesson.seconds)}</td>'
        f'<td class="name">{escape(result)}</td></tr>'
    )


def _settings(status: Status) -> str:
    rows = "".join(
        f'<tr><td class="name">{escape(name)}</td><td class="name">{escape(_setting(value))}</td></tr>'
        for name, value in status.settings._asdict().items()
    )
    return f"<table>{rows}</table>"


def _setting(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return _short(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _interval(value: Value) -> str:
    if value.value is None:
        return "–"
    return f'{number(value.value)} <span class="quiet">[{number(value.low)}, {number(value.high)}]</span>'


def _words(value: Value) -> str:
    return f'<tr class="words"><td colspan="2" class="quiet">{escape(value.words)}</td></tr>' if value.words else ""


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
