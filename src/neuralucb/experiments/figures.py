"""Figures: cumulative regret over rounds, mean and 95 % band. Colour-blind safe, and legible in grey by line style."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.experiments.results import Result, interval

__all__ = ["draw_regret", "write_whole"]

# Okabe and Ito's palette, ordered so that neighbours differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    "-.",
    ":",
)
SCALE = {"uniform": ("#777777", (0, (1, 2))), "oracle": ("#777777", "-")}
"""Lines for scale stay in the background."""
CROWD = 5
"""More lines than this, and the legend moves out of the way."""
POINTS = 500
"""Points drawn of a curve: more than a figure can show."""


def draw_regret(panels: Sequence[Sequence[Result]], path: Path) -> Path:
    """One panel a problem, one line an algorithm; written whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = dict.fromkeys(result.algorithm for results in panels for result in results)
    names = [name for name in drawn if name not in SCALE]
    crowded = len(drawn) > CROWD
    figure = Figure(figsize=(4.6 * len(panels) + (2.4 if crowded else 0.4), 3.9), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, results in zip(axes, panels, strict=True):
        _panel(axis, results, names, shade=0.08 if crowded else 0.18)
        if not crowded:
            axis.legend(frameon=False, fontsize=9, loc="upper left")
    if crowded:
        figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside right upper")
    axes[0].set_ylabel("cumulative regret")
    return write_whole(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:]))


def write_whole(path: Path, write: Callable[[Path], Any]) -> Path:
    """Write through a temporary file in the same folder and rename: a killed process leaves no half-written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _panel(axis: Any, results: Sequence[Result], names: Sequence[str], *, shade: float) -> None:
    for result in results:
        rounds = np.unique(np.linspace(0, result.rounds - 1, min(POINTS, result.rounds)).astype(int))
        curves = result.regret[:, rounds]
        label = result.algorithm + (f" ({result.diverged} of {len(result.seeds)} diverged)" if result.diverged else "")
        colour, dash = SCALE.get(result.algorithm) or _style(names.index(result.algorithm))
        axis.plot(rounds + 1, curves.mean(axis=0), color=colour, linestyle=dash, label=label)
        low, high = interval(curves)
        if len(result.seeds) > 1:
            axis.fill_between(rounds + 1, low, high, color=colour, alpha=shade, linewidth=0)
    seeds = len(results[0].seeds)
    axis.set_title(f"{results[0].problem} ({seeds} seed{'s' if seeds > 1 else ''})", fontsize=11)
    axis.set_xlabel("round")
    axis.set_xlim(0, max(result.rounds for result in results))
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _style(index: int) -> tuple[str, Any]:
    return COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
