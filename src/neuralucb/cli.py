"""The command line: list, run, compare, demo. Needs the extra `experiments`."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer
    from rich.console import Console
except ImportError as missing:  # the core installs without them
    raise SystemExit(
        f"{missing.name} is missing: pip install 'neuralucb[experiments]' brings the command line."
    ) from None

if TYPE_CHECKING:
    from neuralucb.experiments import Result
    from neuralucb.settings import Setting

__all__ = ["app", "main"]

app = typer.Typer(
    help="Neural contextual bandits: run, compare and reproduce.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

Rounds = Annotated[int, typer.Option(help="Rounds to play (T).")]
Seeds = Annotated[int, typer.Option(help="Runs, with seeds 0, 1, …")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting, as often as you like.")]
PresetName = Annotated[str, typer.Option("--preset", help="A bundle of settings: see `neuralucb list`.")]
When = Annotated[str | None, typer.Option(help="When to learn: 50, or 10:500,50:2000,100. Default: the preset's.")]
Out = Annotated[Path, typer.Option(help="Folder for the figure and the table.", file_okay=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


def main() -> None:
    """Run the command; bad input is one red message and exit code 2, never a traceback."""
    try:
        app()
    except ValueError as problem:
        err.print(f"[bold red]error:[/bold red] {_escape(str(problem))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("stopped; nothing half-written was left.")
        sys.exit(130)


@app.command("list")
def list_all(algorithm: Annotated[str | None, typer.Argument(help="Show this algorithm's settings.")] = None) -> None:
    """Algorithms, problems and presets; or the settings of one algorithm."""
    from rich.table import Table

    from neuralucb.algorithms import ALGORITHMS, find_algorithm
    from neuralucb.presets import PRESETS
    from neuralucb.problems import PROBLEMS

    if algorithm is not None:
        chosen = find_algorithm(algorithm)
        out.print(f"[bold]{chosen.name}[/bold]: {chosen.summary}. {chosen.citation}.")
        out.print(f"Departs from the paper in {chosen.departs}. The grid is the one the paper searched.\n")
        out.print(_settings_table(chosen.settings))
        return
    for title, entries in (("algorithms", ALGORITHMS), ("problems", PROBLEMS), ("presets", PRESETS)):
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for entry in entries.values():
            table.add_row(f"[bold]{entry.name}[/bold]", entry.summary)
        out.print(table)
        out.print()


@app.command()
def run(
    algorithm: Annotated[str, typer.Argument(help="See `neuralucb list`.")],
    problem: Annotated[str, typer.Argument(help="See `neuralucb list`.")],
    rounds: Rounds = 10_000,
    seeds: Seeds = 10,
    settings: Set = None,
    preset: PresetName = "paper",
    schedule: When = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the figure and the table.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """One algorithm on one problem: its regret over all seeds, as a table and a figure."""
    from neuralucb import experiments

    given = _read_set(settings)
    _prepare_folder(folder, unless=as_json)
    _cache_compilations()
    with _progress([algorithm], quiet=as_json) as meter:
        result = experiments.run(
            algorithm,
            problem,
            rounds=rounds,
            seeds=seeds,
            preset=preset,
            schedule=schedule,
            progress=meter(algorithm),
            **given,
        )
    if as_json:
        print(json.dumps(result.as_json(), allow_nan=False))
        return
    _show([[result]], folder, f"{algorithm}-{problem}", title=f"final regret after {rounds} rounds")


@app.command()
def compare(
    problem: Annotated[str, typer.Argument(help="See `neuralucb list`.")],
    algorithms: Annotated[str, typer.Option(help="Names with commas between, or all.")] = "all",
    rounds: Rounds = 10_000,
    seeds: Seeds = 10,
    settings: Set = None,
    preset: PresetName = "paper",
    schedule: When = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the figure and the table.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Several algorithms on the same problems, contexts and noise: one table, one figure."""
    from neuralucb import experiments
    from neuralucb.algorithms import ALGORITHMS

    names = (
        list(ALGORITHMS) if algorithms == "all" else [name.strip() for name in algorithms.split(",") if name.strip()]
    )
    given = _read_set(settings)
    _prepare_folder(folder, unless=as_json)
    _cache_compilations()
    with _progress(names, quiet=as_json) as meter:
        results = experiments.compare(
            problem, names, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule, progress=meter, **given
        )
    if as_json:
        print(json.dumps({"problem": problem, "results": [result.as_json() for result in results]}, allow_nan=False))
        return
    _show([results], folder, f"compare-{problem}", title=f"final regret after {rounds} rounds")


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the figure and the table.")] = Path("demo"),
    rounds: Rounds = 2_000,
    seeds: Seeds = 4,
) -> None:
    """NeuralUCB, Neural ε-greedy and LinUCB on h1, h2 and h3, at a reduced size: a minute on two cores."""
    from neuralucb import experiments

    names = ["neural-ucb", "neural-epsilon-greedy", "lin-ucb"]
    best_of_grid: dict[str, dict[str, Any]] = {
        "h1": {"step_size": 0.1, "exploration": 0.1},
        "h2": {"step_size": 0.01, "exploration": 1},
        "h3": {"step_size": 0.1, "exploration": 0.1},
    }
    _prepare_folder(folder, unless=False)
    _cache_compilations()
    panels = []
    with _progress([f"{problem} {name}" for problem in best_of_grid for name in names], quiet=False) as meter:
        for problem, settings in best_of_grid.items():
            meters = _prefixed(meter, problem)
            panels.append(experiments.compare(problem, names, rounds=rounds, seeds=seeds, progress=meters, **settings))
    _show(panels, folder, "regret", title=f"final regret after {rounds} rounds (the paper plays 10 000)")


