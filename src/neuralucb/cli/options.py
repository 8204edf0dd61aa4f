"""Options that several commands share, and how their text is read."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralucb.runtime.errors import InputError

if TYPE_CHECKING:
    from neuralucb.problems import Definition

__all__ = [
    "AsJson",
    "DataFile",
    "Formats",
    "Label",
    "Out",
    "PresetName",
    "ProblemName",
    "Repeat",
    "Rewards",
    "RunOptions",
    "Seeds",
    "Set",
    "When",
    "named_problem",
    "output_folder",
    "prepare_folder",
    "read_formats",
    "read_set",
    "refuse_logged",
    "split_names",
    "with_options",
]

ProblemName = Annotated[str | None, typer.Argument(help="See `neuralucb list`; not with --data.")]

Rounds = Annotated[int | None, typer.Option(help="Rounds to play (T); default 10 000, or all rows if they are fewer.")]

Seeds = Annotated[int, typer.Option(help="Number of runs, with seeds 0, 1, …")]

Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given several times.")
]

DEFAULT_ALGORITHM = "neural-mix"
"""What is played, valued or trained where none is named, as in `build`."""

PresetName = Annotated[
    str | None,
    typer.Option("--preset", help="A bundle of settings: see `neuralucb list`; or a .toml file of `neuralucb tune`."),
]

When = Annotated[str | None, typer.Option(help="When to learn: 50, or 10:500,50:2000,100. Default: the preset's.")]

DataFile = Annotated[Path | None, typer.Option("--data", help="Your data: a .npz, .csv or .parquet file.")]

Label = Annotated[str | None, typer.Option(help="With --data: the column of labels; of a .npz by default y.")]

Rewards = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="With --data, instead of --label: the columns with the reward of each arm."),
]

Logged = Annotated[str | None, typer.Option(hidden=True)]
"""Options of `evaluate` that people try here; the error tells them where."""

Repeat = Annotated[bool, typer.Option("--repeat", help="With data: start over after the last row.")]

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for figure and table. Default: out, or none with --json."),
]

Formats = Annotated[
    list[str] | None,
    typer.Option("--format", metavar="png|pdf|svg", help="Of the figure, separated by commas. Default: png."),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


@dataclass(frozen=True)
class RunOptions:
    """The options of every command that runs algorithms on a problem."""

    problem: ProblemName = None
    rounds: Rounds = None
    seeds: Seeds = 10
    settings: Set = None
    preset: PresetName = None
    schedule: When = None
    data: DataFile = None
    label: Label = None
    rewards: Rewards = None
    reward: Logged = None
    arm: Logged = None
    repeat: Repeat = False
    folder: Out = None
    formats: Formats = None
    as_json: AsJson = False


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes `options`, a dataclass, as Typer needs it: with one parameter per field instead."""
    first = dict(inspect.signature(command).parameters)
    record = first.pop("options").annotation
    flags = [
        inspect.Parameter(
            each.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=each.default, annotation=each.type
        )
        for each in fields(record)
    ]

    @wraps(command)
    def with_flags(**given: Any) -> None:
        options = record(**{flag.name: given.pop(flag.name) for flag in flags})
        command(**given, options=options)

    with_flags.__signature__ = inspect.Signature([*first.values(), *flags])  # type: ignore[attr-defined]
    return with_flags


def named_problem(
    problem: str | None, data: Path | None, label: str | None, rewards: str | None = None
) -> "Definition":
    """The problem of that name, or the user's file."""
    from neuralucb.problems import find_problem, from_file

    if (problem is None) == (data is None):
        raise InputError("name a problem, or give a file with --data; not both.")
    if data is not None:
        return from_file(data, label, rewards=None if rewards is None else split_names("--rewards", rewards))
    for option, given in (("--label", label), ("--rewards", rewards)):
        if given is not None:
            raise InputError(
                f"{option} goes with --data, got {given!r}; {problem} comes with its labels or needs none."
            )
    return find_problem(str(problem))


def refuse_logged(options: RunOptions) -> None:
    """Point those who have logged decisions to `evaluate`: with one reward per row, regret is not known."""
    if options.reward is None and options.arm is None:
        return
    file, reward, arm = options.data or "log.csv", options.reward or "COLUMN", options.arm or "COLUMN"
    raise InputError(
        "regret needs the reward of every arm, and a log has that of one: --reward and --arm go with evaluate, which "
        f"replays the log: neuralucb evaluate {file} --reward {reward} --arm {arm} --policy …; with a column of "
        "rewards per arm, take --rewards."
    )


def split_names(option: str, text: str) -> list[str]:
    """Names separated by commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{option} must name columns, separated by commas, got {text!r}.")
    return names


def read_set(items: Sequence[str] | None, repeat: bool = False) -> dict[str, str]:
    """The settings given with --set and --repeat, as text by name."""
    given = {"repeat": "true"} if repeat else {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"--set must be NAME=VALUE, got {item!r}; for example --set step_size=0.1.")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def read_formats(given: Sequence[str] | None) -> tuple[str, ...]:
    """The formats given with --format, each once; png if there is none."""
    from neuralucb.display.figures import FORMATS

    named = [part.strip().lower() for item in given or ("png",) for part in item.split(",")]
    for name in named:
        if name not in FORMATS:
            raise InputError(f"--format must be among {', '.join(FORMATS)}, got {name!r}.")
    return tuple(dict.fromkeys(named))


def output_folder(folder: Path | None, as_json: bool) -> Path | None:
    """Where figure and table go, checked to be writable: --out, or else out; None where --json alone is wanted."""
    where = Path("out") if folder is None and not as_json else folder
    if where is not None:
        prepare_folder(where)
    return where


def prepare_folder(folder: Path) -> None:
    """Make the folder, and check that it can be written: before computing, not after."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise InputError(f"--out {folder} cannot be written ({problem.strerror}); name another folder.") from None
