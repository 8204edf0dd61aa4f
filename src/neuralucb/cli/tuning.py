"""The command that chooses settings: `neuralucb tune`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from neuralucb.cli.options import (
    AsJson,
    DataFile,
    Label,
    PresetName,
    ProblemName,
    Repeat,
    Rewards,
    Set,
    When,
    named_problem,
    prepare_folder,
    read_set,
    with_options,
)
from neuralucb.cli.run import refuse_diverged
from neuralucb.cli.sweeps import Device, DeviceName
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError

__all__ = ["tune"]


@dataclass(frozen=True)
class TuneOptions:
    """The options of `tune`."""

    problem: ProblemName = None
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="NAME=A,B,…|A..B",
            help="Values of a setting, or a range to draw from; may be given several times. Default: its own grid.",
        ),
    ] = None
    samples: Annotated[
        int | None, typer.Option(help="Settings to draw from the grid. Default: all, or 32 with a range.")
    ] = None
    rounds: Annotated[
        int | None, typer.Option(help="Rounds to play (T); default 10 000, or half of the rows if they are fewer.")
    ] = None
    seeds: Annotated[int, typer.Option(help="Seeds to choose on; as many others score.")] = 10
    settings: Set = None
    preset: PresetName = None
    schedule: When = None
    race_error: Annotated[float, typer.Option(help="Level of the tests that drop settings, in all.")] = 0.05
    data: DataFile = None
    label: Label = None
    rewards: Rewards = None
    repeat: Repeat = False
    log: Annotated[
        Path | None, typer.Option(help="Instead of a problem: a log of decisions; settings are valued off-policy.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Of the split of rows, and of draws from ranges.")] = 0
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for the race and the preset; default: tune-ALGORITHM-PROBLEM.")
    ] = None
    device: DeviceName = Device.auto
    as_json: AsJson = False


@with_options
def tune(algorithm: Annotated[str, typer.Argument(help="See `neuralucb list`.")], options: TuneOptions) -> None:
    """Choose settings by a race, score them on rows and seeds not used in it, and write them as a preset."""
    from neuralucb.display.sweep_report import write_report
    from neuralucb.runtime.files import write_text
    from neuralucb.sweeps.store import Store
    from neuralucb.sweeps.tuning import tune as tune_settings

    if options.log is not None:
        _tune_on_log(algorithm, options.log, options)
        return
    definition = named_problem(options.problem, options.data, options.label, options.rewards)
    folder = options.folder or Path(f"tune-{algorithm}-{definition.name}")
    tuned = tune_settings(
        algorithm,
        definition,
        grid=read_grid(options.grid),
        samples=options.samples,
        rounds=options.rounds,
        seeds=options.seeds,
        preset=options.preset,
        schedule=options.schedule,
        race_error=options.race_error,
        seed=options.seed,
        out=folder,
        device=options.device.value,
        progress=not options.as_json,
        **read_set(options.settings, options.repeat),
    )
    preset = tuned.write(folder / f"{algorithm}-{definition.name}.toml")
    report = write_report(Store(folder))
    text = json.dumps(tuned.as_json(), allow_nan=False)
    write_text(folder / "tuned.json", text + "\n")
    if options.as_json:
        print(text)
    where = err if options.as_json else out
    if not options.as_json:
        out.print(repr(tuned), soft_wrap=True, markup=False, highlight=False)
    where.print(f"preset: {preset}\nrace:   {report}", soft_wrap=True)
    refuse_diverged([[tuned.result]])


def read_grid(items: Sequence[str] | None) -> dict[str, Any] | None:
    """Values by setting, given with --grid: text of a range as it is, or a list of texts; None if there is none."""
    if not items:
        return None
    grid: dict[str, Any] = {}
    for item in items:
        name, equals, values = item.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or not key or not values.strip():
            raise InputError(f"--grid must be NAME=VALUES, got {item!r}; for example --grid step_size=0.01,0.1.")
        if key in grid:
            raise InputError(f"--grid {key} is given twice, got {item!r}; put all values into one.")
        grid[key] = values if ".." in values else [value.strip() for value in values.split(",") if value.strip()]
    return grid


def _tune_on_log(algorithm: str, path: Path, options: TuneOptions) -> None:
    import jax

    from neuralucb.cli.logs import settings_of
    from neuralucb.display.progress import reading
    from neuralucb.evaluation.tuning import tune_on_log
    from neuralucb.logs import open_log
    from neuralucb.runtime.compile_cache import keep_compiled
    from neuralucb.runtime.files import write_text

    given = {
        "a problem": options.problem, "--data": options.data, "--label": options.label, "--rewards": options.rewards,
        "--repeat": options.repeat or None, "--rounds": options.rounds, "--schedule": options.schedule,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--log must not be given together with {name}, got {value}; a log is the problem.")
    folder = options.folder or Path(f"tune-{algorithm}-{path.stem}")
    prepare_folder(folder)
    (fixed,) = settings_of([algorithm], read_set(options.settings), options.preset).values()
    keep_compiled()
    with reading(open_log(path), f"{algorithm} on", err, quiet=options.as_json) as log:
        tuned = tune_on_log(
            jax.random.key(options.seed), algorithm, log,
            grid=read_grid(options.grid), samples=options.samples, seed=options.seed, **fixed,
        )  # fmt: skip
    preset = tuned.write(folder / f"{algorithm}-{path.stem}.toml")
    text = json.dumps(tuned.as_json(), allow_nan=False)
    write_text(folder / "tuned.json", text + "\n")
    if options.as_json:
        print(text)
    else:
        out.print(repr(tuned), soft_wrap=True, markup=False, highlight=False)
    (err if options.as_json else out).print(f"preset: {preset}", soft_wrap=True)
