"""The commands about the theory: `neuralucb theory`, `neuralucb coverage`."""

import json
from typing import Annotated, Any

import typer

from neuralucb.cli.options import (
    AsJson,
    DataFile,
    Formats,
    Label,
    Out,
    PresetName,
    ProblemName,
    Repeat,
    Rewards,
    Seeds,
    Set,
    When,
    named_problem,
    output_folder,
    read_formats,
    read_set,
)
from neuralucb.cli.run import refuse_diverged
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.runtime.words import listed

__all__ = ["coverage", "theory"]

DEFAULT_ROUNDS = 500
"""2000 contexts of the synthetic problems: seconds."""

Rounds = Annotated[int | None, typer.Option(help="Rounds (T); default 500, or all rows if they are fewer.")]

Width = Annotated[int | None, typer.Option(help="Hidden units per layer (m); default: the preset's.")]

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
    rewards: Rewards = None,
    repeat: Repeat = False,
    folder: Out = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """Effective dimension, λ_0, S and the regret bound of a problem, beside the measured regret of NeuralUCB."""
    from neuralucb import experiments
    from neuralucb.display.progress import meters
    from neuralucb.display.theory import show_theory, stages
    from neuralucb.runtime.compile_cache import keep_compiled
    from neuralucb.theory.report import analyse

    named = named_problem(problem, data, label, rewards)
    flags = {"width": width, "depth": depth, "regularization": regularization}
    given = _with_flags(read_set(settings, repeat), flags)
    planned = experiments.plan(
        named, ["neural-ucb"], given, rounds=rounds, seeds=seeds, preset=preset, schedule=schedule
    )
    if rounds is None:
        planned = planned._replace(rounds=min(DEFAULT_ROUNDS, planned.rounds))
    chosen, where = read_formats(formats), output_folder(folder, as_json)
    keep_compiled()
    with stages(err, quiet=as_json) as stage:
        report = analyse(planned, stage)
    with meters(planned, err, quiet=as_json) as meter:
        (measured,) = experiments.play(planned, meter)
    if where is not None:
        show_theory(report, measured, where, console=err if as_json else out, formats=chosen)
    if as_json:
        print(json.dumps(report.as_json(measured), allow_nan=False))
    refuse_diverged([[measured]])


def coverage(
    problem: Annotated[str, typer.Argument(help="h1, h2 or h3.")],
    rounds: Annotated[int, typer.Option(help="Rounds to play (T).")] = 2_000,
    seeds: Seeds = 4,
    settings: Set = None,
    preset: PresetName = None,
    schedule: When = None,
    folder: Out = None,
    formats: Formats = None,
    as_json: AsJson = False,
) -> None:
    """How often h(x) lies inside f ± γ·width: constant and theoretical γ, full and diagonal Z."""
    from neuralucb.display.theory import show_coverage, stages
    from neuralucb.runtime.compile_cache import keep_compiled
    from neuralucb.theory.coverage import coverage_json, plan_coverage, play_coverage

    plans = plan_coverage(problem, read_set(settings), rounds=rounds, seeds=seeds, preset=preset, schedule=schedule)
    chosen, where = read_formats(formats), output_folder(folder, as_json)
    keep_compiled()
    with stages(err, quiet=as_json) as stage:
        measured = {
            mode: play_coverage(planned, stage(f"{mode.confidence} γ, {mode.design} Z"))
            for mode, planned in plans.items()
        }
    if where is not None:
        console = err if as_json else out
        show_coverage(measured, where, problem=problem, rounds=rounds, seeds=seeds, console=console, formats=chosen)
    if as_json:
        print(json.dumps(coverage_json(plans, measured), allow_nan=False))
    failed = [
        f"{found.diverged.sum()} of {len(found.diverged)} runs with {mode.confidence} γ and {mode.design} Z"
        for mode, found in measured.items()
        if found.diverged.any()
    ]
    if failed:
        raise UnsoundError(f"{listed(failed)} diverged: their coverage says nothing.")


def _with_flags(given: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of --set, and those that have a flag; not both."""
    for name, value in flags.items():
        if value is not None and name in given:
            raise InputError(
                f"{name} is given twice, as --{name} {value} and as --set {name}={given[name]}; give it once."
            )
    return {**given, **{name: value for name, value in flags.items() if value is not None}}
