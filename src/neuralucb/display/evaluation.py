"""An evaluation for people: table, diagnosis, report, and a figure of the estimates over what the log earned."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralucb.display.figures import new_figure, save, style_of, tidy
from neuralucb.display.tables import markdown_table
from neuralucb.evaluation.estimators import METHODS
from neuralucb.evaluation.records import Estimate, Evaluation
from neuralucb.experiments.tables import title_of

__all__ = ["diagnosis", "draw", "report", "table"]


def table(evaluations: Sequence[Evaluation]) -> list[list[str]]:
    """The rows of a table, the head first: what the log earned, then one row per policy and method."""
    logged = evaluations[0].logged
    digits = _digits(logged.error)
    rows = [["policy", "method", "value", "interval", "effective size"]]
    rows.append(["logged policy", "mean", *_figures(logged, digits)])
    for evaluation in evaluations:
        rows += [[title_of(evaluation.policy), one.method, *_figures(one, digits)] for one in evaluation.estimates]
    return rows


def diagnosis(evaluation: Evaluation) -> list[str]:
    """What to know before trusting the estimates, one sentence each."""
    notes = []
    overlap, name = evaluation.overlap, title_of(evaluation.policy)
    if overlap is not None:
        notes.append(
            f"{name}: largest weight {overlap.largest:.3g}, effective share "
            f"{100 * overlap.effective_share:.1f} %, weights average {overlap.mean_weight:.3f} ± "
            f"{overlap.mean_weight_error:.3f}."
        )
        notes += [f"{name}: {word}." for word in overlap.words]
    if evaluation.without_reward:
        notes.append(
            f"{name}: {evaluation.without_reward} decisions without a reward were left out; if "
            "rewards are missing for a reason, every estimate is biased."
        )
    if evaluation.deterministic:
        notes.append(
            f"{name}: {evaluation.deterministic} deterministic decisions were left out; every number, "
            "also what the log earned, is about the other decisions only."
        )
    return [*notes, *(f"{name}: {note}." for note in evaluation.notes)]


def report(evaluations: Sequence[Evaluation], *, title: str) -> str:
    """The table as Markdown, with the diagnosis and what each method trusts."""
    notes = [note for evaluation in evaluations for note in diagnosis(evaluation)]
    used = dict.fromkeys(one.method for evaluation in evaluations for one in evaluation.estimates)
    notes += [f"{method} trusts {METHODS[method]}." for method in used]
    return f"{title}.\n\n{markdown_table(table(evaluations))}\n" + "".join(f"- {note}\n" for note in notes)


def draw(evaluations: Sequence[Evaluation], paths: Sequence[Path], *, level: float) -> None:
    """One panel per policy, one line per method: estimate and interval, over a band for what the log earned."""
    tallest = max(len(evaluation.estimates) for evaluation in evaluations)
    across = 2 if len(evaluations) == 4 else min(3, len(evaluations))
    figure, axes = new_figure(len(evaluations), across, width=4.4, height=1.5 + 0.42 * tallest, margin=0.6)
    for axis, evaluation in zip(axes, evaluations, strict=True):
        _panel(axis, evaluation)
    low, high = (pick(axis.get_xlim()[end] for axis in axes) for end, pick in ((0, min), (1, max)))
    for place, axis in enumerate(axes):
        axis.set_xlim(low, high)
        axis.tick_params(labelleft=place % across == 0)
        axis.set_xlabel(f"reward per decision, {100 * level:g} % interval")
    axes[0].legend(frameon=False, fontsize=9, loc="best")
    save(figure, paths)


def _panel(axis: Any, evaluation: Evaluation) -> None:
    logged = evaluation.logged
    axis.axvspan(logged.low, logged.high, color="#777777", alpha=0.25, linewidth=0)
    axis.axvline(logged.value, color="#555555", linewidth=1.2, linestyle=(0, (4, 2)), label="logged policy")
    methods = list(METHODS)
    for place, one in enumerate(evaluation.estimates):
        colour, _ = style_of(methods.index(one.method))
        reach = [[one.value - one.low], [one.high - one.value]]
        axis.errorbar([one.value], [place], xerr=reach, fmt="o", color=colour, capsize=3, markersize=5)
    axis.set_yticks(range(len(evaluation.estimates)), [one.method for one in evaluation.estimates])
    axis.set_ylim(len(evaluation.estimates) - 0.5, -0.9)
    axis.set_title(title_of(evaluation.policy), fontsize=11, parse_math=False)
    tidy(axis)


def _digits(error: float) -> int:
    """Decimals that show an error to three digits: click rates need more than revenues."""
    return min(max(2 - math.floor(math.log10(error)), 0), 12) if error > 0 else 4


def _figures(one: Estimate, digits: int) -> list[str]:
    value, low, high = ("not known" if math.isnan(x) else f"{x:.{digits}f}" for x in (one.value, one.low, one.high))
    return [value, low if math.isnan(one.low) else f"{low} to {high}", f"{one.effective:,.0f}"]
