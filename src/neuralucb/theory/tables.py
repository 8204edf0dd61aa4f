"""Tables: what the theory says of a problem, and how often intervals hold; for the terminal and as Markdown."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from neuralucb.experiments.results import Result
from neuralucb.theory.coverage import Coverage
from neuralucb.theory.report import Report

__all__ = ["coverage_rows", "markdown", "terminal", "theory_rows"]


def theory_rows(report: Report, measured: Result) -> list[tuple[str, ...]]:
    """Head and rows: a quantity, its symbol, its value, and what it means."""
    over, summary, asked = report.over, measured.summary(), report.conditions
    error = f" ± {report.effective_dimension_error:.2g}" if report.effective_dimension_error else ""
    seeds = f"{len(measured.seeds)} seed{'s' if len(measured.seeds) > 1 else ''}"
    band = "" if math.isnan(summary.low) else f" ({_figure(summary.low)} to {_figure(summary.high)})"
    rows: list[tuple[str, ...]] = [
        ("quantity", "symbol", "value", "meaning"),
        (
            "contexts",
            "TK",
            str(over.rounds * over.arms),
            f"{over.rounds} round{'s' if over.rounds > 1 else ''} of {over.arms} arms, seed {report.seed}",
        ),
        ("effective dimension", "d̃", _figure(report.effective_dimension) + error, "directions that the contexts use"),
        ("smallest eigenvalue", "λ_0", _figure(report.lambda_0), "0: two contexts cannot be told apart"),
        ("norm of the rewards", "S", _figure(report.norm), "how rough h is for this kernel"),
        ("training steps", "J", _figure(report.steps), "that Theorem 1 asks for, corrected"),
        ("bound", "Theorem 1", _figure(report.bound), f"on the regret, with probability 1 - δ, T = {over.rounds}"),
        ("bound on the mean", "Corollary 1", _figure(report.expected_bound), "on the expected regret"),
        ("measured regret", "R_T", _figure(summary.mean) + band, f"NeuralUCB, m = {report.width}, {seeds}"),
    ]
    if asked is not None:
        rows += [
            ("least width", "m", _figure(asked.width), f"that the lemmas ask for; played: {report.width}"),
            ("largest step", "η", _figure(asked.step_size), f"at m = {report.width}; on the sum, not the mean"),
            ("least regularization", "λ", _figure(asked.regularization), f"played: {over.regularization:g}"),
        ]
    return rows


def coverage_rows(measured: Mapping[tuple[str, str], Coverage]) -> list[tuple[str, ...]]:
    """Head and rows: share inside for chosen and random arms, the γ played, and the one needed for 90 %."""
    rows: list[tuple[str, ...]] = [
        ("γ", "Z", "chosen arm", "random arm", "γ at the end", "γ for 90 % chosen", "γ for 90 % random", "diverged")
    ]
    for (confidence, design), found in measured.items():
        shares = [f"{100 * share:.1f} %" for share in found.share()]
        needed = [_figure(scale) for scale in found.needed_scale()]
        last, failed = _figure(found.scale[:, -1].mean()), f"{found.diverged.sum()} of {len(found.diverged)}"
        rows.append((confidence, design, *shares, last, *needed, failed))
    return rows


def terminal(rows: Sequence[Sequence[str]], *, title: str) -> Any:
    """A rich table; folded where the terminal is narrow, never cut."""
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False
    )
    for index, name in enumerate(rows[0]):
        table.add_column(name, overflow="fold", no_wrap=index == 0)  # names stay in one piece
    for row in rows[1:]:
        table.add_row(*row)
    return table


def markdown(rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """The same table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
    return "\n".join([*lines, *("\n" + note + "." for note in notes)]) + "\n"


def _figure(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
