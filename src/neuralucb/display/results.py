"""What a person sees: progress while it runs, then the table, the figure and what went wrong."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from neuralucb.display.figures import curve_of, draw_regret
from neuralucb.display.tables import markdown, terminal
from neuralucb.experiments.results import Result
from neuralucb.runtime.files import write_whole

__all__ = ["show"]


def show(panels: Sequence[Sequence[Result]], folder: Path, name: str, *, out: Console, err: Console) -> None:
    """Print the table, write it and the figure into the folder, and say where they are."""
    results = [result for panel in panels for result in panel]
    out.print(terminal(results, title=f"final regret after {results[0].rounds} rounds, {len(results[0].seeds)} seeds"))
    text = markdown(results)
    figure = folder / f"{name}.png"
    draw_regret([[curve_of(result) for result in panel] for panel in panels], [figure])
    table = write_whole(folder / f"{name}.md", lambda path: path.write_text(text, encoding="utf-8"))
    for result in results:
        if result.diverged:
            which = ", ".join(str(seed) for seed, at in zip(result.seeds, result.diverged_at, strict=True) if at)
            cure = "step_size" if "step_size" in result.settings else "exploration, or a larger regularization,"
            err.print(
                f"[red]{result.algorithm} on {result.problem} diverged for seeds {which}[/red]: its regret is no "
                f"estimate of the algorithm's; a smaller {cure} is the usual cure."
            )
    running, compiling = (
        sum(values) for values in zip(*((r.seconds, r.compile_seconds) for r in results), strict=True)
    )
    out.print(f"{running:.1f} s running, {compiling:.1f} s compiling")
    out.print(f"figure: {figure}\ntable:  {table}", soft_wrap=True)
