"""The commands about a service's data in PostgreSQL: `neuralucb store export|delete-user|exclude`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.words import counted

__all__ = ["store_app"]

store_app: typer.Typer = typer.Typer(
    help="Data of a service in PostgreSQL: export it, delete a person's, exclude a period.", no_args_is_help=True
)

Address = Annotated[
    str, typer.Argument(metavar="postgresql://…", help="The store, as `neuralucb serve --store` has it.")
]

TIME = "such as 2026-11-18 or 2026-11-18T08:00:00+00:00; UTC if no zone is given."


@store_app.command("export")
def export(
    store: Address,
    target: Annotated[Path, typer.Argument(help="The log to write; its extension sets the format: .parquet, …")],
    since: Annotated[str | None, typer.Option(metavar="TIME", help=f"Only decisions from then on, {TIME}")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help=f"Only decisions before, {TIME}")] = None,
) -> None:
    """Write decisions, with the features that the policy saw and their rewards, to a log: docs/logs.md."""
    from neuralucb.service.postgres import export_log

    exported = export_log(store, target, since=_read_time("since", since), until=_read_time("until", until))
    out.print(f"{target}: {counted(exported.decisions, 'decision')}", soft_wrap=True)
    for number, arm in enumerate(exported.arms):
        err.print(f"arm {number} is {arm}", markup=False, soft_wrap=True)


@store_app.command("delete-user")
def delete(store: Address, user: Annotated[str, typer.Argument(help="The key that decisions were made with.")]) -> None:
    """Delete all decisions and rewards of one person; the model learns again without them."""
    from neuralucb.service.postgres import delete_user

    removed = delete_user(store, user)
    out.print(f"{counted(removed.decisions, 'decision')} deleted, {removed.learned} of them learned from")


@store_app.command("exclude")
def exclude(
    store: Address,
    since: Annotated[str, typer.Argument(metavar="SINCE", help=f"The beginning of the period, {TIME}")],
    until: Annotated[str, typer.Argument(metavar="UNTIL", help=f"Its end, {TIME}")],
) -> None:
    """Learn no more from the decisions of a period, which stay in the log; the model learns again without them."""
    from neuralucb.service.postgres import exclude_period

    first, last = _read_time("since", since), _read_time("until", until)
    assert first is not None
    assert last is not None
    removed = exclude_period(store, first, last)
    out.print(f"{counted(removed.decisions, 'decision')} excluded, {removed.learned} of them learned from")


def _read_time(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} must be a time {TIME[:-1]}, got {text!r:.60}.") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
