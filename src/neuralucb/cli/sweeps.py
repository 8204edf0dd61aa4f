"""The commands about sweeps: `neuralucb reproduce`, `sweep`, `resume`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralucb.cli.exit_codes import FOUND_PROBLEMS
from neuralucb.cli.options import with_options
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.runtime.extensions import imported

if TYPE_CHECKING:
    from neuralucb.sweeps.engine import Job
    from neuralucb.sweeps.spec import Sweep
    from neuralucb.sweeps.store import Failure

__all__ = ["reproduce", "resume", "sweep"]


class What(StrEnum):
    """What can be reproduced."""

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
    """Where the processes run."""

    local = "local"
    ray = "ray"


class Device(StrEnum):
    """What they compute on."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


class Search(StrEnum):
    """How settings are searched."""

    grid = "grid"
    race = "race"


class Reading(StrEnum):
    """How the paper is read."""

    paper = "paper"
    released = "released"


Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results; default: named after the sweep.")]
EngineName = Annotated[Engine, typer.Option("--engine", help="This machine, or a Ray cluster.")]
DeviceName = Annotated[Device, typer.Option("--device", help="auto: a GPU if JAX sees one.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes on a CPU; default: one per core.")]
Address = Annotated[str | None, typer.Option(help="With --engine ray: address of the cluster; default: a local one.")]
SearchName = Annotated[
    Search | None,
    typer.Option("--search", help="grid: every setting to its end; race: drop those that are clearly worse."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be run.")]


@dataclass(frozen=True)
class Machine:
    """The options of every command that runs a sweep: where it is computed."""

    engine: EngineName = Engine.local
    device: DeviceName = Device.auto
    workers: Workers = None
    address: Address = None


@with_options
def reproduce(
    what: Annotated[What, typer.Argument(help="Figure or table of the paper.")],
    options: Machine,
    scale: Annotated[Scale, typer.Option(help="smoke: two minutes; small: an hour; paper: all of it.")] = Scale.small,
    search: SearchName = None,
    reading: Annotated[
        Reading, typer.Option(help="paper: to the letter; released: networks trained as in the released code.")
    ] = Reading.paper,
    problems: Annotated[
        str | None, typer.Option(help="Some of a figure's problems, such as magic,shuttle; default: all.")
    ] = None,
    folder: Out = None,
    dry_run: DryRun = False,
) -> None:
    """Reproduce the paper's figures, with intervals: a folder with a report, figures, and every run as Parquet."""
    from neuralucb.cli.data import table1
    from neuralucb.sweeps.paper import FIGURES, paper_sweep

    if problems is not None and what.value not in FIGURES:
        raise InputError(f"--problems goes with one figure, got {what.value}; name figure1 or figure2, or omit it.")
    names = None if problems is None else [name.strip() for name in problems.split(",") if name.strip()]
    if what in (What.table1, What.all):
        table1(None if dry_run else folder)
    figures = list(FIGURES) if what is What.all else [what.value] if what.value in FIGURES else []
    planned = {}
    for figure in figures:
        paper = paper_sweep(figure, scale.value, (search or Search.grid).value, reading.value, names)
        where = Path(paper.name) if folder is None else folder / figure if what is What.all else folder
        planned[where] = paper
    _run(planned, options, dry_run=dry_run)


@with_options
def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep in TOML: see docs/sweeps.md.")],
    options: Machine,
    search: SearchName = None,
    folder: Out = None,
    dry_run: DryRun = False,
) -> None:
    """Run a sweep of your own."""
    from neuralucb.sweeps.toml import read_sweep

    planned = read_sweep(file)
    if search is not None:
        planned = replace(planned, search=search.value)
    planned = replace(planned, imports=tuple(dict.fromkeys([*planned.imports, *imported()])))  # for resume, anywhere
    _run({folder or Path(planned.name): planned}, options, dry_run=dry_run)


@with_options
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of an earlier sweep.")],
    options: Machine,
) -> None:
    """Resume a sweep that was stopped: only what is missing is run."""
    from neuralucb.sweeps.store import Store

    _run({folder: Store(folder).sweep()}, options, dry_run=False)


