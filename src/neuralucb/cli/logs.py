"""The commands about logs: `neuralucb logs convert|check`, `neuralucb evaluate`, `neuralucb train`."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralucb.cli.options import AsJson, Out, Set, prepare_folder, read_set
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError

if TYPE_CHECKING:
    from neuralucb.evaluation import Evaluation
    from neuralucb.logs import Log, Skipped

__all__ = ["evaluate", "logs_app", "train"]

logs_app = typer.Typer(help="Logs of decisions: convert, check.", no_args_is_help=True)


Source = Annotated[Path, typer.Argument(help="A log: .parquet, .dsjson (or .json, .jsonl), .npz, .csv; docs/logs.md.")]


Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of networks and chances.")]


SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out what cannot be used, and count it.")]


@logs_app.command("convert")
def convert_log(
    source: Source,
    target: Annotated[Path, typer.Argument(help="The file to write; its extension tells the format.")],
    skip_bad: SkipBad = False,
) -> None:
    """Convert a log to another format; memory does not grow with the log, except for .npz."""
    from neuralucb.logs import Skipped, convert

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
        raise typer.Exit(1)
    out.print("no problems found")


def evaluate(
    log: Source,
    policies: Annotated[list[str], typer.Option("--policy", help="An algorithm: see `neuralucb list`. Repeatable.")],
    settings: Set = None,
    train: Annotated[float, typer.Option(help="Share of the log, its beginning, to learn from before.")] = 0.5,
    methods: Annotated[str, typer.Option(help="Names with commas between, or all.")] = "all",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    switch: Annotated[float, typer.Option(help="τ: the method `switch` leaves larger weights to the model.")] = 10.0,
    schedule: Annotated[str, typer.Option(help="For replay: when to learn.")] = "10:100,100:1000,1000:10000,10000",
    seed: Seed = 0,
    skip_bad: SkipBad = False,
    folder: Out = None,
    as_json: AsJson = False,
) -> None:
    """What policies would have earned on a log that another has made, with intervals and a diagnosis."""
    from neuralucb.evaluation.records import METHODS
    from neuralucb.logs import Skipped, open_log
    from neuralucb.runtime.compile_cache import keep_compiled

    asked = tuple(METHODS) if methods == "all" else tuple(part.strip() for part in methods.split(",") if part.strip())
    for method in asked:
        if method not in METHODS:
            raise InputError(f"--methods must be among {', '.join(METHODS)}, got {method!r}.")
    if not asked:
        raise InputError(f"--methods must be all or among {', '.join(METHODS)}, got none.")
    if not 0 <= train < 1:
        raise InputError(f"--train must be at least 0 and below 1, got {train}; what is left is evaluated.")
    chosen = _settings_of(policies, read_set(settings))
    where = Path("out") if folder is None and not as_json else folder
    skipped = Skipped() if skip_bad else None
    given = open_log(log, skipped)
    if skip_bad:  # --train is a share of what can be used, which only reading tells
        given = given._replace(decisions=sum(len(chunk.line) for chunk in given.chunks()))
    if where is not None:
        prepare_folder(where)
    keep_compiled()
    options: dict[str, Any] = {
        "train": train,
        "methods": asked,
        "level": level,
        "switch": switch,
        "schedule": schedule,
        "seed": seed,
        "skip_deterministic": skip_bad,
    }
    options["replay_may_fail"] = methods == "all"
    made = []
    for name, values in chosen.items():
        with err.status(f"{name} on {log}") if err.is_terminal and not as_json else nullcontext():
            made.append(_evaluate(given, name, values, **options))
    if as_json:
        record = {"log": str(log), "level": level, "train": train, "skipped": skipped.count if skipped else 0}
        print(json.dumps(record | {"evaluations": [one.as_json() for one in made]}, allow_nan=False))
    _show(made, where, log, train, level, quiet=as_json)
    _tell_skipped(skipped, log)


def train(
    log: Source,
    model: Annotated[Path, typer.Option("--out", help="Folder for the model; OnlineBandit.load reads it.")],
    policy: Annotated[str, typer.Option("--policy", help="An algorithm: see `neuralucb list`.")] = "neural-ucb",
    settings: Set = None,
    seed: Seed = 0,
    floor: Annotated[
        float, typer.Option(help="The model's share of decisions by chance, so that its log is useful.")
    ] = 0,
    skip_bad: SkipBad = False,
) -> None:
    """A bandit that has learned from a log, so that its first live decision is already good."""
    from neuralucb.algorithms import build
    from neuralucb.logs import Skipped, open_log
    from neuralucb.logs.batches import shape_of
    from neuralucb.online import OnlineBandit
    from neuralucb.runtime.compile_cache import keep_compiled

    (values,) = _settings_of([policy], read_set(settings)).values()
    skipped = Skipped() if skip_bad else None
    given = open_log(log, skipped)
    prepare_folder(model)
    keep_compiled()
    bandit = OnlineBandit(build(policy, **shape_of(given), **values), seed=seed, floor=floor)
    with err.status(f"{policy} learns from {log}") if err.is_terminal else nullcontext():
        lesson = bandit.fit(given)
    _tell_skipped(skipped, log)
    if not lesson.promoted:
        raise InputError(f"{policy} diverged on {log} and was not written; take a smaller step_size.")
    bandit.save(model)
    loss = "" if lesson.loss != lesson.loss else f", loss {lesson.loss:.4g}"
    out.print(f"{policy} learned from {lesson.observations} rewards{loss}: {model}", soft_wrap=True)


def _evaluate(
    log: "Log",
    name: str,
    settings: dict[str, Any],
    *,
    train: float,
    methods: tuple[str, ...],
    level: float,
    switch: float,
    schedule: str,
    seed: int,
    skip_deterministic: bool,
    replay_may_fail: bool,
) -> "Evaluation":
    import jax

    from neuralucb.algorithms import build
    from neuralucb.evaluation import FROZEN, evaluate, replay, with_replay
    from neuralucb.logs.batches import shape_of
    from neuralucb.logs.warm_start import learn_from
    from neuralucb.schedules import read_schedule

    key_learn, key_replay = jax.random.split(jax.random.key(seed))
    policy = build(name, **shape_of(log), **settings)
    begin = int(log.decisions * train)
    belief = learn_from(key_learn, policy, log, end=begin).belief if begin else policy.init(key_learn)
    frozen = tuple(method for method in methods if method in FROZEN)
    common: dict[str, Any] = {"level": level, "skip_deterministic": skip_deterministic}
    made = evaluate(log, policy, belief, name=name, methods=frozen, switch=switch, begin=begin, **common)
    if "replay" not in methods:
        return made
    learns = read_schedule(schedule)
    try:
        return with_replay(made, replay(key_replay, policy, log, schedule=learns, **common))
    except ValueError as problem:
        if not replay_may_fail:
            raise
        return made._replace(notes=(*made.notes, f"no replay: {str(problem).rstrip('.')}"))


def _settings_of(policies: Sequence[str], given: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Each policy's share of the settings, checked; one that no policy has is refused."""
    from neuralucb.algorithms import find_algorithm
    from neuralucb.settings import read_settings

    chosen = {}
    for name in policies:
        algorithm = find_algorithm(name)
        if algorithm.sees_expected:
            raise InputError(f"--policy {name} must be told expected rewards, which a log does not have.")
        own = {setting.name for setting in algorithm.settings}
        chosen[name] = {key: value for key, value in given.items() if key in own}
        read_settings(algorithm.settings, chosen[name], of=name)
    for key, value in given.items():
        if not any(key in values for values in chosen.values()):
            raise InputError(f"--set {key}={value} is a setting of none of {', '.join(policies)}.")
    return chosen


