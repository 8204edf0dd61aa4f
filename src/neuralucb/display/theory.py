"""The theory of a problem, and how often intervals hold, as people read them: tables, figures and progress."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich import progress as bars
from rich.console import Console

from neuralucb.display.figures import curve_of, new_figure, save, style_of, tidy
from neuralucb.display.progress import Lines
from neuralucb.display.tables import markdown_table, terminal_table
from neuralucb.experiments import Result
from neuralucb.experiments.statistics import few_seeds
from neuralucb.runtime.files import write_text
from neuralucb.runtime.progress import Meter, Progress
from neuralucb.runtime.words import counted
from neuralucb.theory.coverage import Coverage, Mode
from neuralucb.theory.report import Report

__all__ = [
    "coverage_rows",
    "draw_coverage",
    "draw_theory",
    "show_coverage",
    "show_theory",
    "stages",
    "theory_rows",
]

GREY = "#777777"

WINDOWS = 40
"""Points of a coverage curve."""

SHARE = 0.9
"""Of random arms: the γ that this share needs is drawn beside the γ that is played."""

RIGHT_HALF = 10
"""A λ above it is labelled to the left of its point."""

ARMS: dict[str, Any] = {"chosen": "-", "random": (0, (4, 1.5))}


def show_theory(
    report: Report, measured: Result, folder: Path, *, console: Console, formats: Sequence[str] = ("png",)
) -> None:
    """Print the table and the notes, write table and figure to the folder, and say where they are."""
    figures = [folder / f"theory-{report.problem}.{form}" for form in formats]
    draw_theory(report, measured, figures)
    rows = theory_rows(report, measured)
    console.print(terminal_table(rows, title=f"theory of {report.problem}", left=len(rows[0])))
    remark = few_seeds(len(measured.seeds))
    _write_table(rows, [*report.notes, *([remark.rstrip(".")] if remark else [])], figures, console)


def show_coverage(
    measured: Mapping[Mode, Coverage],
    folder: Path,
    *,
    problem: str,
    rounds: int,
    seeds: int,
    console: Console,
    formats: Sequence[str] = ("png",),
) -> None:
    """Print the table, write table and figure to the folder, and say where they are."""
    title = f"{problem}: {counted(rounds, 'round')}, {counted(seeds, 'seed')}"
    figures = [folder / f"coverage-{problem}.{form}" for form in formats]
    draw_coverage(measured, title, figures)
    rows = coverage_rows(measured)
    console.print(terminal_table(rows, title=f"intervals that hold, {title}", left=2))
    _write_table(rows, (), figures, console)


def theory_rows(report: Report, measured: Result) -> list[tuple[str, ...]]:
    """Head and rows: a quantity, its symbol, its value, and what it means."""
    over, summary, needed = report.over, measured.summary(), report.conditions
    error = f" ± {report.effective_dimension_error:.2g}" if report.effective_dimension_error else ""
    band = "" if math.isnan(summary.low) else f" ({_number(summary.low)} to {_number(summary.high)})"
    size = f"{counted(over.rounds, 'round')} of {over.arms} arms, seed {report.seed}"
    played = f"NeuralUCB, m = {report.width}, {counted(len(measured.seeds), 'seed')}"
    rows: list[tuple[str, ...]] = [
        ("quantity", "symbol", "value", "meaning"),
        ("contexts", "TK", str(over.rounds * over.arms), size),
        ("effective dimension", "d̃", _number(report.effective_dimension) + error, "directions that the contexts use"),
        ("smallest eigenvalue", "λ_0", _number(report.lambda_0), "0: two contexts cannot be told apart"),
        ("norm of the rewards", "S", _number(report.norm), "how rough h is for this kernel"),
        ("training steps", "J", _number(report.steps), "that Theorem 1 needs, corrected"),
        ("bound", "Theorem 1", _number(report.bound), f"on the regret, with probability 1 - δ, T = {over.rounds}"),
        ("bound on the mean", "Corollary 1", _number(report.expected_bound), "on the expected regret"),
        ("measured regret", "R_T", _number(summary.mean) + band, played),
    ]
    if needed is not None:
        rows += [
            ("smallest width", "m", _number(needed.width), f"that the lemmas allow; played: {report.width}"),
            ("largest step", "η", _number(needed.step_size), f"at m = {report.width}; on the sum, not the mean"),
            ("smallest regularization", "λ", _number(needed.regularization), f"played: {over.regularization:g}"),
        ]
    return rows


def coverage_rows(measured: Mapping[Mode, Coverage]) -> list[tuple[str, ...]]:
    """Head and rows: share inside for chosen and random arms, the γ played, and the γ needed for 90 %."""
    rows: list[tuple[str, ...]] = [
        ("γ", "Z", "chosen arm", "random arm", "γ at the end", "γ for 90 % chosen", "γ for 90 % random", "diverged")
    ]
    for mode, found in measured.items():
        shares = [f"{100 * share:.1f} %" for share in found.share()]
        needed = [_number(scale) for scale in found.needed_scale()]
        last, failed = _number(found.scale[:, -1].mean()), f"{found.diverged.sum()} of {len(found.diverged)}"
        rows.append((*mode, *shares, last, *needed, failed))
    return rows


def draw_theory(report: Report, measured: Result, paths: Sequence[Path]) -> None:
    """Four panels: spectrum, d̃ against T and λ, the bound; a panel without numbers says why."""
    figure, axes = new_figure(4, 2, width=4.6, height=3.5, margin=0.2)
    _spectrum(axes[0], report)
    _over_rounds(axes[1], report)
    _over_regularization(axes[2], report)
    _bound(axes[3], report, measured)
    for axis in axes:
        tidy(axis)
    over = report.over
    figure.suptitle(
        f"{report.problem}: T = {over.rounds}, K = {over.arms}, d = {report.dim}, L = {over.depth}, "
        f"λ = {over.regularization:g}",
        fontsize=11,
        parse_math=False,
    )
    save(figure, paths)


def draw_coverage(measured: Mapping[Mode, Coverage], title: str, paths: Sequence[Path]) -> None:
    """How often intervals hold over rounds, how often they would with another γ, and γ over rounds.

    One colour per kind of γ and Z; a solid line for chosen arms, a dashed one for random arms.
    """
    figure, axes = new_figure(3, 3, width=4.0, height=4.2, margin=0.2)
    share, against, scale = axes
    for index, ((confidence, design), coverage) in enumerate(measured.items()):
        thick = {"linewidth": 3.5, "alpha": 0.45} if design == "full" else {"linewidth": 1.5}
        style = {"color": style_of(index)[0], "marker": "." if coverage.error.shape[1] < 3 else None, **thick}
        for arm, dash in enumerate(ARMS.values()):
            at, inside = _windows(coverage.inside[:, :, arm].mean(axis=0), np.mean)
            share.plot(at, inside, linestyle=dash, **style)
            against.plot(*_distribution(coverage.ratio[:, :, arm]), linestyle=dash, **style)
        at, gamma = _windows(coverage.scale[:, :, 0].mean(axis=0), np.mean)
        scale.plot(at, gamma, label=f"{confidence} γ, {design} Z", **style)
        at, needed = _windows(coverage.ratio[:, :, 1].T, lambda block: np.quantile(block, SHARE, method="higher"))
        scale.plot(at, needed, linestyle=ARMS["random"], **style)
    scale.plot([], [], color=GREY, linestyle=ARMS["random"], label=f"needed for {100 * SHARE:.0f} % of random arms")
    for axis in (share, against):
        axis.set_ylim(-0.02, 1.05)
    share.set_title("h(x) inside f ± γ·width", fontsize=10)
    share.set_ylabel("share of arms")
    against.set_title("with another γ", fontsize=10)
    against.set_xlabel("γ")
    against.set_xscale("log")
    against.set_xlim(left=1e-2)
    for name, dash in ARMS.items():
        against.plot([], [], color=GREY, linestyle=dash, label=f"{name} arms")
    against.legend(frameon=False, fontsize=8, loc="lower right")
    scale.set_title("γ played, and needed", fontsize=10)
    scale.set_yscale("log")
    for axis in (share, scale):
        axis.set_xlabel("round")
    for axis in axes:
        tidy(axis)
    figure.legend(*scale.get_legend_handles_labels(), frameon=False, fontsize=8.5, loc="outside lower center", ncols=5)
    figure.suptitle(title, fontsize=11, parse_math=False)
    save(figure, paths)


@contextmanager
def stages(console: Console, *, quiet: bool = False) -> Iterator[Meter]:
    """A progress bar per stage on a terminal; elsewhere a line as each begins and now and then, or nothing if quiet."""
    if not console.is_terminal:
        if quiet:
            yield lambda name: None
            return
        with Lines(console).running() as lines:
            yield lines.begin
        return
    columns = bars.TextColumn("{task.description}", markup=False), bars.BarColumn(), bars.TimeElapsedColumn()
    with bars.Progress(*columns, console=console) as shown:

        def stage(name: str) -> Progress:
            task = shown.add_task(name, total=None)
            return lambda done, total: shown.update(task, completed=done, total=total)

        yield stage


def _write_table(
    rows: Sequence[Sequence[str]], notes: Sequence[str], figures: Sequence[Path], console: Console
) -> None:
    """Write the table and its notes beside the figures; print the notes and all paths."""
    text = markdown_table(rows) + "".join(f"\nNote: {note}.\n" for note in notes)
    table = write_text(figures[0].with_suffix(".md"), text)
    for note in notes:
        console.print(f"note: {note}.", soft_wrap=True)
    console.print(f"figure: {', '.join(map(str, figures))}\ntable:  {table}", soft_wrap=True)


def _spectrum(axis: Any, report: Report) -> None:
    axis.set_title("eigenvalues of the kernel", fontsize=10)
    axis.set_xlabel("rank")
    if report.eigenvalues is None:
        _say(axis, "H does not fit into memory")
        return
    positive = report.eigenvalues[report.eigenvalues > report.eigenvalues[0] * 1e-17 * len(report.eigenvalues)]
    axis.loglog(np.arange(1, len(positive) + 1), positive, color=style_of(0)[0])
    axis.axhline(report.over.regularization, color=GREY, linewidth=1, linestyle=(0, (5, 1.5)))
    axis.annotate(
        "λ", (1, report.over.regularization), xytext=(2, 2), textcoords="offset points", color=GREY, fontsize=9
    )


def _over_rounds(axis: Any, report: Report) -> None:
    axis.set_title("effective dimension against rounds", fontsize=10)
    axis.set_xlabel("T")
    axis.set_ylabel("d̃")
    if not report.rounds.size:
        _say(axis, f"d̃ = {report.effective_dimension:.1f} ± {report.effective_dimension_error:.1f}")
        return
    if np.isnan(report.dimensions).any():
        _say(axis, "λ is lost in rounding")
        return
    axis.plot(report.rounds, report.dimensions, color=style_of(0)[0], marker="." if len(report.rounds) < 3 else None)
    axis.set_xlim(0, max(report.rounds[-1], 2))
    axis.set_ylim(0, 1.08 * report.dimensions.max())


def _over_regularization(axis: Any, report: Report) -> None:
    axis.set_title("effective dimension against λ", fontsize=10)
    axis.set_xlabel("λ")
    axis.set_ylabel("d̃")
    lambdas, found = report.dimensions_by_regularization()
    if not found.size:
        _say(axis, "H does not fit into memory")
        return
    if np.isnan(report.effective_dimension):
        _say(axis, "λ is lost in rounding")
        return
    axis.loglog(lambdas, found, color=style_of(0)[0])
    axis.plot(report.over.regularization, report.effective_dimension, "o", color=style_of(1)[0], markersize=5)
    right = report.over.regularization > RIGHT_HALF
    axis.annotate(
        f"λ = {report.over.regularization:g}: d̃ = {report.effective_dimension:.1f}",
        (report.over.regularization, report.effective_dimension),
        xytext=(-7 if right else 7, 4),
        ha="right" if right else "left",
        textcoords="offset points",
        fontsize=9,
    )
    axis.margins(y=0.12)


def _bound(axis: Any, report: Report, measured: Result) -> None:
    axis.set_title("bound and measured regret", fontsize=10)
    axis.set_xlabel("round")
    axis.set_ylabel("cumulative regret")
    known = np.isfinite(report.bounds)
    marker = "." if measured.rounds < 3 else None
    if known.any():
        colour, dash = style_of(1)
        axis.plot(
            report.rounds[known],
            report.bounds[known],
            color=colour,
            linestyle=dash,
            marker=marker,
            label="Theorem 1",
        )
    curve, colour = curve_of(measured), style_of(0)[0]
    label = f"NeuralUCB, {counted(len(measured.seeds), 'seed')}"
    axis.plot(curve.rounds, curve.regret.mean(axis=0), color=colour, marker=marker, label=label)
    if curve.band is not None:
        axis.fill_between(curve.rounds, *curve.band, color=colour, alpha=0.18, linewidth=0)
    if measured.regret.max() > 0:
        axis.set_yscale("log")
    axis.legend(frameon=False, fontsize=9)


def _windows(values: np.ndarray, summary: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, np.ndarray]:
    """The round in the middle of each window, and the summary of the values in it; their first axis is rounds."""
    edges = np.unique(np.linspace(0, len(values), min(WINDOWS, len(values)) + 1).astype(int))
    middles = (edges[:-1] + edges[1:] + 1) / 2
    return middles, np.asarray([summary(values[a:b]) for a, b in pairwise(edges)])


def _distribution(ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """γ, and the share of intervals that hold with it."""
    scales = np.sort(ratio[np.isfinite(ratio) & (ratio > 0)])
    zeros = int((ratio == 0).sum())
    kept = np.unique(np.linspace(0, max(len(scales) - 1, 0), min(WINDOWS * 5, len(scales))).astype(int))
    return scales[kept], (zeros + kept + 1) / ratio.size


def _say(axis: Any, why: str) -> None:
    """Words in the middle of an empty panel."""
    axis.text(0.5, 0.5, why, ha="center", va="center", transform=axis.transAxes, fontsize=9, color=GREY)


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
