"""The command line: list, run, compare, demo, and the commands of the other files. Needs the extra `experiments`."""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import rich  # noqa: F401
    import typer
except ImportError as missing:  # the core installs without them
    raise SystemExit(
        f"{missing.name} is missing: pip install 'neuralucb[experiments]' brings the command line."
    ) from None
if TYPE_CHECKING:
    from neuralucb.experiments import Plan, Result
    from neuralucb.settings import Setting
from neuralucb.cli.data import data_app, table1
from neuralucb.cli.logs import evaluate, logs_app, train
from neuralucb.cli.options import (
    AsJson,
    DataFile,
    Label,
    Out,
    PresetName,
    ProblemName,
    Repeat,
    Seeds,
    Set,
    When,
    named_problem,
    prepare_folder,
    read_set,
)
from neuralucb.cli.sweeps import reproduce, resume, sweep
from neuralucb.cli.theory import coverage, theory
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Neural contextual bandits: run, compare and reproduce.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(data_app, name="data")


app.add_typer(logs_app, name="logs")


for command in (table1, reproduce, sweep, resume, theory, coverage, evaluate, train):
    app.command()(command)


Name = Annotated[str, typer.Argument(help="See `neuralucb list`.")]


SOFTWARE_FAULT = 70
"""sysexits.h: an internal error, which the caller cannot mend."""
Rounds = Annotated[int | None, typer.Option(help="Rounds to play (T); default 10 000, or all rows if they are fewer.")]