def _run(planned: dict[Path, "Sweep"], machine: Machine, *, dry_run: bool) -> None:
    """Check all sweeps, then run one after the other."""
    if machine.address is not None and machine.engine is not Engine.ray:
        raise InputError(
            f"--address goes with --engine ray, got {machine.address!r}; add --engine ray, or omit --address."
        )
    from neuralucb.sweeps.engine import prepare
    from neuralucb.sweeps.paper import table1_sizes

    jobs = [
        prepare(
            sweep, folder, device=machine.device.value, workers=machine.workers, engine=machine.engine.value,
            stand_ins=table1_sizes(sweep) if dry_run else {},
        )
        for folder, sweep in planned.items()
    ]  # fmt: skip
    for job in jobs:
        out.print(job.in_words(), soft_wrap=True)
        _print_not_found(job)
    if dry_run:
        return
    failures = [failure for job in jobs for failure in _run_and_report(job, machine.address)]
    _print_failures(failures)
    _refuse_diverged(jobs)
    if failures:
        raise typer.Exit(FOUND_PROBLEMS)


def _run_and_report(job: "Job", address: str | None) -> list["Failure"]:
    """Run a job, showing its progress, and write its report."""
    from neuralucb.display.sweep_progress import sweep_progress
    from neuralucb.display.sweep_report import write_report
    from neuralucb.sweeps import engine

    started = time.monotonic()
    try:
        with sweep_progress(job, err) as listener:
            failures = engine.run_sweep(job, listener, address=address)
        with engine.explained_storage_errors(job):
            report = write_report(job.store)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; every batch that has ended is safe, and `{job.store.resume_command}` runs the rest."
        ) from None
    out.print(f"{report}  ({time.monotonic() - started:.0f} s)", soft_wrap=True)
    return failures


def _refuse_diverged(jobs: Sequence["Job"]) -> None:
    """End with a line about best settings whose runs diverged. Others of a grid may: the table counts them."""
    from neuralucb.experiments.tables import title_of
    from neuralucb.runtime.words import counted, listed
    from neuralucb.sweeps.selection import contests, read_grids

    _refuse_lost(jobs)
    failed = [
        f"{counted(one.diverged, 'run')} of {title_of(one.grid.algorithm)} on {one.grid.problem}"
        for job in jobs
        for one in contests(read_grids(job.store))
        if one.diverged
    ]
    if failed:
        raise UnsoundError(
            f"with the best setting {listed(failed)} diverged: their regret says nothing about the algorithm; add "
            "settings that do not diverge, such as a smaller step_size."
        )


def _refuse_lost(jobs: Sequence["Job"]) -> None:
    """End with a line about races in which every setting diverged, and where."""
    from neuralucb.experiments.tables import title_of
    from neuralucb.runtime.words import listed

    lost = [race for job in jobs for race in job.store.read_races() if race["over"] and not race["left"]]
    where = [
        f"{title_of(race['algorithm'])} on {race['problem']} (by round "
        f"{max(at for each in race['dropped'] for at in each['diverged'].values())})"
        for race in lost
    ]
    if where:
        raise UnsoundError(
            f"every setting diverged of {listed(where)}: none was chosen; add settings that do not diverge, such as a "
            "smaller step_size."
        )


def _print_not_found(job: "Job") -> None:
    """Which data sets a dry run knows by their size alone, and how to get them."""
    from neuralucb.problems.datasets import data_folder

    if job.not_found:
        err.print(
            f"{', '.join(job.not_found)}: not found in {data_folder()}, so Table 1's sizes were used; before running, "
            + ", ".join(f"`neuralucb data fetch {name}`" for name in job.not_found),
            style="yellow",
            soft_wrap=True,
        )


def _print_failures(failures: Sequence["Failure"]) -> None:
    """Each failure on a line; the end of a traceback only the first time."""
    seen: set[str] = set()
    for failure in failures:
        err.print(f"failed: {failure}", style="red", soft_wrap=True)
        if failure.traceback and failure.reason not in seen:
            for line in failure.last_lines():
                err.print(f"    {line}", soft_wrap=True)
            err.print(f"    full traceback: {failure.file}", soft_wrap=True)
        seen.add(failure.reason)
