"""Results of runs as people read them: the table of final regrets, the figure, and which runs diverged."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from neuralucb import __version__
from neuralucb.display.figures import curve_of, draw_regret
from neuralucb.display.tables import markdown_table, terminal_table
from neuralucb.experiments.comparisons import Comparison
from neuralucb.experiments.results import Result
from neuralucb.experiments.statistics import few_seeds
from neuralucb.experiments.tables import difference_table, result_table, title_of
from neuralucb.runtime.files import write_text
from neuralucb.runtime.words import counted

__all__ = ["show_results"]

PAIRED = "difference of final regret, paired by seed"


def show_results(
    panels: Sequence[Sequence[Result]],
    folder: Path,
    name: str,
    *,
    out: Console,
    err: Console,
    formats: Sequence[str] = ("png",),
    compared: Comparison | None = None,
) -> None:
    """Print the table, write it and the figure to the folder, and say where they are; warn of diverged runs.

    Args:
        panels: One panel of the figure each: the results on one problem.
        folder: Where the figure and `name`.md are written.
        name: Of the files, without an ending.
        out: Where the table and the paths are printed.
        err: Where diverged runs are reported.
        formats: Of the figure, a file each.
        compared: Those of the results whose differences, paired by seed, are shown too.
    """
    results = [result for panel in panels for result in panel]
    seeds = len(results[0].seeds)
    title = f"final regret after {counted(results[0].rounds, 'round')}, {counted(seeds, 'seed')}"
    head, *rows = result_table(results)
    marked = [_mark_diverged(row, result) for row, result in zip(rows, results, strict=True)]
    out.print(terminal_table([head, *marked], title=title, left=2))
    differences = [] if compared is None else difference_table(compared)
    if len(differences) > 1:
        out.print(terminal_table(differences, title=PAIRED, left=2))
    if few_seeds(seeds):
        out.print(few_seeds(seeds), soft_wrap=True)
    figures = [folder / f"{name}.{form}" for form in formats]
    draw_regret([[curve_of(result) for result in panel] for panel in panels], figures)
    table = write_text(folder / f"{name}.md", _page(results, differences))
    for result in results:
        if result.diverged:
            err.print(_warning(result))
    running, compiling = sum(result.seconds for result in results), sum(result.compile_seconds for result in results)
    beside = ", several programs at a time" if len(results) > 1 else ""  # then the sum is longer than the command took
    out.print(f"{running:.1f} s running, {compiling:.1f} s compiling{beside}")
    out.print(f"figure: {', '.join(map(str, figures))}\ntable:  {table}", soft_wrap=True)


def _mark_diverged(row: list[str], result: Result) -> Sequence[str | Text]:
    """The row with its last cell in red if runs diverged."""
    return [*row[:-1], Text(row[-1], style="red" if result.diverged else "")]


def _page(results: Sequence[Result], differences: Sequence[Sequence[str]]) -> str:
    """The tables as Markdown, and the settings behind them."""
    first = results[0]
    seeds = f"{'seed' if len(first.seeds) == 1 else 'seeds'} {', '.join(str(seed) for seed in first.seeds)}"
    lines = [f"Final regret after {counted(first.rounds, 'round')}, {seeds}."]
    lines += [remark] if (remark := few_seeds(len(first.seeds))) else []
    lines += [f"neuralucb {__version__}, {first.device}. Settings:", ""]
    for result in results:
        settings = ", ".join(f"{name}={value}" for name, value in result.settings.items())
        who = f"{title_of(result.algorithm)} (`{result.algorithm}`) on {result.problem}"
        lines.append(f"- {who}, learning by schedule {result.schedule}: {settings}")
    paired = f"\n{PAIRED.capitalize()}:\n\n{markdown_table(differences)}" if len(differences) > 1 else ""
    return markdown_table(result_table(results)) + paired + "\n" + "\n".join(lines) + "\n"


def _warning(result: Result) -> Text:
    """Which seeds diverged, and the usual cure."""
    failed = [str(seed) for seed, at in zip(result.seeds, result.diverged_at, strict=True) if at]
    seeds = f"{'seed' if len(failed) == 1 else 'seeds'} {', '.join(failed)}"
    cure = "step_size" if "step_size" in result.settings else "exploration, or a larger regularization,"
    return Text.assemble(
        (f"{title_of(result.algorithm)} on {result.problem} diverged for {seeds}", "red"),
        f": its regret says nothing about the algorithm; a smaller {cure} is the usual cure.",
    )
