"""The commands that run algorithms: `neuralucb run`, `compare`, `demo`; and `list`, which shows what can be run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuralucb.cli.options import (
    DEFAULT_ALGORITHM,
    Formats,
    Out,
    RunOptions,
    Seeds,
    named_problem,
    output_folder,
    read_formats,
    read_set,
    refuse_logged,
    with_options,
)
from neuralucb.display.console import err, out
from neuralucb.runtime.errors import InputError, UnsoundError

if TYPE_CHECKING:
    from neuralucb.experiments import Comparison, Plan, Result
    from neuralucb.settings import Setting

__all__ = ["compare", "demo", "list_all", "refuse_diverged", "run"]

DEMO_SETTINGS: dict[str, dict[str, dict[str, float]]] = {
    problem: {
        "neural-ucb": {"step_size": step_size, "exploration": exploration},
        "neural-epsilon-greedy": {"step_size": step_size, "epsilon": 0.01},
        "lin-ucb": {"exploration": 0.01},
    }
    for problem, step_size, exploration in (("h1", 0.1, 0.1), ("h2", 0.01, 10), ("h3", 0.1, 0.1))
}
"""By problem and algorithm."""


@with_options
def run(
    options: RunOptions, algorithm: Annotated[str, typer.Argument(help="See `neuralucb list`.")] = DEFAULT_ALGORITHM
) -> None:
    """Run one algorithm on one problem: its regret over all seeds, as a table and a figure."""
    planned = _plan([algorithm], options)
    name = f"{algorithm}-{planned.problem.name}"
    panels = _play([planned], options.folder, options.formats, options.as_json, name=name)
    if options.as_json:
        print(json.dumps(panels[0][0].as_json(), allow_nan=False))
    refuse_diverged(panels)


@with_options
def compare(
    options: RunOptions,
    algorithms: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "all",
) -> None:
    """Run several algorithms on the same problem, contexts and noise: regret, paired differences, one figure."""
    from neuralucb.algorithms import ALGORITHMS

    ALGORITHMS.load()
    names = list(ALGORITHMS) if algorithms == "all" else [name.strip() for name in algorithms.split(",")]
    if not any(names):
        raise InputError(f"--algorithms must name at least one, got {algorithms!r}.")
    planned = _plan([name for name in names if name], options)
    problem = planned.problem.name
    name = f"compare-{problem}"
    (results,) = _play([planned], options.folder, options.formats, options.as_json, name=name, paired=True)
    if options.as_json:
        differences = [one.as_json() for one in _compared(planned, results).differences()]
        record = {"problem": problem, "results": [one.as_json() for one in results], "differences": differences}
        print(json.dumps(record, allow_nan=False))
    refuse_diverged([results])


def demo(
    folder: Out = Path("demo"),
    rounds: Annotated[int, typer.Option(help="Rounds to play (T).")] = 2_000,
    seeds: Seeds = 4,
    formats: Formats = None,
) -> None:
    """Run NeuralUCB, Neural ε-greedy and LinUCB on h1, h2 and h3 at a reduced size: a minute on two cores."""
    from neuralucb import experiments

    planned = [
        experiments.plan(problem, algorithms, {}, rounds=rounds, seeds=seeds)
        for problem, algorithms in DEMO_SETTINGS.items()
    ]
    refuse_diverged(_play(planned, folder, formats, False, name="regret"))


def list_all(algorithm: Annotated[str | None, typer.Argument(help="Show this algorithm's settings.")] = None) -> None:
    """List algorithms by family, problems, networks and presets; or the settings of one algorithm."""
    from neuralucb.algorithms import ALGORITHMS, FAMILIES, NETWORKS, find_algorithm
    from neuralucb.display.tables import terminal_table
    from neuralucb.experiments.presets import PRESETS
    from neuralucb.problems import PROBLEMS

    if algorithm is None:
        for registry in (ALGORITHMS, PROBLEMS, NETWORKS):
            registry.load()
        for family, title in FAMILIES.items():
            kin = [(one.name, one.summary, one.citation) for one in ALGORITHMS.values() if one.family == family]
            if kin:
                out.print(terminal_table([("algorithm", "", "citation"), *kin], title=f"Algorithms: {title}", left=3))
                out.print()
        listed: dict[str, Mapping[str, Any]] = {"problems": PROBLEMS, "networks": NETWORKS}
        for title, entries in (listed | {"presets": PRESETS}).items():
            rows = [(title, ""), *((name, entry.summary) for name, entry in entries.items())]
            out.print(terminal_table(rows, title="", left=2))
            out.print()
        return
    chosen = find_algorithm(algorithm)
    out.print(f"{chosen.name}: {chosen.summary}. {chosen.citation}.", style="bold")
    out.print(f"Departs from the paper in {chosen.departs}. The grid is the paper's, or ours where it gives none.\n")
    out.print(terminal_table(_setting_rows(chosen.settings), title="", left=5))


def refuse_diverged(panels: Sequence[Sequence["Result"]]) -> None:
    """End with a line about the runs that diverged, if any, and an exit code of their own."""
    from neuralucb.experiments.tables import title_of
    from neuralucb.runtime.words import listed

    failed = [
        f"{one.diverged} of {len(one.seeds)} runs of {title_of(one.algorithm)} on {one.problem}"
        for results in panels
        for one in results
        if one.diverged
    ]
    if failed:
        raise UnsoundError(f"{listed(failed)} diverged: their regret says nothing about the algorithm.")


def _plan(algorithms: Sequence[str], options: RunOptions) -> "Plan":
    from neuralucb import experiments

    refuse_logged(options)
    return experiments.plan(
        named_problem(options.problem, options.data, options.label, options.rewards),
        algorithms,
        read_set(options.settings, options.repeat),
        rounds=options.rounds,
        seeds=options.seeds,
        preset=options.preset,
        schedule=options.schedule,
    )


def _play(
    plans: Sequence["Plan"],
    folder: Path | None,
    formats: Sequence[str] | None,
    as_json: bool,
    *,
    name: str,
    paired: bool = False,
) -> list[list["Result"]]:
    """Run the plans, one panel of the figure each; where a figure is drawn, uniform and oracle are added to it."""
    from neuralucb import experiments
    from neuralucb.display.progress import meters
    from neuralucb.display.results import show_results
    from neuralucb.runtime.compile_cache import keep_compiled

    chosen = read_formats(formats)
    where = output_folder(folder, as_json)
    drawn = plans if where is None else [experiments.with_baselines(planned) for planned in plans]
    keep_compiled()
    panels = []
    for planned in drawn:
        with meters(planned, err, quiet=as_json) as meter:
            panels.append(experiments.play(planned, meter))
    if where is not None:
        compared = _compared(plans[0], panels[0]) if paired else None
        show_results(panels, where, name, out=err if as_json else out, err=err, formats=chosen, compared=compared)
    return panels


def _compared(planned: "Plan", results: Sequence["Result"]) -> "Comparison":
    """The algorithms that were named, without those that a figure adds."""
    from neuralucb.experiments import Comparison

    return Comparison(tuple(one for one in results if one.algorithm in planned.points))


def _setting_rows(settings: Iterable["Setting"]) -> list[list[str]]:
    rows = [["setting", "symbol", "default", "grid", "meaning"]]
    for setting in settings:
        grid = ", ".join(f"{value:g}" for value in setting.grid)
        meaning = f"{setting.meaning}: {setting.allowed}"
        rows.append([setting.name, setting.symbol, str(setting.default), grid, meaning])
    return rows
