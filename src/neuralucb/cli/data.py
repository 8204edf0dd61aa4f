"""The commands for data sets: `neuralucb data list|path|fetch`, and `neuralucb table1`."""

from pathlib import Path
from typing import Annotated

import typer

from neuralucb.cli.options import prepare_folder
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError

__all__ = ["data_app", "table1"]

data_app: typer.Typer = typer.Typer(help="Data sets: list, path, fetch.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="See `neuralucb data list`.")]

Out = Annotated[Path | None, typer.Option("--out", help="Folder for the table, as table1.md.")]

IN_THE_PAPER = {
    "covertype": "54, 7, 581012",
    "magic": "10, 2, 19020",
    "shuttle": "8, 7, 58000",
    "mnist": "784, 10, 60000",
}


@data_app.command("list")
def data_list() -> None:
    """List the data sets, and where they are."""
    from neuralucb.display.tables import terminal_table
    from neuralucb.problems.datasets import ALIASES, BUNDLED, SETS, data_path

    rows = [["name", "where", "rows", "features", "classes"]]
    for each in SETS.values():
        path = data_path(each.name)
        where = str(path) if path.exists() else "not fetched"
        alias = "".join(f" ({alias})" for alias, name in ALIASES.items() if name == each.name)
        rows.append([each.name + alias, where, str(each.rows), str(each.features), str(each.classes)])
    rows += [[name, "comes with scikit-learn", "", "", ""] for name in BUNDLED]
    out.print(terminal_table(rows, title="", left=2))
    out.print("\n`neuralucb data fetch NAME` downloads a data set.")


@data_app.command("path")
def show_path(name: Name) -> None:
    """Print the path of a data set, whether or not it has been fetched."""
    from neuralucb.problems.datasets import data_path

    print(data_path(name))


@data_app.command("fetch")
def data_fetch(name: Name) -> None:
    """Download a data set, check it against Table 1, and keep it."""
    from neuralucb.display.progress import download_bar
    from neuralucb.problems.datasets import data_path, fetch

    if data_path(name).exists():
        out.print(f"{data_path(name)} exists already; to fetch it again, delete it first.", soft_wrap=True)
        return
    with download_bar(name, err) as report:
        path = fetch(name, report)
    out.print(str(path), soft_wrap=True)


def table1(folder: Out = None) -> None:
    """Print the paper's Table 1, counted from the data sets on this machine."""
    from neuralucb.display.tables import markdown_table, terminal_table
    from neuralucb.runtime.files import write_text

    if folder is not None:
        prepare_folder(folder)
    rows = [["data set", "features", "classes", "rows", "in the paper"], *_count()]
    out.print(terminal_table(rows, title=""))
    if folder is not None:
        written = write_text(folder / "table1.md", markdown_table(rows))
        out.print(str(written), soft_wrap=True)


def _count() -> list[list[str]]:
    """Name, features, classes and rows of each data set, and what the paper has."""
    import numpy as np

    from neuralucb.problems.datasets import SETS, data_path, load

    rows = []
    for name in SETS:
        counted = ["not fetched", "", ""]
        if data_path(name).exists():
            try:
                table = load(name)
                labels = table.taken["y"]
                counted = [str(len(table.names)), str(len(np.unique(labels))), str(len(labels))]
            except InputError as problem:  # the other files can still be counted
                err.print(str(problem), style="red", soft_wrap=True)
                counted = ["damaged", "", ""]
        rows.append([name, *counted, IN_THE_PAPER[name]])
    return rows
