"""The page of a report: one self-contained HTML file, for a wide screen and for a phone."""

import html
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from neuralucb.sweeps.spec import Sweep, as_toml
from neuralucb.sweeps.store import Store

__all__ = ["Picture", "number", "write_page"]

FEW_SEEDS = 20
"""Up to so many are all named."""


class Picture(NamedTuple):
    """A figure of the page."""

    title: str
    words: str
    path: Path
    """of the SVG"""


def write_page(store: Store, runs: int, table: list[list[str]], pictures: Sequence[Picture], command: str) -> str:
    """The page: nothing in it comes from elsewhere, so that it can be sent by mail and read in ten years."""
    sweep = store.sweep()
    planned = sweep.runs
    facts = [
        ("runs", f"{runs} of {planned}"), ("rounds", str(sweep.rounds)), ("seeds", _seeds(sweep.seeds)),
        *_times(store),
    ]  # fmt: skip
    parts = [f"<h1>{html.escape(sweep.name)}</h1>"]
    parts.append("<dl>" + "".join(f"<dt>{html.escape(a)}</dt><dd>{html.escape(b)}</dd>" for a, b in facts) + "</dl>")
    failures = store.failures()
    if failures or runs < planned:
        lost = "".join(f"<li>{html.escape(_failure(record))}</li>" for record in failures)
        parts.append(f"<h2>Incomplete</h2><p>{planned - runs} runs are missing.</p><ul>{lost}</ul>")
    first, *others = [_figure(picture) for picture in pictures] or [""]
    parts.append(first)
    rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table[1:])
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table[0])
    parts.append(f"<h2>Best settings</h2>{ABOUT}<div class=wide><table><tr>{head}</tr>{rows}</table></div>")
    parts += others
    plan = "".join(f"<li>{html.escape(line)}</li>" for line in _plan(store))
    parts.append(f"<h2>What was run</h2><ul>{plan}</ul>")
    parts.append(_again(sweep, command))
    head, tail = PAGE.split("BODY")
    return head.replace("TITLE", html.escape(sweep.name)) + "\n".join(parts) + tail


def _figure(picture: Picture) -> str:
    drawing = picture.path.read_text(encoding="utf-8")
    drawing = _apart(drawing[drawing.index("<svg") :], picture.path.stem)
    width = drawing.split('width="')[1].split('"')[0]
    title, words = html.escape(picture.title), html.escape(picture.words)
    figure = f'<figure role="img" aria-label="{title}" style="--drawn: {width}">{drawing}</figure>'
    return f"<h2>{title}</h2><p>{words}</p>{figure}"


def _again(sweep: Sweep, command: str) -> str:
    """How to go on; and the whole sweep, so that whoever has the page alone can run it too."""
    file = shlex.quote(f"{sweep.name}.toml")
    anew = html.escape(f"neuralucb sweep {file} --out NEW")
    text = f"<summary>{html.escape(file)}</summary><pre>{html.escape(as_toml(sweep))}</pre>"
    return (
        f"<h2>Again</h2><p>Where something is missing, this goes on:</p><pre>{html.escape(command)}</pre><p>All of it "
        f"anew, here or elsewhere, from this file:</p><details>{text}</details><pre>{anew}</pre>"
    )


def _seeds(seeds: Sequence[int]) -> str:
    """The seeds in words; a row of many by its ends."""
    if len(seeds) > FEW_SEEDS and tuple(seeds) == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _times(store: Store) -> list[tuple[str, str]]:
    table = store.read(["seconds", "compile_seconds", "device", "version", "jax", "commit", "batch"])
    seconds = table["seconds"].to_numpy().sum()
    batches = dict(zip(table["batch"].to_pylist(), table["compile_seconds"].to_pylist(), strict=True))
    devices, versions, jaxes, commits = (
        ", ".join(word for word in sorted(set(table[name].to_pylist())) if word) or "–"
        for name in ("device", "version", "jax", "commit")
    )
    return [
        ("computing", f"{seconds:.0f} s, and {sum(batches.values()):.0f} s of compiling, over all workers"),
        ("device", devices), ("neuralucb", versions), ("commit", commits), ("jax", jaxes),
    ]  # fmt: skip


def _plan(store: Store) -> list[str]:
    lines = []
    for part in store.sweep().parts:
        grid = "; ".join(f"{name}: {', '.join(number(v) for v in values)}" for name, values in part.grid.items())
        fixed = ", ".join(f"{name}={number(value)}" for name, value in part.settings.items())
        words = [f"preset {part.preset}" if part.preset else "", f"schedule {part.schedule}" if part.schedule else ""]
        rest = ", ".join(word for word in [*words, fixed] if word)
        lines.append(
            f"{part.algorithm} on {part.problem}" + (f" – {grid}" if grid else "") + (f" ({rest})" if rest else "")
        )
    return lines


def _failure(record: dict[str, Any]) -> str:
    return f"{record['algorithm']} on {record['problem']}, {record['runs']} runs: {record['reason']}"


def _apart(drawing: str, prefix: str) -> str:
    """A drawing whose ids cannot meet those of another on the same page."""
    for mark in ('id="', 'href="#', "url(#"):
        drawing = drawing.replace(mark, f"{mark}{prefix}-")
    return drawing


def number(value: Any) -> str:
    """A setting's value, short."""
    return f"{value:g}" if isinstance(value, float) else str(value)


ABOUT = (
    "<p>Final regret, mean over seeds, with the 95 % interval of a bootstrap over seeds. <b>Best of the grid</b> is "
    "chosen on the same seeds, which flatters every algorithm. Beside it the setting is chosen on every other seed "
    "and scored on the rest. Differences are paired: seeds share their problems. A setting with missing runs cannot "
    "win.</p>"
)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE</title><style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; }
body { color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; border-top: 1px solid #ddd; padding-top: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
@media (max-width: 60rem) { figure svg { min-width: calc(.7 * var(--drawn)); } } /* scrolled, rather than tiny words */
.wide { overflow-x: auto; } table { min-width: 70rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td { white-space: nowrap; } td:nth-child(7) { white-space: normal; min-width: 14rem; }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; } li { overflow-wrap: anywhere; }
</style></head><body>
BODY
</body></html>
"""