def _show(
    made: "Sequence[Evaluation]", where: Path | None, log: Path, train: float, level: float, *, quiet: bool
) -> None:
    from neuralucb.display.evaluation import diagnosis, draw, markdown, terminal
    from neuralucb.runtime.files import write_whole

    title = f"reward a decision on {log.name}, {level:.0%} intervals; "
    title += f"learned from the first {train:.0%}, valued on the rest"
    if any(estimate.method == "replay" for one in made for estimate in one.estimates):
        title += " (replay: learned along all of it)"
    if not quiet:
        out.print(terminal(made, title=title))
        for note in (note for one in made for note in diagnosis(one)):
            out.print(note, soft_wrap=True)
    if where is None:
        return
    figure = where / f"evaluate-{log.stem}.png"
    draw(made, [figure], level=level)
    text = markdown(made, title=title)
    table = write_whole(where / f"evaluate-{log.stem}.md", lambda path: path.write_text(text, encoding="utf-8"))
    (err if quiet else out).print(f"figure: {figure}\ntable:  {table}", soft_wrap=True)


def _tell_skipped(skipped: "Skipped | None", path: Path) -> None:
    if skipped is None or not skipped.count:
        return
    err.print(f"{skipped.count} decisions skipped; the first of them:", style="yellow")
    for line, reason in sorted(skipped.first):
        err.print(f"{path}:{line}: {reason}", soft_wrap=True)
