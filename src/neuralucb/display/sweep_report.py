"""The report of a sweep: figures, a table of the best settings, and a page with both."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralucb.display.figures import draw_regret, new_figure, save, style_of, tidy
from neuralucb.display.race_figures import draw_races
from neuralucb.display.sweep_page import Picture, short, sweep_page
from neuralucb.display.tables import markdown_table
from neuralucb.experiments.results import Curve
from neuralucb.experiments.statistics import few_seeds
from neuralucb.experiments.tables import title_of
from neuralucb.runtime.files import write_text
from neuralucb.sweeps.report import LEADER, Best, Sensitivity, read_report
from neuralucb.sweeps.selection import Estimate
from neuralucb.sweeps.store import Store

__all__ = ["FORMS", "best_table", "write_report"]

FORMS = ("svg", "pdf", "png")

HEAD = [
    "problem", "algorithm", "best of the grid", "worst seed", "chosen on half, scored on the other",
    f"minus {title_of(LEADER)}", "best setting", "settings", "diverged", "missing",
]  # fmt: skip


def write_report(store: Store) -> Path:
    """Write figures, table and page into the folder of a store, complete or not.

    Args:
        store: The folder of a sweep.

    Returns:
        The page, report.html.

    Raises:
        InputError: A file of the store is damaged; the message names it and the cure.

    Example:
        >>> page = write_report(Store("mine"))  # doctest: +SKIP
    """
    report = read_report(store)
    figures = store.folder / "figures"
    pictures = []
    if report.curves:
        _draw_curves(report.curves, _files(figures, "regret"))
        shown = "every seed and the mean" if few_seeds(len(report.sweep.seeds)) else "mean and 95 % band"
        words = f"Best setting of each algorithm: {shown}."
        pictures.append(Picture("Cumulative regret", words, figures / "regret.svg"))
    for algorithm in dict.fromkeys(each.algorithm for each in report.sensitivities):
        name = f"sensitivity-{algorithm}"
        _draw_sensitivity([each for each in report.sensitivities if each.algorithm == algorithm], _files(figures, name))
        words = "Regret over that of the best setting; for each value, the other settings are at their best."
        pictures.append(Picture(f"Sensitivity of {title_of(algorithm)}", words, figures / f"{name}.svg"))
    for problem in dict.fromkeys(race["problem"] for race in report.races):
        name = f"race-{problem}"
        draw_races([race for race in report.races if race["problem"] == problem], _files(figures, name))
        words = (
            "Each line is a setting, from its first round to the one after which it was dropped; those that are left "
            "at the end are dark, and the best of them is on top."
        )
        pictures.append(Picture(f"Races on {problem}", words, figures / f"{name}.svg"))
    table = best_table(report.best)
    remark = few_seeds(len(report.sweep.seeds))
    text = markdown_table(table) + (f"\n{remark}\n" if remark else "")
    write_text(store.folder / "best.md", text)
    return write_text(store.folder / "report.html", sweep_page(report, table, pictures))


def best_table(best: Sequence[Best]) -> list[list[str]]:
    """The best settings as rows of text; the first row is the head."""
    return [
        HEAD,
        *(
            [
                row.problem, title_of(row.algorithm), _interval(row.regret),
                _interval(Estimate(row.worst, math.nan, math.nan)), _interval(row.held_out),
                "–" if row.minus_leader is None else _interval(row.minus_leader, sign=True),
                ", ".join(f"{name} {short(value)}" for name, value in row.setting.items()) or "–",
                str(row.settings), f"{row.diverged} of {row.runs}", str(row.missing) if row.missing else "–",
            ]
            for row in best
        ),
    ]  # fmt: skip


def _interval(estimate: Estimate, *, sign: bool = False) -> str:
    """A mean with its interval."""
    if math.isnan(estimate.mean):
        return "–"
    form = ("+" if sign else "") + (".0f" if abs(estimate.mean) >= 100 else ".1f")
    if math.isnan(estimate.low):
        return f"{estimate.mean:{form}}"
    return f"{estimate.mean:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{form}" for form in FORMS]


def _draw_curves(curves: Sequence[Curve], paths: Sequence[Path]) -> None:
    """One panel per problem, one line per algorithm."""
    panels: dict[str, list[Curve]] = {}
    for curve in curves:
        panels.setdefault(curve.problem, []).append(curve)
    draw_regret(list(panels.values()), paths)


def _draw_sensitivity(panels: Sequence[Sensitivity], paths: Sequence[Path]) -> None:
    """One panel per swept setting of an algorithm, one line per problem."""
    figure, axes = new_figure(len(panels), min(4, len(panels)), width=3.6, height=3.1, margin=1.6)
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel)
    axes[0].set_ylabel("regret over the best")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right upper")
    figure.suptitle(title_of(panels[0].algorithm), fontsize=11)
    save(figure, paths)


def _draw_panel(axis: Any, panel: Sensitivity) -> None:
    """Numbers on a logarithmic axis, other values side by side."""
    numeric = all(isinstance(value, int | float) and value > 0 for value in panel.values)
    places = panel.values if numeric else range(len(panel.values))
    for index, (problem, ratios) in enumerate(panel.ratios.items()):
        colour, dash = style_of(index)
        axis.plot(places, ratios, color=colour, linestyle=dash, marker="o", ms=4, label=problem)
    if numeric:
        axis.set_xscale("log")
    else:
        axis.set_xticks(places, [str(value) for value in panel.values])
    axis.set_xlabel(panel.setting)
    axis.ticklabel_format(axis="y", useOffset=False)
    tidy(axis)
