"""A race as a picture: a line per setting, which ends where the setting was dropped."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuralucb.display.figures import new_figure, save, tidy
from neuralucb.experiments.tables import title_of
from neuralucb.runtime.words import counted

__all__ = ["draw_races"]

COLOURS = {"left": "#0014b1", "worse": "#9aa7b5", "diverged": "#eb6214"}
"""Of settings by what became of them; diverged ones are dashed too, for those who see no colours."""

LABELLED = 24
"""The most settings whose values are written beside their lines."""


def draw_races(races: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> None:
    """Draw the races on one problem, one panel per algorithm; an algorithm without a choice has none.

    Args:
        races: As the store keeps them.
        paths: Files to write; their endings name the format.
    """
    drawn = [race for race in races if race["settings"] > 1] or list(races)
    across = min(4, len(drawn))
    labelled = max(race["settings"] for race in drawn) <= LABELLED
    figure, axes = new_figure(len(drawn), across, width=5.4 if labelled else 3.8, height=3.4, margin=0.4)
    for axis, race in zip(axes, drawn, strict=True):
        _draw(axis, race, labelled=labelled)
    handles = {
        label: axes[0].plot([], [], color=COLOURS[what], linestyle=_dash(what), linewidth=2.5)[0]
        for what, label in (("left", "left at the end"), ("worse", "clearly worse"), ("diverged", "diverged"))
    }
    figure.legend(handles.values(), handles.keys(), frameon=False, fontsize=9, loc="outside lower center", ncols=3)
    save(figure, paths)


def _draw(axis: Any, race: Mapping[str, Any], *, labelled: bool) -> None:
    """The settings that went furthest on top, the best of those that are left first."""
    reached = max((stage["rounds"] for stage in race["stages"]), default=0)
    lines = [("left", reached, setting) for setting in race["left"]]
    lines += [
        (one["why"], one["round"], one["setting"])
        for one in sorted(race["dropped"], key=lambda one: (-one["round"], one.get("difference", 0.0)))
    ]
    width = max(0.8, min(6.0, 150 / len(lines)))
    for place, (what, last, _) in enumerate(lines):
        axis.plot(
            [0, last],
            [place, place],
            color=COLOURS[what],
            linestyle=_dash(what),
            linewidth=width,
            solid_capstyle="butt",
        )
    for stage in race["stages"]:
        axis.axvline(stage["rounds"], color="#cccccc", linewidth=0.6, zorder=0)
    axis.set_ylim(len(lines) - 0.4, -0.6)
    axis.set_xlim(0, race["rounds"])
    axis.set_xlabel("round")
    if labelled:
        axis.set_yticks(range(len(lines)), [_words(setting) for *_, setting in lines], fontsize=6)
    else:
        axis.set_ylabel("settings")
    left = f"{len(race['left'])} of {counted(race['settings'], 'setting')} left"
    axis.set_title(f"{title_of(race['algorithm'])} on {race['problem']}: {left}", fontsize=10, parse_math=False)
    tidy(axis)
    axis.grid(visible=False)


def _dash(what: str) -> Any:
    return (0, (2, 1)) if what == "diverged" else "-"


def _words(setting: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {json.dumps(value)}"
        for name, value in setting.items()
    )
