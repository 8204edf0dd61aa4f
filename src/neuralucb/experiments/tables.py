"""Results in words: rows of tables, as plain text and as HTML, with algorithms named as their papers write them."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from neuralucb.algorithms import ALGORITHMS
from neuralucb.runtime.words import counted, listed

if TYPE_CHECKING:
    from neuralucb.experiments.comparisons import Comparison
    from neuralucb.experiments.results import Result

__all__ = [
    "aggregate_table",
    "difference_table",
    "heading",
    "html_table",
    "number",
    "ranking_table",
    "result_table",
    "text_table",
    "title_of",
    "with_interval",
]


def title_of(algorithm: str) -> str:
    """The algorithm's name as its paper writes it; the name itself for an algorithm that is not known here."""
    return (ALGORITHMS[algorithm].title if algorithm in ALGORITHMS else "") or algorithm


def heading(results: Sequence["Result"]) -> str:
    """Who was played on what, for how long and how often."""
    algorithms = list(dict.fromkeys(title_of(result.algorithm) for result in results))
    problems = list(dict.fromkeys(result.problem for result in results))
    who = listed(algorithms) if len(algorithms) <= 3 else f"{len(algorithms)} algorithms"
    where = listed(problems) if len(problems) <= 3 else f"{len(problems)} problems"
    rounds = {result.rounds for result in results}
    played = counted(rounds.pop(), "round") if len(rounds) == 1 else f"{min(rounds)} to {max(rounds)} rounds"
    return f"{who} on {where}, {played}, {counted(len(results[0].seeds), 'seed')}"


def result_table(results: Sequence["Result"]) -> list[list[str]]:
    """Final regret over seeds, the head first, then one row per result."""
    rows = [["algorithm", "problem", "mean", "std", "95 % interval", "worst", "diverged"]]
    for result in results:
        summary = result.summary()
        rows.append(
            [
                title_of(result.algorithm),
                result.problem,
                number(summary.mean),
                number(summary.std),
                _between(summary.low, summary.high),
                number(float(result.final_regret.max())),
                f"{result.diverged} of {len(result.seeds)}",
            ]
        )
    return rows


def ranking_table(comparison: "Comparison", problem: str) -> list[list[str]]:
    """The ranking on one problem, and how far each algorithm is from the first of the comparison, paired by seed."""
    base = comparison.algorithms[0]
    apart = {one.algorithm: one.estimate for one in comparison.differences() if one.problem == problem}
    minus = [f"minus {title_of(base)}", "95 % interval"] if apart else []
    rows = [["place", "algorithm", "regret", "95 % interval", *minus, "diverged"]]
    for rank in comparison.ranking():
        if rank.problem == problem:
            mean, low, high = rank.regret
            gap = apart.get(rank.algorithm)
            difference = ["–", "–"] if gap is None else [_signed(gap.mean), _between(gap.low, gap.high, sign=True)]
            failed = f"{rank.diverged} of {rank.seeds}"
            shown = [str(rank.place), title_of(rank.algorithm), number(mean), _between(low, high)]
            rows.append([*shown, *(difference if apart else []), failed])
    return rows


def difference_table(comparison: "Comparison") -> list[list[str]]:
    """How far each algorithm is from the first of the comparison, paired by seed: the head first, then the others."""
    rows = [["algorithm", "problem", f"minus {title_of(comparison.algorithms[0])}", "95 % interval"]]
    for one in comparison.differences():
        mean, low, high = one.estimate
        rows.append([title_of(one.algorithm), one.problem, _signed(mean), _between(low, high, sign=True)])
    return rows


def aggregate_table(comparison: "Comparison") -> list[list[str]]:
    """Over all problems: regret as a share of uniform's, and how likely a run beats one of the first algorithm."""
    base = comparison.algorithms[0]
    beats = {one.algorithm: one for one in comparison.improvements()}
    over = [f"beats {title_of(base)}", "95 % interval"] if beats else []
    rows = [["algorithm", "share of uniform's regret", "95 % interval", *over]]
    for one in comparison.aggregates():
        mean, low, high = one.share
        found = beats.get(one.algorithm)
        better = ["–", "–"]
        if found is not None:
            better = [_percent(found.probability, 0), f"{_percent(found.low, 0)} to {_percent(found.high, 0)}"]
        rows.append(
            [
                title_of(one.algorithm),
                _percent(mean),
                f"{_percent(low)} to {_percent(high)}",
                *(better if beats else []),
            ]
        )
    return rows


def number(value: float) -> str:
    """A regret in few digits."""
    if math.isnan(value):
        return "–"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{value:.2e}"
    if 0 < size < 0.1:
        return f"{value:.3g}"
    return f"{value:.0f}" if size >= 100 or not size else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def with_interval(mean: float, low: float, high: float) -> str:
    """A mean with its interval, if it has one."""
    return number(mean) + ("" if math.isnan(low) else f" (95 % interval {_between(low, high)})")


def text_table(rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Rows as lines of plain text; the first columns are aligned to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, strict=True)
        return "  ".join(
            cell.ljust(width) if index < left else cell.rjust(width) for index, (cell, width) in enumerate(cells)
        ).rstrip()

    return "\n".join(line(row) for row in rows)


def html_table(rows: Sequence[Sequence[str]], *, title: str, remarks: Sequence[str] = ()) -> str:
    """Rows as an HTML table under a title, with remarks below it."""
    head, *body = rows
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    below = "".join(f"<p><em>{escape(remark)}</em></p>" for remark in remarks if remark)
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>{below}"


def _between(low: float, high: float, *, sign: bool = False) -> str:
    show = _signed if sign else number
    return "–" if math.isnan(low) else f"{show(low)} to {show(high)}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"
