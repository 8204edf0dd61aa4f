"""Tables: final regret with its interval, for the terminal and as Markdown."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from neuralucb import __version__
from neuralucb.experiments.results import Result

__all__ = ["markdown", "markdown_table", "terminal", "terminal_table"]

SHORT_NAME = 16
"""Names in the first column stay in one piece if none is longer."""

HEAD = ("algorithm", "problem", "mean", "std", "95 % interval", "worst", "diverged")


def terminal(results: Sequence[Result], *, title: str) -> Any:
    """A rich table, one row a result; folded where the terminal is narrow, never cut."""
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


def terminal_table(rows: Sequence[Sequence[str | Text]], *, title: str, left: int = 1) -> Table:
    """A table for the terminal.

    Columns are folded where the terminal is narrow, except short names in the first.

    Args:
        rows: cells, the head first. Words are printed as they are; a `Text` brings its own style.
        title: printed above the table; "" for none.
        left: how many columns, from the first, are aligned to the left. The others are aligned to the right.

    Returns:
        What `Console.print` takes.
    """
    table = Table(
        title=title or None,
        title_justify="left",
        header_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    head, *body = rows
    for index, name in enumerate(head):
        widest = max(len(row[index]) for row in rows)
        table.add_column(
            name,
            justify="left" if index < left else "right",
            overflow="fold",
            no_wrap=index == 0 and widest <= SHORT_NAME,
        )
    for row in body:
        table.add_row(*row)
    return table


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as a Markdown table, ending with a newline."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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
