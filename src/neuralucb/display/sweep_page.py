"""The page of a report: one self-contained HTML file, for a wide screen and for a phone."""

import shlex
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from neuralucb.experiments.statistics import FEW_SEEDS, few_seeds
from neuralucb.experiments.tables import title_of
from neuralucb.runtime.words import counted
from neuralucb.sweeps.report import Report
from neuralucb.sweeps.spec import Part
from neuralucb.sweeps.store import Failure
from neuralucb.sweeps.toml import as_toml

__all__ = ["Picture", "short", "sweep_page"]

LISTED_SEEDS = 20
"""Up to this many seeds are listed one by one."""


class Picture(NamedTuple):
    """A figure of the page."""

    title: str
    words: str
    path: Path
    """of the SVG"""


def sweep_page(report: Report, table: Sequence[Sequence[str]], pictures: Sequence[Picture]) -> str:
    """The HTML of a report. It loads nothing from elsewhere, so that it can be mailed and still read in ten years."""
    sweep = report.sweep
    facts = {
        "runs": f"{report.runs} of {sweep.runs}", "rounds": str(sweep.rounds), "seeds": _seeds(sweep.seeds),
        **report.facts,
    }  # fmt: skip
    first, *others = [_figure(picture) for picture in pictures] or [""]
    return PAGE.substitute(
        name=escape(sweep.name),
        facts="".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()),
        incomplete=_incomplete(report),
        first_figure=first,
        head=_row("th", table[0]),
        remark=_remark(len(sweep.seeds)),
        rows="".join(_row("td", row) for row in table[1:]),
        figures="\n".join(others),
        not_drawn=_not_drawn(report),
        parts=_items(_part(part) for part in sweep.parts),
        resume=escape(report.resume_command),
        file=escape(shlex.quote(f"{sweep.name}.toml")),
        toml=escape(as_toml(sweep)),
    )


def short(value: Any) -> str:
    """The value of a setting in few digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _figure(picture: Picture) -> str:
    drawing = picture.path.read_text(encoding="utf-8")
    drawing = _with_prefixed_ids(drawing[drawing.index("<svg") :], picture.path.stem)
    width = drawing.split('width="')[1].split('"')[0]
    return FIGURE.substitute(title=escape(picture.title), words=escape(picture.words), width=width, drawing=drawing)


def _with_prefixed_ids(drawing: str, prefix: str) -> str:
    """A drawing whose ids differ from those of the other drawings on the page."""
    for mark in ('id="', 'href="#', "url(#"):
        drawing = drawing.replace(mark, f"{mark}{prefix}-")
    return drawing


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _incomplete(report: Report) -> str:
    """What is missing and why; nothing for a complete sweep."""
    race = report.sweep.search == "race"
    missing = report.unfinished if race else report.sweep.runs - report.runs
    if not missing and not report.failures:
        return ""
    failures = "".join(f"<li>{_failure(failure)}</li>" for failure in report.failures)
    words = f"{counted(missing, 'race' if race else 'run')} {'is' if missing == 1 else 'are'} "
    words += "not over." if race else "missing."
    return f"<h2>Incomplete</h2><p>{words}</p><ul>{failures}</ul>"


def _not_drawn(report: Report) -> str:
    """The settings whose sensitivity is not drawn, and why; nothing if all are."""
    if not report.two_valued:
        return ""
    names = ", ".join(f"{setting} of {title_of(algorithm)}" for algorithm, setting in report.two_valued)
    return f"<p>Sensitivity needs three values of a setting; these have two: {escape(names)}.</p>"


def _failure(failure: Failure) -> str:
    if not failure.traceback:
        return escape(str(failure))
    lines = "\n".join(["…", *failure.last_lines()])
    where = f"Whole traceback: {failure.file.parent.name}/{failure.file.name}"
    return f"{escape(str(failure))}<pre>{escape(lines)}</pre><p>{escape(where)}</p>"


def _seeds(seeds: Sequence[int]) -> str:
    """The seeds in words; a long range by its ends."""
    if len(seeds) > LISTED_SEEDS and tuple(seeds) == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _remark(seeds: int) -> str:
    """That seeds, or those of the half that scores, are too few for their intervals."""
    if few_seeds(seeds):
        return f"<b>{few_seeds(seeds)}</b> "
    scoring = seeds // 2
    return f"<b>Only {scoring} seeds score the chosen setting</b>: few for an interval. " if scoring < FEW_SEEDS else ""


def _part(part: Part) -> str:
    """What a part of the sweep runs, in words."""
    grid = "; ".join(f"{name}: {', '.join(short(value) for value in values)}" for name, values in part.grid.items())
    grid = f"{len(part.points)} points of {', '.join(part.swept)}" if part.points else grid
    words = [
        f"preset {part.preset}" if part.preset else "",
        f"schedule {part.schedule}" if part.schedule else "",
        *(f"{name}={short(value)}" for name, value in part.settings.items()),
    ]
    fixed = ", ".join(word for word in words if word)
    run = f"{title_of(part.algorithm)} on {part.problem}"
    return run + (f" – {grid}" if grid else "") + (f" ({fixed})" if fixed else "")


FIGURE = Template(
    '<h2>$title</h2><p>$words</p><figure role="img" aria-label="$title" style="--drawn: $width">$drawing</figure>'
)

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$name</title><style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; }
body { color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; border-top: 1px solid #ddd; padding-top: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
@media (max-width: 60rem) { figure svg { min-width: calc(.7 * var(--drawn)); } } /* scrolls, so text stays legible */
.wide { overflow-x: auto; } table { min-width: 70rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td { white-space: nowrap; } td:nth-child(7) { white-space: normal; min-width: 14rem; }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; } li { overflow-wrap: anywhere; }
</style></head><body>
<h1>$name</h1>
<dl>$facts</dl>
$incomplete
$first_figure
<h2>Best settings</h2>
<p>Final regret, mean over seeds, with Student's 95 % interval. $remark<b>Best of the grid</b> is chosen on the same
seeds, which flatters every algorithm. <b>Chosen on half, scored on the other</b>: the setting is chosen on
every other seed and scored on the rest. Differences are paired: a seed is the same problem for every algorithm. A
setting with missing runs cannot win.</p>
<div class=wide><table>$head$rows</table></div>
$figures
$not_drawn
<h2>What was run</h2>
<ul>$parts</ul>
<h2>Run it again</h2>
<p>If runs are missing, this runs them:</p><pre>$resume</pre>
<p>To run everything again, here or on another machine, save this file:</p>
<details><summary>$file</summary><pre>$toml</pre></details>
<pre>neuralucb sweep $file --out NEW</pre>
</body></html>
""")