def _show(panels: Sequence[Sequence["Result"]], folder: Path, name: str, *, title: str) -> None:
    from neuralucb.experiments.figures import draw_regret, write_whole
    from neuralucb.experiments.tables import markdown, terminal

    results = [result for results in panels for result in results]
    out.print(terminal(results, title=title))
    figure = draw_regret(panels, folder / f"{name}.png")
    text = markdown(results)
    table = write_whole(folder / f"{name}.md", lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    for result in results:
        if result.diverged:
            which = ", ".join(str(seed) for seed, at in zip(result.seeds, result.diverged_at, strict=True) if at)
            err.print(
                f"[red]{result.algorithm} on {result.problem} diverged for seeds {which}[/red]: its later choices are "
                "random and its regret is no estimate of the algorithm's; a smaller step_size is the usual cure."
            )
    spent = sum(result.seconds for result in results), sum(result.compile_seconds for result in results)
    out.print(f"{spent[0]:.1f} s running, {spent[1]:.1f} s compiling")
    out.print(f"figure: {figure}\ntable:  {table}", highlight=False, soft_wrap=True)


def _settings_table(settings: Sequence["Setting"]) -> Any:
    from rich.table import Table

    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for head in ("setting", "symbol", "default", "grid", "meaning"):
        table.add_column(head, no_wrap=head != "meaning")
    for setting in settings:
        grid = ", ".join(f"{value:g}" for value in setting.grid)
        meaning = _escape(f"{setting.meaning}: {setting.allowed}")
        table.add_row(setting.name, setting.symbol, str(setting.default), grid, meaning)
    return table


def _read_set(items: Sequence[str] | None) -> dict[str, str]:
    given: dict[str, str] = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"--set must be NAME=VALUE, got {item!r}; for example --set step_size=0.1.")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def _prepare_folder(folder: Path, *, unless: bool) -> None:
    """Fail before computing, not after, if nothing can be written."""
    if unless:
        return
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise ValueError(f"--out {folder} cannot be written ({problem.strerror}); name another folder.") from None


def _cache_compilations() -> None:
    """Keep compiled programs between commands, in the user's cache folder; this process is ours to configure."""
    import os

    import jax

    if jax.config.values["jax_compilation_cache_dir"] is None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "neuralucb" / "compiled"))


@contextmanager
def _progress(names: Sequence[str], *, quiet: bool) -> Iterator[Callable[[str], Callable[[int, int], None] | None]]:
    """A bar for each name, with rounds done and time left; a line each when nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from neuralucb.experiments.pace import Pace

    if quiet or not err.is_terminal:
        yield lambda name: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=err) as bars:
        tasks = {name: bars.add_task(name, total=None, start=False, left="", visible=False) for name in names}

        def meter(name: str) -> Callable[[int, int], None]:
            pace = Pace()
            bars.update(tasks[name], visible=True, left="compiling")
            bars.start_task(tasks[name])

            def report(done: int, whole: int) -> None:
                bars.update(tasks[name], completed=done, total=whole, left=pace.left(done, whole))

            return report

        yield meter


def _prefixed(meter: Callable[[str], Any], problem: str) -> Callable[[str], Any]:
    return lambda name: meter(f"{problem} {name}")


def _escape(text: str) -> str:
    return text.replace("[", "\\[")


if __name__ == "__main__":
    main()
