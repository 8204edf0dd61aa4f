"""The commands about logs: `neuralucb logs convert|check`, `neuralucb evaluate`, `neuralucb train`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralucb.cli.exit_codes import FOUND_PROBLEMS
from neuralucb.cli.options import (
    DEFAULT_ALGORITHM,
    AsJson,
    Formats,
    Out,
    PresetName,
    Set,
    output_folder,
    prepare_folder,
    read_formats,
    read_set,
)
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError, UnsoundError

if TYPE_CHECKING:
    from neuralucb.evaluation import Evaluation
    from neuralucb.logs import Log, Skipped

__all__ = ["evaluate", "logs_app", "settings_of", "train"]

logs_app: typer.Typer = typer.Typer(help="Logs of decisions: convert, check.", no_args_is_help=True)

Source = Annotated[Path, typer.Argument(help="A log: .parquet, .dsjson (or .json, .jsonl), .npz, .csv; docs/logs.md.")]

Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of networks and random choices.")]

SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out what cannot be used, and count it.")]

Reward = Annotated[
    str | None, typer.Option(help="Read a table instead of a log, one decision per row; this column is the reward.")
]

Arm = Annotated[str | None, typer.Option(help="With --reward: the column of the arms that were shown.")]

Propensity = Annotated[
    str | None,
    typer.Option(help="With --reward: the column with the probability of the arm shown. Default: all arms alike."),
]

Drop = Annotated[str, typer.Option(metavar="A+B+…", help="With --reward: columns to leave out of the context.")]

Slots = Annotated[
    int | None,
    typer.Option(
        min=4,
        help="Encode features into so many numbers, as `neuralucb serve` does (128 by default): what learned from this "
        "log can then be served.",
    ),
]

InputScaling = Annotated[
    str, typer.Option(help="With --reward: how contexts are scaled: standard, unit, smooth or none; docs/data.md.")
]


@logs_app.command("convert")
def convert_log(
    source: Source,
    target: Annotated[Path, typer.Argument(help="The file to write; its extension sets the format.")],
    skip_bad: SkipBad = False,
    reward: Reward = None,
    arm: Arm = None,
    propensity: Propensity = None,
    drop: Drop = "none",
    input_scaling: InputScaling = "none",
) -> None:
    """Convert a log, or with --reward and --arm a table, to another format; only tables and .npz need be in memory."""
    from neuralucb.logs import Skipped, convert, write_log

    if _is_table(reward, arm, propensity, drop, skip_bad):
        table = _open_table(source, reward, arm, propensity, drop, input_scaling)
        if source.resolve() == target.resolve():
            raise InputError(f"{source} cannot be converted to itself; name another file.")
        out.print(f"{write_log(target, table.chunks())} decisions written to {target}", soft_wrap=True)
        return
    skipped = Skipped() if skip_bad else None
    try:
        count = convert(source, target, skipped)
    finally:
        _tell_skipped(skipped, source)  # also when no decision was usable
    out.print(f"{count} decisions written to {target}", soft_wrap=True)


@logs_app.command("check")
def check(log: Source) -> None:
    """List what is wrong with a log, line by line; exit code 1 if anything is."""
    from neuralucb.logs import check_log

    found = check_log(log)
    shared, own = found.features
    lines = [
        f"{found.decisions} decisions can be used, {found.rewards} of them with a reward",
        f"up to {found.arms} arms; {shared} shared features, {own} features per arm",
        f"smallest propensity {found.lowest:.3g}" if found.lowest == found.lowest else "no propensities",
    ]
    if found.deterministic:
        lines.append(f"{found.deterministic} decisions were deterministic: good for learning, but not for evaluation")
    out.print("\n".join(lines), soft_wrap=True)
    for line, reason in found.first:
        err.print(f"{log}:{line}: {reason}", style="red", soft_wrap=True)
    total = sum(found.problems.values())
    if total > len(found.first):
        err.print(f"… and {total - len(found.first)} more", style="red")
    if not found.sound:
        for reason, times in sorted(found.problems.items(), key=lambda item: -item[1]):
            err.print(f"{times} × {reason}", soft_wrap=True)
        raise typer.Exit(FOUND_PROBLEMS)
    out.print("no problems found")


def evaluate(
    log: Source,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="An algorithm: see `neuralucb list`. Repeatable. Default: neural-mix."),
    ] = None,
    settings: Set = None,
    preset: PresetName = None,
    train: Annotated[float, typer.Option(help="Share of the log, from its beginning, to train on first.")] = 0.5,
    methods: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    switch: Annotated[float, typer.Option(help="τ: the method `switch` leaves larger weights to the model.")] = 10.0,
    schedule: Annotated[
        str | None, typer.Option(help="When to learn in replay, such as 100. Default: often at first, then seldom.")
    ] = None,
    seed: Seed = 0,
    skip_bad: SkipBad = False,
    reward: Reward = None,
    arm: Arm = None,
    propensity: Propensity = None,
    drop: Drop = "none",
    input_scaling: InputScaling = "columns",
    slots: Slots = None,
    folder: Out = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """What policies would have earned, judged by the log of another, with intervals and a diagnosis."""
    import jax

    from neuralucb.algorithms import build
    from neuralucb.display.progress import reading
    from neuralucb.evaluation.split import SCHEDULE, evaluate_after_training
    from neuralucb.logs import Skipped, encoded
    from neuralucb.logs.batches import shape_of
    from neuralucb.runtime.compile_cache import keep_compiled
    from neuralucb.schedules import read_schedule

    named = policies or [DEFAULT_ALGORITHM]
    chosen, wanted = settings_of(named, read_set(settings), preset), _methods(methods)
    learns = read_schedule(SCHEDULE if schedule is None else schedule)
    drawn = read_formats(formats)
    skipped = Skipped() if skip_bad else None
    is_table = _is_table(reward, arm, propensity, drop, skip_bad)
    given = _open_table(log, reward, arm, propensity, drop, input_scaling) if is_table else _open_counted(log, skipped)
    given = given if slots is None else encoded(given, slots)
    where = output_folder(folder, as_json)
    keep_compiled()
    made: list[Evaluation] = []
    refused: dict[str, str] = {}
    for name, values in chosen.items():
        with reading(given, f"{name} on", err, quiet=as_json) as read, _collecting(refused, name):
            made.append(
                evaluate_after_training(
                    jax.random.key(seed),
                    build(name, **shape_of(given), **values),
                    read,
                    name=name,
                    train=train,
                    methods=wanted,
                    level=level,
                    switch=switch,
                    schedule=learns,
                    skip_deterministic=skip_bad,
                )
            )
    if as_json:
        record = {"log": str(log), "level": level, "train": train, "skipped": skipped.count if skipped else 0}
        record |= {"evaluations": [one.as_json() for one in made], "refused": refused}
        print(json.dumps(record, allow_nan=False))
    if made:
        _show(made, where, drawn, log, train, level, quiet=as_json)
    _tell_skipped(skipped, log)
    if refused:
        raise UnsoundError(" ".join(refused.values()))


def train(
    log: Source,
    model: Annotated[Path, typer.Option("--out", help="Folder for the model; OnlineBandit.load reads it.")],
    policy: Annotated[str, typer.Option("--policy", help="An algorithm: see `neuralucb list`.")] = DEFAULT_ALGORITHM,
    settings: Set = None,
    preset: PresetName = None,
    seed: Seed = 0,
    floor: Annotated[
        float, typer.Option(help="Share of the model's decisions made at random, so that its log is useful.")
    ] = 0,
    slots: Slots = None,
    skip_bad: SkipBad = False,
) -> None:
    """A bandit that has learned from a log, so that its first live decision is already good."""
    from neuralucb.algorithms import build
    from neuralucb.display.progress import reading
    from neuralucb.logs import Skipped, encoded, open_log
    from neuralucb.logs.batches import shape_of
    from neuralucb.online import OnlineBandit
    from neuralucb.runtime.compile_cache import keep_compiled

    (values,) = settings_of([policy], read_set(settings), preset).values()
    skipped = Skipped() if skip_bad else None
    given = open_log(log, skipped)
    given = given if slots is None else encoded(given, slots)
    prepare_folder(model)
    keep_compiled()
    bandit = OnlineBandit(build(policy, **shape_of(given), **values), seed=seed, floor=floor)
    with reading(given, f"{policy} learns from", err, quiet=False) as read:
        lesson = bandit.fit(read)
    _tell_skipped(skipped, log)
    failure = bandit.health().failure
    if failure is not None:
        raise UnsoundError(f"{policy} did not learn from {log} and was not saved: {failure}.")
    bandit.save(model)
    loss = "" if lesson.loss != lesson.loss else f", loss {lesson.loss:.4g}"
    out.print(f"{policy} learned from {lesson.observations} rewards{loss}: {model}", soft_wrap=True)


def settings_of(
    policies: Sequence[str], given: Mapping[str, str], preset: str | None = None
) -> dict[str, dict[str, Any]]:
    """The settings of each policy, checked, over those of a preset that it has; how data are made is the log's affair.

    A setting that no policy has is refused.
    """
    from neuralucb.algorithms import find_algorithm
    from neuralucb.experiments.presets import find_preset
    from neuralucb.settings import read_settings

    bundle = None if preset is None else find_preset(preset, synthetic=False).shared
    chosen = {}
    for name in policies:
        algorithm = find_algorithm(name)
        if algorithm.sees_expected:
            raise InputError(f"--policy {name} needs the expected rewards, which a log does not have.")
        known = {setting.name for setting in algorithm.settings}
        bundled = {} if bundle is None else bundle.settings_for(name, trains="steps" in known)
        chosen[name] = {key: value for key, value in {**bundled, **given}.items() if key in known}
        read_settings(algorithm.settings, chosen[name], of=name)
    for key, value in given.items():
        if not any(key in values for values in chosen.values()):
            raise InputError(f"--set {key}={value} is a setting of none of {', '.join(policies)}.")
    return chosen


@contextmanager
def _collecting(refused: dict[str, str], name: str) -> Iterator[None]:
    """Keeps why the policy of that name has no value, so that the others are shown all the same."""
    try:
        yield
    except UnsoundError as problem:
        refused[name] = str(problem)


def _methods(text: str) -> tuple[str, ...] | None:
    """The methods named in --methods; None for all."""
    from neuralucb.evaluation import METHODS

    if text == "all":
        return None
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    for method in named:
        if method not in METHODS:
            raise InputError(f"--methods must be among {', '.join(METHODS)}, got {method!r}.")
    if not named:
        raise InputError(f"--methods must be all or among {', '.join(METHODS)}, got none.")
    return named


def _open_counted(path: Path, skipped: "Skipped | None") -> "Log":
    """The log; where decisions are skipped, with the number that is left, which only reading tells."""
    from neuralucb.logs import open_log

    log = open_log(path, skipped)
    return log if skipped is None else log._replace(decisions=sum(len(chunk.line) for chunk in log.chunks()))


def _is_table(reward: str | None, arm: str | None, propensity: str | None, drop: str, skip_bad: bool) -> bool:
    """Whether the source is a table, not a log; options that go with the other are refused."""
    if (reward is None) != (arm is None):
        raise InputError(
            f"--reward and --arm go together: columns of a table, got {reward!r} and {arm!r}; a log needs neither."
        )
    if reward is None and (propensity is not None or drop != "none"):
        raise InputError("--propensity and --drop go with --reward and --arm, which say that the file is a table.")
    if reward is not None and skip_bad:
        raise InputError("--skip-bad goes with a log; of a table (--reward, --arm) fix or drop the row yourself.")
    return reward is not None


def _open_table(
    path: Path, reward: str | None, arm: str | None, propensity: str | None, drop: str, input_scaling: str
) -> "Log":
    from neuralucb.logs import open_table

    return open_table(
        path, reward=str(reward), arm=str(arm), propensity=propensity, drop=drop, input_scaling=input_scaling
    )


def _show(
    made: "Sequence[Evaluation]",
    where: Path | None,
    formats: Sequence[str],
    log: Path,
    train: float,
    level: float,
    *,
    quiet: bool,
) -> None:
    from neuralucb.display.evaluation import diagnosis, draw, report, table
    from neuralucb.display.tables import terminal_table
    from neuralucb.runtime.files import write_text

    title = f"reward per decision on {log.name}, {100 * level:g} % intervals; "
    title += f"learned from the first {100 * train:g} %, valued on the rest"
    if any(estimate.method == "replay" for one in made for estimate in one.estimates):
        title += " (replay: learned along all of it)"
    if not quiet:
        out.print(terminal_table(table(made), title=title, left=2))
        for note in (note for one in made for note in diagnosis(one)):
            out.print(note, soft_wrap=True)
    if where is None:
        return
    figures, page = [where / f"evaluate-{log.stem}.{form}" for form in formats], where / f"evaluate-{log.stem}.md"
    draw(made, figures, level=level)
    write_text(page, report(made, title=title))
    (err if quiet else out).print(f"figure: {', '.join(map(str, figures))}\ntable:  {page}", soft_wrap=True)


def _tell_skipped(skipped: "Skipped | None", path: Path) -> None:
    if skipped is None or not skipped.count:
        return
    err.print(f"{skipped.count} decisions skipped; the first of them:", style="yellow")
    for line, reason in sorted(skipped.first):
        err.print(f"{path}:{line}: {reason}", soft_wrap=True)
