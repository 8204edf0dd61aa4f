"""Figures: cumulative regret over rounds, mean and 95 % band. Safe for the colour-blind, and legible in grey."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.experiments.results import Curve, Result
from neuralucb.experiments.statistics import FEW_SEEDS, band
from neuralucb.experiments.tables import title_of
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_whole
from neuralucb.runtime.words import counted

__all__ = [
    "FORMATS",
    "curve_of",
    "draw_regret",
    "new_figure",
    "plot_results",
    "save",
    "style_of",
    "tidy",
]

FORMATS = ("png", "pdf", "svg")

COLOURS = (
    "#0014b1", "#eb6214", "#4e9dff", "#761400", "#b1769d", "#3b144e",
    "#3b4eff", "#b13b00", "#764e76", "#eb9d9d", "#c4d827", "#00d8ff",
)  # fmt: skip
"""At least 0.136 apart in OKLab, for normal sight and for protanopia, deuteranopia and tritanopia as simulated by
Machado, Oliveira & Fernandes 2009. Those that are light on white paper come last."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),  # dashes
    (0, (1, 1.2)),  # dots
    (0, (6, 1.5, 1, 1.5)),  # dash, dot
    (0, (13, 3)),  # long dashes
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),  # dash, dot, dot
    (0, (2.5, 1.5)),  # short dashes
    (0, (13, 2, 4, 2)),  # long dash, short dash
    (0, (13, 2, 1, 2, 1, 2, 1, 2)),  # long dash, three dots
    (0, (3, 6)),  # short dashes with wide gaps
    (0, (9, 1.5, 3, 1.5, 3, 1.5)),  # dash, two short dashes
    (0, (10, 6, 1, 6)),  # dash, dot, with wide gaps
)

BASELINES: dict[str, tuple[str, Any]] = {"uniform": ("#777777", (0, (1, 5))), "oracle": ("#777777", "-")}
"""Colour and dash of the lines that stay in the background."""

HANDLE_LENGTH = 5
"""Of a line in the legend: long enough to show its pattern."""

INNER_LEGEND = 5
"""The most lines of a legend inside a panel; with more, one legend stands beside the figure."""

WIDTH, HEIGHT = 4.6, 3.9
"""Of a panel, in inches."""

CURVE_POINTS = 500
"""The most points drawn per curve: as many as a figure can show."""


def curve_of(result: Result) -> Curve:
    """A result as a line of a figure."""
    points = np.unique(np.linspace(0, result.rounds - 1, min(CURVE_POINTS, result.rounds)).astype(int))
    curves = result.regret[:, points]
    return Curve(result.algorithm, result.problem, points + 1, curves, band(curves), result.diverged)


def draw_regret(panels: Sequence[Sequence[Curve]], paths: Sequence[Path], *, columns: int = 4) -> None:
    """Draw cumulative regret, one line per algorithm.

    Args:
        panels: One panel per problem.
        paths: Files to write; their endings name the format.
        columns: The most panels in a row.
    """
    crowded = _is_crowded(panels)
    across = min(columns, len(panels))
    figure, axes = new_figure(len(panels), across, width=WIDTH, height=HEIGHT, margin=_margin(crowded))
    _draw_panels(axes, panels, across, beside=figure if crowded else None)
    save(figure, paths)


