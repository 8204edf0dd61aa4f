"""The commands about the theory: `neuralucb theory`, `neuralucb coverage`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralucb.cli.options import (
    AsJson,
    DataFile,
    Label,
    Out,
    PresetName,
    ProblemName,
    Repeat,
    Seeds,
    Set,
    When,
    named_problem,
    prepare_folder,
    read_set,
)
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError

if TYPE_CHECKING:
    from neuralucb.runtime.progress import Meter, Progress
    from neuralucb.theory.coverage import Coverage

__all__ = ["coverage", "theory"]

USUAL_ROUNDS = 500
"""2000 contexts of the synthetic problems: seconds."""


STEP_SIZE = 0.04
"""The default 0.05 makes ηmλ = 1 at m = 20, λ = 1, where the theoretical γ_t has no meaning."""


MODES = tuple((confidence, design) for confidence in ("constant", "theoretical") for design in ("full", "diagonal"))


Rounds = Annotated[int | None, typer.Option(help="Rounds (T); default 500, or all rows if they are fewer.")]


Width = Annotated[int | None, typer.Option(help="Hidden units a layer (m); default: the preset's.")]


Depth = Annotated[int | None, typer.Option(help="Layers (L); default: the preset's.")]


Regularization = Annotated[float | None, typer.Option(help="λ; default: the preset's.")]


def theory(
    problem: ProblemName = None,
    rounds: Rounds = None,
    width: Width = None,
    depth: Depth = None,
    regularization: Regularization = None,
    seeds: Seeds = 4,
    settings: Set = None,
    preset: PresetName = None,
    schedule: When = None,
    data: DataFile = None,
    label: Label = None,
    repeat: Repeat = False,
    folder: Out = None,
    as_json: AsJson = False,
) -> None:
    """Effective dimension, λ_0, S and the regret bound of a problem, beside the regret that NeuralUCB has on it."""
    from neuralucb import experiments
    from neuralucb.display.progress import meters
    from neuralucb.display.theory import draw_theory, theory_rows
    from neuralucb.runtime.compile_cache import keep_compiled
    from neuralucb.theory.report import analyse

    named = named_problem(problem, data, label)
    given: dict[str, Any] = read_set(settings, repeat)
    for name, value in (("width", width), ("depth", depth), ("regularization", regularization)):
        if value is not None and name in given:
            raise InputError(
                f"{name} is given twice, as --{name} {value} and as --set {name}={given[name]}; once is enough."
            )
        given |= {} if value is None else {name: value}
    planned = experiments.plan(
        named, ["neural-ucb"], given, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule
    )
    if rounds is None:
        planned = planned._replace(rounds=min(USUAL_ROUNDS, planned.rounds))
    where = _folder(folder, as_json)
    keep_compiled()
    with _bars(as_json) as bar:
        report = analyse(planned, bar)
    with meters(planned, err, quiet=as_json) as meter:
        (measured,) = experiments.play(planned, meter)
    if where is not None:
        figure = where / f"theory-{named.name}.png"
        draw_theory(report, measured, [figure])
        _show(theory_rows(report, measured), f"theory of {named.name}", report.notes, figure, as_json)
    if as_json:
        print(json.dumps(report.as_json(measured), allow_nan=False))


def coverage(
    problem: Annotated[str, typer.Argument(help="h1, h2 or h3.")],
    rounds: Annotated[int, typer.Option(help="Rounds to play (T).")] = 2_000,
    seeds: Seeds = 4,
    settings: Set = None,
    preset: PresetName = None,
    schedule: When = None,
    folder: Out = None,
    as_json: AsJson = False,
) -> None:
    """How often h(x) lies inside f ± γ·width: constant and theoretical γ, full and diagonal Z, chosen and any arms."""
    from neuralucb import experiments
    from neuralucb.display.theory import coverage_rows, draw_coverage
    from neuralucb.problems import find_problem
    from neuralucb.runtime.compile_cache import keep_compiled

    named = find_problem(problem)
    if named.shared:
        raise InputError(f"problem must be synthetic, h1, h2 or h3, whose expected rewards are known, got {problem}.")
    given = {"step_size": STEP_SIZE, **read_set(settings, False)}
    for name in ("confidence", "design"):
        if name in given:
            raise InputError(f"{name} must not be set, got {given[name]}; coverage plays all of them.")
    plans = {
        (confidence, design): experiments.plan(
            named, {"neural-ucb": {"confidence": confidence, "design": design}}, given,
            rounds=rounds, seeds=seeds, preset=preset, schedule=schedule,
        )
        for confidence, design in MODES
    }  # fmt: skip
    where = _folder(folder, as_json)
    keep_compiled()
    measured: dict[tuple[str, str], Coverage] = {}
    with _bars(as_json) as bar:
        for mode, planned in plans.items():
            measured[mode] = _measure(planned, bar(f"{mode[0]} γ, {mode[1]} Z"))
    title = f"{problem}: {rounds} round{'s' if rounds > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''}"
    if where is not None:
        figure = where / f"coverage-{problem}.png"
        draw_coverage(measured, title, [figure])
        _show(coverage_rows(measured), f"intervals that hold, {title}", (), figure, as_json)
    if as_json:
        print(json.dumps(_coverage_json(problem, rounds, seeds, plans, measured), allow_nan=False))


def _measure(planned: Any, progress: "Progress | None") -> "Coverage":
    from neuralucb.algorithms import Task, find_algorithm
    from neuralucb.schedules import read_schedule
    from neuralucb.theory.coverage import measure_coverage

    ((algorithm, (point,)),) = planned.points.items()
    made = planned.problem.make(**point.problem)
    policy = find_algorithm(algorithm).recipe(Task(made.dim, planned.rounds, made.shared_by), point.algorithm)
    when = read_schedule(planned.schedule)
    return measure_coverage(policy, made, rounds=planned.rounds, schedule=when, seeds=planned.seeds, progress=progress)


def _coverage_json(
    problem: str, rounds: int, seeds: int, plans: Mapping[Any, Any], measured: "Mapping[tuple[str, str], Coverage]"
) -> dict[str, Any]:
    from neuralucb.theory.linalg import finite_or_none

    results = []
    for (confidence, design), found in measured.items():
        ((point,),) = plans[confidence, design].points.values()
        share, needed = found.share(), found.needed_scale()
        results.append(
            {
                "confidence": confidence,
                "design": design,
                "coverage": {"chosen": float(share[0]), "random": float(share[1])},
                "scale_at_end": finite_or_none(found.scale[:, -1].mean()),
                "scale_for_90_percent": {
                    arm: finite_or_none(scale) for arm, scale in zip(("chosen", "random"), needed, strict=True)
                },
                "diverged": int(found.diverged.sum()),
                "settings": {**point.algorithm, **point.problem},
            }
        )
    return {"problem": problem, "rounds": rounds, "seeds": list(range(seeds)), "results": results}


def _folder(folder: Path | None, as_json: bool) -> Path | None:
    where = Path("out") if folder is None and not as_json else folder
    if where is not None:
        prepare_folder(where)
    return where


def _show(rows: Sequence[Sequence[str]], title: str, notes: Sequence[str], figure: Path, as_json: bool) -> None:
    """Print the table, write it beside the figure, and say where they are."""
    from neuralucb.display.theory import markdown, terminal
    from neuralucb.runtime.files import write_whole

    console = err if as_json else out
    console.print(terminal(rows, title=title))
    text = markdown(rows, notes)
    table = write_whole(figure.with_suffix(".md"), lambda path: path.write_text(text, encoding="utf-8"))
    for note in notes:
        console.print(f"note: {note}.", soft_wrap=True)
    console.print(f"figure: {figure}\ntable:  {table}", soft_wrap=True)


@contextmanager
def _bars(quiet: bool) -> "Iterator[Meter]":
    """A progress bar for each thing that is done, on a terminal; elsewhere nothing."""
    if quiet or not err.is_terminal:
        yield lambda what: None
        return
    from rich import progress
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    with progress.Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), console=err
    ) as bars:

        def bar(what: str) -> "Progress":
            task = bars.add_task(what, total=None)
            return lambda done, whole: bars.update(task, completed=done, total=whole)

        yield bar
