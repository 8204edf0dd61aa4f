"""Results of runs as people read them: the table of final regrets, the figure, and which runs diverged."""

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from neuralucb import __version__
from neuralucb.display.figures import curve_of, draw_regret
from neuralucb.display.tables import markdown_table, terminal_table
from neuralucb.experiments.results import Result
from neuralucb.runtime.files import write_whole

__all__ = ["result_rows", "show_results"]

HEAD = ["algorithm", "problem", "mean", "std", "95 % interval", "worst", "diverged"]


def show_results(panels: Sequence[Sequence[Result]], folder: Path, name: str, *, out: Console, err: Console) -> None:
    """Print the table, write it and the figure to the folder, and say where they are; warn of diverged runs.

    Args:
        panels: one panel of the figure each: the results on one problem.
        folder: where `name`.png and `name`.md are written.
        name: of the two files, without an ending.
        out: where the table and the paths are printed.
        err: where diverged runs are reported.
    """
    results = [result for panel in panels for result in panel]
    title = f"final regret after {results[0].rounds} rounds, {len(results[0].seeds)} seeds"
    marked = [_mark_diverged(row, result) for row, result in zip(result_rows(results), results, strict=True)]
    out.print(terminal_table([HEAD, *marked], title=title, left=2))
    figure = folder / f"{name}.png"
    draw_regret([[curve_of(result) for result in panel] for panel in panels], [figure])
    text = _page(results)
    table = write_whole(folder / f"{name}.md", lambda path: path.write_text(text, encoding="utf-8"))
    for result in results:
        if result.diverged:
            err.print(_warning(result))
    running, compiling = sum(result.seconds for result in results), sum(result.compile_seconds for result in results)
    out.print(f"{running:.1f} s running, {compiling:.1f} s compiling")
    out.print(f"figure: {figure}\ntable:  {table}", soft_wrap=True)


def result_rows(results: Sequence[Result]) -> list[list[str]]:
    """Final regret over seeds, one row per result, in the order of `HEAD`."""
    rows = []
    for result in results:
        summary = result.summary()
        rows.append(
            [
                result.algorithm,
                result.problem,
                _number(summary.mean),
                _number(summary.std),
                "–" if math.isnan(summary.low) else f"{_number(summary.low)} to {_number(summary.high)}",
                _number(float(result.final_regret.max())),
                f"{result.diverged} of {len(result.seeds)}",
            ]
        )
    return rows


def _mark_diverged(row: list[str], result: Result) -> Sequence[str | Text]:
    """The row with its last cell in red if runs diverged."""
    return [*row[:-1], Text(row[-1], style="red" if result.diverged else "")]


def _page(results: Sequence[Result]) -> str:
    """The table as Markdown, and the settings behind it."""
    first = results[0]
    lines = [f"Final regret after {first.rounds} rounds, seeds {', '.join(str(seed) for seed in first.seeds)}."]
    lines += [f"neuralucb {__version__}, {first.device}. Settings:", ""]
    for result in results:
        settings = ", ".join(f"{name}={value}" for name, value in result.settings.items())
        lines.append(f"- {result.algorithm} on {result.problem}, learning by schedule {result.schedule}: {settings}")
    return markdown_table([HEAD, *result_rows(results)]) + "\n" + "\n".join(lines) + "\n"


def _warning(result: Result) -> Text:
    """Which seeds diverged, and the usual cure."""
    seeds = ", ".join(str(seed) for seed, at in zip(result.seeds, result.diverged_at, strict=True) if at)
    cure = "step_size" if "step_size" in result.settings else "exploration, or a larger regularization,"
    return Text.assemble(
        (f"{result.algorithm} on {result.problem} diverged for seeds {seeds}", "red"),
        f": its regret says nothing about the algorithm; a smaller {cure} is the usual cure.",
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"
