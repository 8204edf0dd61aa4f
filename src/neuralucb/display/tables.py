"""Tables of words, the first row their head: for the terminal, and as Markdown."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

__all__ = ["markdown_table", "terminal_table"]

SHORT_NAME = 16
"""Names in the first column stay in one piece if none is longer."""


def terminal_table(rows: Sequence[Sequence[str | Text]], *, title: str, left: int = 1) -> Table:
    """A table for the terminal.

    Columns are folded where the terminal is narrow, except short names in the first.

    Args:
        rows: Cells, the head first. Words are printed as they are; a `Text` brings its own style.
        title: Printed above the table; "" for none.
        left: How many columns, from the first, are aligned to the left. The others are aligned to the right.

    Returns:
        What `Console.print` takes.
    """
    table = Table(
        title=title or None,
        title_justify="left",
        header_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    head, *body = rows
    for index, name in enumerate(head):
        widest = max(len(row[index]) for row in rows)
        table.add_column(
            name,
            justify="left" if index < left else "right",
            overflow="fold",
            no_wrap=index == 0 and widest <= SHORT_NAME,
        )
    for row in body:
        table.add_row(*row)
    return table


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as a Markdown table, ending with a newline."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
