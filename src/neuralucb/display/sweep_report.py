"""The report: figures, a table of best settings, and a page with both."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.display.figures import Curve, draw_regret, new_figure, save, style_of, tidy
from neuralucb.display.sweep_page import Picture, number, write_page
from neuralucb.runtime.files import write_whole
from neuralucb.sweeps.selection import Contest, Estimate, band, contests, difference, read_grids
from neuralucb.sweeps.store import Store

__all__ = ["FORMS", "write_report"]

FORMS = ("svg", "pdf", "png")


LEADER = "neural-ucb"
"""to whom the others are compared"""


def write_report(store: Store, *, command: str) -> Path:
    """Draw and write everything that can be said of a store, complete or not; returns the page."""
    grids = read_grids(store)
    decided = contests(grids)
    figures = store.folder / "figures"
    pictures = []
    if decided:
        _draw_curves(store, decided, [figures / f"regret.{form}" for form in FORMS])
        pictures.append(("Cumulative regret", "Best setting of each algorithm: mean and 95 % band.", "regret"))
    for algorithm in dict.fromkeys(contest.grid.algorithm for contest in decided):
        mine = [contest for contest in decided if contest.grid.algorithm == algorithm]
        if _draw_sensitivity(mine, [figures / f"sensitivity-{algorithm}.{form}" for form in FORMS]):
            words = "Regret over that of the best setting, the other settings at their best for each value."
            pictures.append((f"Sensitivity of {algorithm}", words, f"sensitivity-{algorithm}"))
    table = best_table(decided)
    text = "\n".join("| " + " | ".join(row) + " |" for row in [table[0], ["---"] * len(table[0]), *table[1:]]) + "\n"
    write_whole(store.folder / "best.md", lambda part: part.write_text(text, encoding="utf-8"))
    drawn = [Picture(title, words, figures / f"{name}.svg") for title, words, name in pictures]
    there = int(sum((~np.isnan(grid.regret)).sum() for grid in grids))
    page = write_page(store, there, table, drawn, command)
    return write_whole(store.folder / "report.html", lambda part: part.write_text(page, encoding="utf-8"))


HEAD = [
    "problem", "algorithm", "best of the grid", "worst seed", "chosen on half, scored on the other", "minus neural-ucb",
    "best setting", "settings", "diverged", "missing",
]  # fmt: skip


def best_table(decided: Sequence[Contest]) -> list[list[str]]:
    """Rows of words: the best setting of each algorithm, both ways, and its difference to NeuralUCB, seed by seed."""
    leaders = {contest.grid.problem: contest for contest in decided if contest.grid.algorithm == LEADER}
    rows = [HEAD]
    for contest in decided:
        grid, leader = contest.grid, leaders.get(contest.grid.problem)
        paired = "–" if leader is None or leader is contest else in_words(difference(contest, leader), sign=True)
        setting = ", ".join(f"{name} {number(value)}" for name, value in grid.settings[contest.best].items()) or "–"
        rows.append(
            [
                grid.problem, grid.algorithm, in_words(contest.estimate),
                in_words(Estimate(contest.worst, math.nan, math.nan)),
                in_words(contest.honest), paired, setting, str(len(grid.settings)),
                f"{int(grid.diverged.sum())} of {grid.regret.size}", str(contest.missing) if contest.missing else "–",
            ]
        )  # fmt: skip
    return rows


def in_words(estimate: Estimate, *, sign: bool = False) -> str:
    """A mean with its interval."""
    if math.isnan(estimate.mean):
        return "–"
    form = ("+" if sign else "") + (".0f" if abs(estimate.mean) >= 100 else ".1f")
    if math.isnan(estimate.low):
        return f"{estimate.mean:{form}}"
    return f"{estimate.mean:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _draw_curves(store: Store, decided: Sequence[Contest], paths: Sequence[Path]) -> None:
    panels: dict[str, list[Curve]] = {}
    for contest in decided:
        panels.setdefault(contest.grid.problem, []).append(_curve(store, contest))
    draw_regret(list(panels.values()), paths)


def _curve(store: Store, contest: Contest) -> Curve:
    """The curves of the best setting; only these are read."""
    grid = contest.grid
    swept = json.dumps(grid.settings[contest.best])
    table = store.read(
        ["seed", "curve", "curve_every"], algorithm=grid.algorithm, problem=grid.problem, swept=swept
    ).sort_by("seed")
    curves = table["curve"].combine_chunks().flatten().to_numpy().reshape(len(table), -1).astype(np.float64)
    every = table["curve_every"][0].as_py()
    rounds = np.minimum(every * np.arange(1, curves.shape[1] + 1), grid.rounds)
    diverged = int(grid.diverged[contest.best].sum())
    return Curve(grid.algorithm, grid.problem, rounds, curves, band(curves), diverged)


def _draw_sensitivity(mine: Sequence[Contest], paths: Sequence[Path]) -> bool:
    """A panel for each number that was swept, a line for each problem; False if nothing was."""
    swept = {name: values for name, values in _swept(mine).items() if len(values) > 1}
    if not swept:
        return False
    figure, axes = new_figure(len(swept), min(4, len(swept)), width=3.6, height=3.1, margin=1.6)
    for axis, (name, words) in zip(axes, swept.items(), strict=True):
        numeric = all(isinstance(value, int | float) and value > 0 for value in words)
        for index, contest in enumerate(mine):
            means, best = contest.grid.regret.mean(axis=1), contest.estimate.mean
            lowest = dict.fromkeys(words, np.nan)
            for setting, mean in zip(contest.grid.settings, means, strict=True):
                if name in setting:
                    lowest[setting[name]] = np.fmin(lowest[setting[name]], mean)  # NaN, with missing runs, is left out
            ratio = [value / best if best else np.nan for value in lowest.values()]
            colour, dash = style_of(index)
            places = words if numeric else range(len(words))
            axis.plot(places, ratio, color=colour, linestyle=dash, marker="o", ms=4, label=contest.grid.problem)
        if numeric:
            axis.set_xscale("log")
        else:
            axis.set_xticks(range(len(words)), [str(word) for word in words])
        axis.set_xlabel(name)
        axis.ticklabel_format(axis="y", useOffset=False)
        tidy(axis)
    axes[0].set_ylabel("regret over the best")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right upper")
    figure.suptitle(mine[0].grid.algorithm, fontsize=11)
    save(figure, paths)
    return True


def _swept(mine: Sequence[Contest]) -> dict[str, list[Any]]:
    """The values of each swept setting, in order."""
    found: dict[str, set[Any]] = {}
    for contest in mine:
        for setting in contest.grid.settings:
            for name, value in setting.items():
                found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=lambda value: (str(type(value)), value)) for name, values in found.items()}
