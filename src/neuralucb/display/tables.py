"""Tables: final regret with its interval, for the terminal and as Markdown."""

import math
from collections.abc import Sequence
from typing import Any

from neuralucb import __version__
from neuralucb.experiments.results import Result

__all__ = ["markdown", "markdown_table", "terminal"]

HEAD = ("algorithm", "problem", "mean", "std", "95 % interval", "worst", "diverged")


def terminal(results: Sequence[Result], *, title: str) -> Any:
    """A rich table, one row a result; folded where the terminal is narrow, never cut."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0))
    for name in HEAD:
        table.add_column(name, justify="left" if name in HEAD[:2] else "right", overflow="fold")
    for result in results:
        cells = _cells(result)
        if result.diverged:
            cells[-1] = f"[red]{cells[-1]}[/red]"
        table.add_row(*cells)
    return table


def markdown(results: Sequence[Result]) -> str:
    """The same table as Markdown, with the settings that made it."""
    rows = [HEAD, tuple("---" for _ in HEAD), *(_cells(result) for result in results)]
    first = results[0]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", f"Final regret after {first.rounds} rounds, seeds {', '.join(str(seed) for seed in first.seeds)}."]
    lines += [f"neuralucb {__version__}, {first.device}. Settings:", ""]
    for result in results:
        words = ", ".join(f"{name}={value}" for name, value in result.settings.items())
        lines.append(f"- {result.algorithm} on {result.problem}, learning by schedule {result.schedule}: {words}")
    return "\n".join(lines) + "\n"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is the head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def _cells(result: Result) -> list[str]:
    summary = result.summary()
    return [
        result.algorithm,
        result.problem,
        _figure(summary.mean),
        _figure(summary.std),
        "–" if math.isnan(summary.low) else f"{_figure(summary.low)} to {_figure(summary.high)}",
        _figure(float(result.final_regret.max())),
        f"{result.diverged} of {len(result.seeds)}",
    ]


def _figure(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"
