"""The commands about sweeps: `neuralucb reproduce`, `sweep`, `resume`."""

import shlex
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from neuralucb.sweeps.spec import Sweep
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError

__all__ = ["reproduce", "resume", "sweep"]


class What(StrEnum):
    """What there is to reproduce."""

    figure1 = "figure1"
    figure2 = "figure2"
    table1 = "table1"
    all = "all"


class Scale(StrEnum):
    """How much of it."""

    smoke = "smoke"
    small = "small"
    paper = "paper"


class Engine(StrEnum):
    """Who computes."""

    local = "local"
    ray = "ray"


class Device(StrEnum):
    """What computes."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results; default: named after the sweep.")]


EngineName = Annotated[Engine, typer.Option("--engine", help="This machine, or a Ray cluster.")]


DeviceName = Annotated[Device, typer.Option("--device", help="auto: a GPU if there is one.")]


Workers = Annotated[int | None, typer.Option(min=1, help="Processes on a CPU; default: one a core.")]


Address = Annotated[str | None, typer.Option(help="With --engine ray: the cluster's address; default: a local one.")]


DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")]


def reproduce(
    what: Annotated[What, typer.Argument(help="Of the paper.")],
    scale: Annotated[Scale, typer.Option(help="smoke: two minutes; small: an hour; paper: all of it.")] = Scale.small,
    folder: Out = None,
    engine: EngineName = Engine.local,
    device: DeviceName = Device.auto,
    workers: Workers = None,
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """The paper's figures, with intervals: a folder with a report, figures, and every run as Parquet."""
    from neuralucb.cli.data import table1
    from neuralucb.sweeps.paper import FIGURES, paper_sweep

    if what in (What.table1, What.all):
        table1(None if dry_run else folder)
    figures = list(FIGURES) if what is What.all else [what.value] if what.value in FIGURES else []
    planned = {}
    for figure in figures:
        sweep_of = paper_sweep(figure, scale.value)
        where = Path(sweep_of.name) if folder is None else folder / figure if what is What.all else folder
        planned[where] = sweep_of
    _run(planned, engine, device, workers, address, dry_run=dry_run)


def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep in TOML: see docs/sweeps.md.")],
    folder: Out = None,
    engine: EngineName = Engine.local,
    device: DeviceName = Device.auto,
    workers: Workers = None,
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """A sweep of your own."""
    from neuralucb.sweeps.spec import read_sweep

    planned = read_sweep(file)
    _run({folder or Path(planned.name): planned}, engine, device, workers, address, dry_run=dry_run)


def resume(
    folder: Annotated[Path, typer.Argument(help="What an earlier sweep has left.")],
    engine: EngineName = Engine.local,
    device: DeviceName = Device.auto,
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Go on with a sweep that was stopped: only what is missing is run."""
    from neuralucb.sweeps.store import Store

    _run({folder: Store(folder).sweep()}, engine, device, workers, address, dry_run=False)


def _run(
    planned: dict[Path, "Sweep"],
    engine: Engine,
    device: Device,
    workers: int | None,
    address: str | None,
    *,
    dry_run: bool,
) -> None:
    """All of them checked before the first is run."""
    if address is not None and engine is not Engine.ray:
        raise InputError(f"--address goes with --engine ray, got {address!r}; add the one, or leave out the other.")
    from neuralucb.sweeps.engine import prepare, run_sweep

    jobs = {
        folder: prepare(sweep, folder, device=device.value, workers=workers, engine=engine.value)
        for folder, sweep in planned.items()
    }
    for job in jobs.values():
        out.print(job.in_words(), soft_wrap=True)
    failed: list[str] = []
    for folder, job in () if dry_run else jobs.items():
        started = time.monotonic()
        again = f"neuralucb resume {shlex.quote(str(folder))}"
        try:
            report, failures = run_sweep(job, err, address=address, command=again)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped; every batch that has ended is safe, and `{again}` goes on.") from None
        out.print(f"{report}  ({time.monotonic() - started:.0f} s)", soft_wrap=True)
        failed += failures
    for failure in failed:
        err.print(f"failed: {failure}", style="red", soft_wrap=True)
    if failed:
        raise typer.Exit(1)
