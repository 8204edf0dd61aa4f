"""Tables: what the theory says of a problem, and how often intervals hold; for the terminal and as Markdown."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.display.figures import curve_of, new_figure, save, style_of, tidy
from neuralucb.experiments.results import Result
from neuralucb.theory.coverage import Coverage
from neuralucb.theory.report import Report

__all__ = ["coverage_rows", "draw_coverage", "draw_theory", "markdown", "terminal", "theory_rows"]


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


GREY = "#777777"


WINDOWS = 40
"""Points of a coverage curve."""


SHARE = 0.9


MIDDLE = 10
"""A λ beyond it is written to the left of its point."""


ARMS: dict[str, Any] = {"chosen": "-", "random": (0, (4, 1.5))}


def draw_theory(report: Report, measured: Result, paths: Sequence[Path]) -> None:
    """Four panels; one for which there are no numbers says so."""
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


def draw_coverage(measured: Mapping[tuple[str, str], Coverage], title: str, paths: Sequence[Path]) -> None:
    """How often intervals hold over rounds, how often they would with another γ, and γ over rounds.

    A colour for each kind of γ and Z; a full line for chosen arms, a broken one for arms at random.
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
    against.set_title("if γ were another", fontsize=10)
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


def _spectrum(axis: Any, report: Report) -> None:
    axis.set_title("eigenvalues of the kernel", fontsize=10)
    axis.set_xlabel("rank")
    if report.eigenvalues is None:
        _nothing(axis, "H does not fit into memory")
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
        _nothing(axis, f"d̃ = {report.effective_dimension:.1f} ± {report.effective_dimension_error:.1f}")
        return
    if np.isnan(report.dimensions).any():
        _nothing(axis, "λ is lost in rounding")
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
        _nothing(axis, "H does not fit into memory")
        return
    if np.isnan(report.effective_dimension):
        _nothing(axis, "λ is lost in rounding")
        return
    axis.loglog(lambdas, found, color=style_of(0)[0])
    axis.plot(report.over.regularization, report.effective_dimension, "o", color=style_of(1)[0], markersize=5)
    right = report.over.regularization > MIDDLE
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
    held = np.isfinite(report.bounds)
    marker = "." if measured.rounds < 3 else None
    if held.any():
        axis.plot(
            report.rounds[held], report.bounds[held], color=style_of(1)[0], linestyle=style_of(1)[1], marker=marker,
            label="Theorem 1",
        )  # fmt: skip
    curve = curve_of(measured)
    count = len(measured.seeds)
    axis.plot(
        curve.rounds, curve.regret.mean(axis=0), color=style_of(0)[0], marker=marker,
        label=f"NeuralUCB, {count} seed{'s' if count > 1 else ''}",
    )  # fmt: skip
    if curve.band is not None:
        axis.fill_between(curve.rounds, *curve.band, color=style_of(0)[0], alpha=0.18, linewidth=0)
    if measured.regret.max() > 0:
        axis.set_yscale("log")
    axis.legend(frameon=False, fontsize=9)


def _windows(values: np.ndarray, of: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rounds in the middle of each window, and `of` the values in it, whose first axis is rounds."""
    edges = np.unique(np.linspace(0, len(values), min(WINDOWS, len(values)) + 1).astype(int))
    middles = (edges[:-1] + edges[1:] + 1) / 2
    return middles, np.asarray([of(values[a:b]) for a, b in pairwise(edges)])


def _distribution(ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """γ, and the share of intervals that hold with it."""
    scales = np.sort(ratio[np.isfinite(ratio) & (ratio > 0)])
    at_once = int((ratio == 0).sum())
    kept = np.unique(np.linspace(0, max(len(scales) - 1, 0), min(WINDOWS * 5, len(scales))).astype(int))
    return scales[kept], (at_once + kept + 1) / ratio.size


def _nothing(axis: Any, why: str) -> None:
    axis.text(0.5, 0.5, why, ha="center", va="center", transform=axis.transAxes, fontsize=9, color=GREY)
