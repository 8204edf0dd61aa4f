"""Options that several commands share, and how their text is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralucb.runtime.errors import InputError

if TYPE_CHECKING:
    from neuralucb.problems import Definition

__all__ = [
    "AsJson",
    "DataFile",
    "Label",
    "Out",
    "PresetName",
    "ProblemName",
    "Repeat",
    "Seeds",
    "Set",
    "When",
    "named_problem",
    "prepare_folder",
    "read_set",
]

ProblemName = Annotated[str | None, typer.Argument(help="See `neuralucb list`; not with --data.")]


Seeds = Annotated[int, typer.Option(help="Runs, with seeds 0, 1, …")]


Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting, as often as you like.")]


PresetName = Annotated[str | None, typer.Option("--preset", help="A bundle of settings: see `neuralucb list`.")]


When = Annotated[str | None, typer.Option(help="When to learn: 50, or 10:500,50:2000,100. Default: the preset's.")]


DataFile = Annotated[Path | None, typer.Option("--data", help="A file of your own, .npz, .csv or .parquet.")]


Label = Annotated[str | None, typer.Option(help="With --data: the column of labels.")]


Repeat = Annotated[bool, typer.Option("--repeat", help="With data: begin again after the last row.")]


Out = Annotated[Path | None, typer.Option("--out", help="Folder for figure and table; without --json: out.")]


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


def named_problem(problem: str | None, data: Path | None, label: str | None) -> "Definition":
    """The problem of that name, or the user's file."""
    from neuralucb.problems import find_problem, from_file

    if (problem is None) == (data is None):
        raise InputError("name a problem, or give a file with --data; not both.")
    if data is None:
        if label is not None:
            raise InputError(f"--label goes with --data, got {label!r}; {problem} has labels of its own or none.")
        return find_problem(str(problem))
    return from_file(data, label)


def read_set(items: Sequence[str] | None, repeat: bool = False) -> dict[str, str]:
    """The settings of --set, and --repeat among them."""
    given = {"repeat": "true"} if repeat else {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"--set must be NAME=VALUE, got {item!r}; for example --set step_size=0.1.")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def prepare_folder(folder: Path) -> None:
    """Fail before computing, not after, if nothing can be written."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise InputError(f"--out {folder} cannot be written ({problem.strerror}); name another folder.") from None
