"""The command `neuralucb`: all commands put together, and what their errors become. Needs the extra `experiments`."""

import os
import sys
import traceback
from typing import Annotated

try:
    import typer

    from neuralucb.display.console import err
except ImportError as _missing:  # the core installs without them
    raise SystemExit(
        f"{_missing.name} is missing: pip install 'neuralucb[experiments]' installs the command line."
    ) from None
from neuralucb import __version__
from neuralucb.cli.data import data_app, table1
from neuralucb.cli.exit_codes import BAD_INPUT, INTERRUPTED, SOFTWARE_FAULT, UNSOUND
from neuralucb.cli.logs import evaluate, logs_app, train
from neuralucb.cli.run import compare, demo, list_all, run
from neuralucb.cli.serve import serve
from neuralucb.cli.store import store_app
from neuralucb.cli.sweeps import reproduce, resume, sweep
from neuralucb.cli.theory import coverage, theory
from neuralucb.cli.tuning import tune
from neuralucb.runtime.errors import InputError, StorageError, UnsoundError
from neuralucb.runtime.extensions import add_modules, imported
from neuralucb.runtime.interrupts import keep_ctrl_c

__all__ = ["app", "main"]

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"neuralucb {__version__}")
        raise typer.Exit


Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="A module that registers algorithms, problems or networks; may be given several times.",
    ),
]

Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version.")]


@app.callback()
def import_first(modules: Modules = None, version: Version = False) -> None:
    """Neural contextual bandits: run, compare and reproduce."""
    add_modules(modules or [])


app.command("list")(list_all)
for _command in (run, compare, tune, demo, table1, reproduce, sweep, resume, theory, coverage, evaluate, train, serve):
    app.command()(_command)
app.add_typer(data_app, name="data")
app.add_typer(logs_app, name="logs")
app.add_typer(store_app, name="store")


def main() -> None:
    """Run the command.

    Bad input is one message and exit code 2, never a traceback; a fault of the library is a traceback and exit code 70.
    Where what was computed is not sound the last line says so, and the exit code is 3.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Greek shows ?, not a traceback
    keep_ctrl_c()
    try:
        app()
    except UnsoundError as problem:
        _refuse(str(problem), "not sound:", UNSOUND)
    except (InputError, StorageError) as problem:
        _refuse(str(problem))
    except OSError as problem:
        _refuse(f"{problem.filename or 'a file'} cannot be used: {problem.strerror or problem}.")
    except SystemExit as end:
        interrupt = _interrupt_behind(end)
        if interrupt is None:
            raise
        err.print(str(interrupt) or "stopped; nothing half-written was left.", soft_wrap=True)
        _leave(INTERRUPTED)
    except Exception as problem:
        err.print(traceback.format_exc(), soft_wrap=True)
        theirs = _module_at_fault(problem)
        if theirs:
            told = f"This happened in {theirs}, which you imported: the lines above say where."
        else:
            told = "This is a fault of neuralucb, not of your input: please report it with the lines above."
        err.print(told, style="bold red")
        sys.exit(BAD_INPUT if theirs else SOFTWARE_FAULT)


def _refuse(message: str, kind: str = "error:", code: int = BAD_INPUT) -> None:
    err.print(kind, style="bold red", end=" ")
    err.print(message, soft_wrap=True)
    sys.exit(code)


def _module_at_fault(problem: BaseException) -> str:
    """The user's module that the error passed through, if any."""
    names = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return next((name for name in reversed(names) if name in imported()), "")


def _leave(code: int) -> None:
    """Exit at once: Python's shutdown may crash while interrupted compiled code is still running."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _interrupt_behind(end: BaseException | None) -> BaseException | None:
    """The Ctrl-C that ended the command, if any: Typer turns it into an exit code and prints nothing."""
    while end is not None and not isinstance(end, KeyboardInterrupt):
        end = end.__context__
    return end
