"""The commands about data: `neuralucb data list|path|fetch`, and `neuralucb table1`."""

from pathlib import Path
from typing import Annotated

import typer

from neuralucb.cli.options import prepare_folder
from neuralucb.display.console import err, out

__all__ = ["data_app", "table1"]

data_app = typer.Typer(help="Data sets: list, path, fetch.", no_args_is_help=True)


Name = Annotated[str, typer.Argument(help="See `neuralucb data list`.")]


Out = Annotated[Path | None, typer.Option("--out", help="Folder for the table, as table1.md.")]


HEAD = ["data set", "features", "classes", "rows", "in the paper"]


TABLE_1 = {"covertype": "54, 7, 581012", "magic": "10, 2, 19020", "shuttle": "8, 7, 58000", "mnist": "784, 10, 60000"}


@data_app.command("list")
def data_list() -> None:
    """The data sets, and which are there."""
    from rich.table import Table

    from neuralucb.problems.datasets import ALIASES, BUNDLED, SETS, data_path

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("name", "rows", "features", "classes", "where"):
        table.add_column(head, justify="right" if head in ("rows", "features", "classes") else "left", overflow="fold")
    for each in SETS.values():
        path = data_path(each.name)
        where = str(path) if path.exists() else f"not there: neuralucb data fetch {each.name}"
        also = "".join(f" ({alias})" for alias, name in ALIASES.items() if name == each.name)
        table.add_row(each.name + also, str(each.rows), str(each.features), str(each.classes), where)
    for name in BUNDLED:
        table.add_row(name, "", "", "", "comes with scikit-learn")
    out.print(table)


@data_app.command("path")
def show_path(name: Name) -> None:
    """Where a data set is, or would be."""
    from neuralucb.problems.datasets import data_path

    print(data_path(name))


@data_app.command("fetch")
def data_fetch(name: Name) -> None:
    """Download a data set, check it against Table 1, and keep it."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    from neuralucb.problems.datasets import data_path, fetch

    if data_path(name).exists():
        out.print(f"{data_path(name)} is there already; to fetch it anew, delete it first.", soft_wrap=True)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task(f"downloading {name}", total=None)  # OpenML does not say how much there is
        path = fetch(name, lambda done: bars.update(task, completed=done))
    out.print(str(path), soft_wrap=True)


def table1(folder: Out = None) -> None:
    """The paper's Table 1, counted from the data that are there."""
    from rich.table import Table

    from neuralucb.runtime.files import write_whole

    if folder is not None:
        prepare_folder(folder)
    rows = _count()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in HEAD:
        table.add_column(head, justify="left" if head == "data set" else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    if folder is not None:
        text = "".join("| " + " | ".join(row) + " |\n" for row in [HEAD, ["---"] * len(HEAD), *rows])
        written = write_whole(folder / "table1.md", lambda part: part.write_text(text, encoding="utf-8"))
        out.print(str(written), soft_wrap=True)


def _count() -> list[list[str]]:
    """Features, classes and rows of each data set that is there, and what the paper has."""
    import numpy as np

    from neuralucb.problems.datasets import SETS, data_path, load

    rows = []
    for name in SETS:
        counted = ["not there", "", ""]
        if data_path(name).exists():
            try:
                table_of = load(name)
                counted = [str(len(table_of.names)), str(len(np.unique(table_of.labels))), str(len(table_of.labels))]
            except ValueError as problem:  # of one file: the others can be counted all the same
                err.print(str(problem), style="red", soft_wrap=True)
                counted = ["damaged", "", ""]
        rows.append([name, *counted, TABLE_1[name]])
    return rows