def plot_results(panels: Sequence[Sequence[Result]], axes: Sequence[Any] | None) -> list[Any]:
    """Draw cumulative regret for a user: into axes of theirs, or into a new figure of pyplot, which notebooks show.

    Args:
        panels: One panel per problem.
        axes: One per panel; None for a new figure.

    Returns:
        The axes.

    Raises:
        InputError: If matplotlib is not installed, or axes and panels are not as many.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ImportError:
        raise InputError("plot needs matplotlib, which is not installed; pip install matplotlib.") from None
    curves = [[curve_of(result) for result in panel] for panel in panels]
    if axes is not None:
        if len(axes) != len(panels) or not all(isinstance(each, Axes) for each in axes):
            raise InputError(f"ax must be axes of matplotlib, one per problem ({len(panels)}), got {list(axes)!r}.")
        _draw_panels(axes, curves, 1, beside=None)
        return list(axes)
    crowded, across = _is_crowded(curves), min(4, len(panels))
    down = -(-len(panels) // across)
    size = (WIDTH * across + _margin(crowded), HEIGHT * down)
    figure, made = pyplot.subplots(down, across, squeeze=False, figsize=size, layout="constrained")
    flat = list(made.flat)
    for spare in flat[len(panels) :]:
        spare.remove()
    _draw_panels(flat[: len(panels)], curves, across, beside=figure if crowded else None)
    return flat[: len(panels)]


def new_figure(panels: int, across: int, *, width: float, height: float, margin: float) -> tuple[Any, list[Any]]:
    """A figure and its axes, `across` in a row; made without pyplot, which would change global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    down = -(-panels // across)
    figure = Figure(figsize=(width * across + margin, height * down), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for spare in axes[panels:]:
        spare.remove()
    return figure, axes[:panels]


def save(figure: Any, paths: Sequence[Path]) -> None:
    """Write a figure to each of these paths; their endings name the format. SVG keeps its text as text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "neuralucb", "pdf.fonttype": 42}):
        for path in paths:
            kind = path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else {}
            write_whole(path, partial(figure.savefig, format=kind, metadata=metadata))


def style_of(index: int) -> tuple[str, Any]:
    """Colour and dash of the index-th line: both are new for the first twelve, and together they are for 144."""
    return COLOURS[index % len(COLOURS)], DASHES[(index + index // len(COLOURS)) % len(DASHES)]


def tidy(axis: Any) -> None:
    """Give an axis a light grid and no box."""
    axis.grid(alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _is_crowded(panels: Sequence[Sequence[Curve]]) -> bool:
    """Whether the lines are too many for a legend inside a panel."""
    return len({curve.algorithm for curves in panels for curve in curves}) > INNER_LEGEND


def _margin(crowded: bool) -> float:
    """Room beside the panels for their legend."""
    return 2.4 if crowded else 0.4


def _draw_panels(axes: Sequence[Any], panels: Sequence[Sequence[Curve]], across: int, *, beside: Any) -> None:
    """Draw each panel into its axes; one legend beside all of them, if there is a figure for it, or one in each."""
    drawn = dict.fromkeys(curve.algorithm for curves in panels for curve in curves)
    names = [name for name in drawn if name not in BASELINES]
    everywhere = _labels([curve for curves in panels for curve in curves])
    for axis, curves in zip(axes, panels, strict=True):
        labels = _labels(curves) if beside is None else everywhere
        _draw_panel(axis, curves, names, labels, shade=0.18 if len(drawn) <= INNER_LEGEND else 0.08)
        if beside is None:
            axis.legend(frameon=False, fontsize=9, loc="upper left", handlelength=HANDLE_LENGTH)
    if beside is not None:
        lines = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        where = {"loc": "outside right upper", "handlelength": HANDLE_LENGTH}
        beside.legend(lines.values(), lines.keys(), frameon=False, fontsize=9, **where)
    for axis in axes[::across]:
        axis.set_ylabel("cumulative regret")


def _labels(curves: Sequence[Curve]) -> dict[str, str]:
    """Legend entries by algorithm: its title, and how many of its runs diverged."""
    labels = {}
    for name in dict.fromkeys(curve.algorithm for curve in curves):
        mine = [curve for curve in curves if curve.algorithm == name]
        diverged, seeds = sum(curve.diverged for curve in mine), sum(len(curve.regret) for curve in mine)
        labels[name] = title_of(name) + (f" ({diverged} of {seeds} diverged)" if diverged else "")
    return labels


def _draw_panel(
    axis: Any, curves: Sequence[Curve], names: Sequence[str], labels: Mapping[str, str], *, shade: float
) -> None:
    for curve in curves:
        colour, dash = BASELINES.get(curve.algorithm) or style_of(names.index(curve.algorithm))
        mean = curve.regret.mean(axis=0)
        axis.plot(curve.rounds, mean, color=colour, linestyle=dash, label=labels[curve.algorithm])
        if 1 < len(curve.regret) < FEW_SEEDS:  # a band of two seeds is twelve standard errors wide
            axis.plot(curve.rounds, curve.regret.T, color=colour, alpha=0.4, linewidth=0.6)
        elif curve.band is not None:
            axis.fill_between(curve.rounds, *curve.band, color=colour, alpha=shade, linewidth=0)
    seeds = len(curves[0].regret)
    title = f"{curves[0].problem} ({counted(seeds, 'seed')})"
    note = "\ntoo few for a band: thin lines are single seeds" if 1 < seeds < FEW_SEEDS else ""
    axis.set_title(title + note, fontsize=11, parse_math=False)
    axis.set_xlabel("round")
    axis.set_xlim(0, max(curve.rounds[-1] for curve in curves))
    axis.set_ylim(bottom=0)
    tidy(axis)