def main() -> None:
    """Run the command.

    Bad input is one red message and exit code 2, never a traceback; a fault of our own is a traceback and exit code 70.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Greek shows ?, not a traceback
    try:
        app()
    except (InputError, StorageError) as problem:
        _refuse(str(problem))
    except OSError as problem:
        _refuse(f"{problem.filename or 'a file'} cannot be used: {problem.strerror or problem}.")
    except SystemExit as end:
        stopped = _interrupt_behind(end)
        if stopped is None:
            raise
        err.print(str(stopped) or "stopped; nothing half-written was left.", soft_wrap=True)
        _leave(130)
    except Exception:
        err.print(traceback.format_exc(), soft_wrap=True)
        err.print(
            "This is a fault of neuralucb, not of your input: please report it with the lines above.", style="bold red"
        )
        sys.exit(SOFTWARE_FAULT)


@app.command("list")
def list_all(algorithm: Annotated[str | None, typer.Argument(help="Show this algorithm's settings.")] = None) -> None:
    """Algorithms, problems and presets; or the settings of one algorithm."""
    from rich.table import Table

    from neuralucb.algorithms import ALGORITHMS, find_algorithm
    from neuralucb.experiments.presets import PRESETS
    from neuralucb.problems import PROBLEMS

    if algorithm is not None:
        chosen = find_algorithm(algorithm)
        out.print(f"{chosen.name}: {chosen.summary}. {chosen.citation}.", style="bold")
        out.print(
            f"Departs from the paper in {chosen.departs}. The grid is the paper's, or ours where it gives none.\n"
        )
        out.print(_settings_table(chosen.settings))
        return
    for title, entries in (("algorithms", ALGORITHMS), ("problems", PROBLEMS), ("presets", PRESETS)):
        table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2))
        table.add_column(style="bold")
        for key, entry in entries.items():
            table.add_row(key, entry.summary)
        out.print(table)
        out.print()


@app.command()
def run(
    algorithm: Name,
    problem: ProblemName = None,
    rounds: Rounds = None,
    seeds: Seeds = 10,
    settings: Set = None,
    preset: PresetName = None,
    schedule: When = None,
    data: DataFile = None,
    label: Label = None,
    repeat: Repeat = False,
    folder: Out = None,
    as_json: AsJson = False,
) -> None:
    """One algorithm on one problem: its regret over all seeds, as a table and a figure."""
    from neuralucb import experiments

    named = named_problem(problem, data, label)
    options: dict[str, Any] = {
        "rounds": rounds,
        "seeds": seeds,
        "preset": preset,
        "schedule": schedule,
    }
    planned = experiments.plan(named, [algorithm], read_set(settings, repeat), **options)
    results = _play([planned], folder, as_json, name=f"{algorithm}-{named.name}")
    if as_json:
        print(json.dumps(results[0][0].as_json(), allow_nan=False))


@app.command()
def compare(
    problem: ProblemName = None,
    algorithms: Annotated[str, typer.Option(help="Names with commas between, or all.")] = "all",
    rounds: Rounds = None,
    seeds: Seeds = 10,
    settings: Set = None,
    preset: PresetName = None,
    schedule: When = None,
    data: DataFile = None,
    label: Label = None,
    repeat: Repeat = False,
    folder: Out = None,
    as_json: AsJson = False,
) -> None:
    """Several algorithms on the same problems, contexts and noise: one table, one figure."""
    from neuralucb import experiments
    from neuralucb.algorithms import ALGORITHMS

    named = named_problem(problem, data, label)
    names = (
        list(ALGORITHMS) if algorithms == "all" else [part.strip() for part in algorithms.split(",") if part.strip()]
    )
    if not names:
        raise InputError(f"--algorithms must name at least one, got {algorithms!r}.")
    options: dict[str, Any] = {
        "rounds": rounds,
        "seeds": seeds,
        "preset": preset,
        "schedule": schedule,
    }
    planned = experiments.plan(named, names, read_set(settings, repeat), **options)
    results = _play([planned], folder, as_json, name=f"compare-{named.name}")
    if as_json:
        print(json.dumps({"problem": named.name, "results": [one.as_json() for one in results[0]]}, allow_nan=False))


@app.command()
def demo(
    folder: Out = Path("demo"),
    rounds: Annotated[int, typer.Option(help="Rounds to play (T).")] = 2_000,
    seeds: Seeds = 4,
) -> None:
    """NeuralUCB, Neural ε-greedy and LinUCB on h1, h2 and h3, at a reduced size: a minute on two cores."""
    from neuralucb import experiments

    planned = []
    for problem, step_size, exploration in (("h1", 0.1, 0.1), ("h2", 0.01, 10), ("h3", 0.1, 0.1)):
        contenders: dict[str, dict[str, Any]] = {
            "neural-ucb": {"step_size": step_size, "exploration": exploration},
            "neural-epsilon-greedy": {"step_size": step_size, "epsilon": 0.01},
            "lin-ucb": {"exploration": 0.01},
        }
        planned.append(experiments.plan(problem, contenders, {}, rounds=rounds, seeds=seeds))
    _play(planned, folder, False, name="regret")


def _refuse(message: str) -> None:
    err.print("error:", style="bold red", end=" ")
    err.print(message, soft_wrap=True)
    sys.exit(2)


def _leave(code: int) -> None:
    """Leave without tidying up: Python's end beside compiled work that was interrupted may crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _interrupt_behind(end: BaseException | None) -> BaseException | None:
    """The Ctrl-C that a command has ended with, if it has: Typer turns it into an exit code and says nothing."""
    while end is not None and not isinstance(end, KeyboardInterrupt):
        end = end.__context__
    return end


def _play(plans: Sequence["Plan"], folder: Path | None, as_json: bool, *, name: str) -> list[list["Result"]]:
    """Run what is planned; where a figure is drawn, with uniform and oracle added."""
    from neuralucb import experiments
    from neuralucb.display.progress import meters
    from neuralucb.display.results import show_results
    from neuralucb.runtime.compile_cache import keep_compiled

    where = Path("out") if folder is None and not as_json else folder
    if where is not None:
        prepare_folder(where)
        plans = [experiments.with_baselines(planned) for planned in plans]
    keep_compiled()
    panels = []
    for planned in plans:
        with meters(planned, err, quiet=as_json) as meter:
            panels.append(experiments.play(planned, meter))
    if where is not None:
        show_results(panels, where, name, out=err if as_json else out, err=err)
    return panels


def _settings_table(settings: Sequence["Setting"]) -> Any:
    from rich.table import Table

    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for head in ("setting", "symbol", "default", "grid", "meaning"):
        table.add_column(head, overflow="fold", min_width=6)
    for setting in settings:
        grid = ", ".join(f"{value:g}" for value in setting.grid)
        meaning = f"{setting.meaning}: {setting.allowed}"
        table.add_row(setting.name, setting.symbol, str(setting.default), grid, meaning)
    return table
