"""Tuning: a race between settings on one half of rows or worlds, and the score of its winner on the other."""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neuralucb.experiments.candidates import candidates
from neuralucb.experiments.plans import DEFAULT_ROUNDS, Point, find_bundle, read_point
from neuralucb.experiments.preset_files import write_preset
from neuralucb.experiments.presets import DATA_SETTINGS
from neuralucb.experiments.results import Result
from neuralucb.experiments.runs import run
from neuralucb.experiments.statistics import Estimate, few_seeds
from neuralucb.experiments.tables import number, title_of, with_interval
from neuralucb.problems import PROBLEMS, Definition, Problem, build_problem, find_problem
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.runtime.words import counted
from neuralucb.schedules import read_schedule
from neuralucb.settings import check_integer
from neuralucb.sweeps.optimism import Sample, promise, score
from neuralucb.sweeps.results import Told, shown
from neuralucb.sweeps.spec import CHOOSING, FEWEST_APART, RACE_ERROR, Part, Sweep

if TYPE_CHECKING:
    from neuralucb.sweeps.store import Store

__all__ = ["Tuned", "tune"]

FEWEST_ROWS = 100
"""Of a data set, for a half of it to tell settings apart."""


class Tuned(NamedTuple):
    """The setting that was chosen, what choosing promised, and what it scored on rows and seeds never used in it.

    Example:
        >>> tuned = tune("lin-ucb", "h1", rounds=200, dim=4)  # doctest: +SKIP
        >>> tuned.setting, tuned.scored.mean, tuned.optimism  # doctest: +SKIP
    """

    algorithm: str
    problem: str
    rounds: int
    setting: dict[str, Any]
    """the values that were chosen"""
    settings: dict[str, Any]
    """all settings: what a preset of them holds"""
    schedule: str
    chosen: Estimate
    """mean regret where it was chosen; the interval is the promise of the score: 95 %, corrected for the choice"""
    scored: Estimate
    """mean regret on rows and seeds never used in choosing, with its 95 % interval"""
    result: Result
    """the runs that scored it"""
    tried: int
    """how many settings there were to choose from"""
    cost: float
    """the share of the rounds of all of them on all seeds that was played to choose"""
    race: dict[str, Any]
    """what was dropped, when and why, and what was left"""
    seeds: tuple[int, ...]
    """of the runs that chose it"""
    rows: tuple[int, int] | None
    """how many rows chose, and how many scored; None where worlds did"""
    folder: Path | None
    """where the race is stored; None if it was not to be kept"""

    @property
    def optimism(self) -> float:
        """Chosen minus scored: below zero where the choice looked better than it is."""
        return self.chosen.mean - self.scored.mean

    @property
    def kept(self) -> bool:
        """Whether the score is inside the interval that choosing promised."""
        return self.chosen.low <= self.scored.mean <= self.chosen.high

    @property
    def _verdict(self) -> str:
        return "as" if self.kept else "better than" if self.scored.mean < self.chosen.low else "worse than"

    def write(self, path: Path | str) -> Path:
        """Write the settings as a preset, which every command and function takes by its path.

        Args:
            path: A file whose name ends in .toml.

        Returns:
            The path.

        Raises:
            InputError: The name does not end in .toml.

        Example:
            >>> tuned.write("mine.toml")  # doctest: +SKIP
            >>> neuralucb.run("lin-ucb", "h1", preset="mine.toml")  # doctest: +SKIP
        """
        summary = f"{self.algorithm} tuned on {self.problem}: regret {number(self.scored.mean)} on what it had not seen"
        return write_preset(
            path, algorithm=self.algorithm, schedule=self.schedule, settings=self.settings, summary=summary
        )

    def as_json(self) -> dict[str, Any]:
        """As plain values that JSON knows."""
        return {
            "algorithm": self.algorithm, "problem": self.problem, "rounds": self.rounds, "schedule": self.schedule,
            "setting": self.setting, "settings": self.settings, "chosen": self.chosen._asdict(),
            "scored": self.scored._asdict(), "optimism": self.optimism, "promise_kept": self.kept, "cost": self.cost,
            "choosing_seeds": list(self.seeds), "scoring_seeds": list(self.result.seeds), "rows": self.rows,
            "diverged": self.result.diverged, "race": self.race,
        }  # fmt: skip

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.setting.items()
        )
        where = "worlds" if self.rows is None else f"{self.rows[1]} rows"
        lines = [
            shorten(f"{title_of(self.algorithm)} on {self.problem}, {counted(self.rounds, 'round')}: {values}", 128),
            f"  chosen of {counted(self.tried, 'setting')}: {number(self.chosen.mean)} "
            f"(promised {number(self.chosen.low)} to {number(self.chosen.high)}), {self.cost:.0%} of the full grid",
            f"  scored on other {where}: {with_interval(*self.scored)}, {counted(len(self.result.seeds), 'seed')}",
            f"  optimism: {self.optimism:+.3g}; the score is {self._verdict} promised",
        ]
        remark = few_seeds(len(self.result.seeds))
        return "\n".join(lines + [f"  {remark}"] * bool(remark))


def tune(
    algorithm: str,
    problem: str | Problem | Definition,
    *,
    grid: Mapping[str, Any] | None = None,
    samples: int | None = None,
    rounds: int | None = None,
    seeds: int = 10,
    preset: str | None = None,
    schedule: str | None = None,
    race_error: float = RACE_ERROR,
    seed: int = 0,
    out: Path | str | None = None,
    device: str = "auto",
    progress: bool | Told | None = None,
    **settings: Any,
) -> Tuned:
    """Choose the settings of an algorithm on a problem by a race, and score them where they were not chosen.

    The rows of a data set are split in halves before anything else, scaling included; elsewhere worlds are, by their
    seeds. Settings race on one half, and the winner is played on the other.

    Args:
        algorithm: Its name.
        problem: A name, a problem such as `labelled(X, y)`, or a definition such as `from_file(…)`.
        grid: By setting, a list of values, or a range such as "1e-4..1e-1"; None for the algorithm's own grid.
        samples: How many settings to draw from the grid, at random; None for all, or 32 if there is a range.
        rounds: T; None for 10 000, or half of the rows of a data set if they are fewer.
        seeds: How many choose, and as many others score.
        preset: A bundle of settings by name or file, for all settings that are not in the grid.
        schedule: When to learn; None for the preset's.
        race_error: Level of the tests that drop settings as worse, over the whole race.
        seed: Of the split of rows, and of draws from ranges.
        out: A folder for the race, which the same call resumes; None to keep nothing.
        device: "auto" (a GPU if JAX sees one), "cpu" or "gpu".
        progress: True to show it on stderr, or a function of the name, runs done, and runs known so far.
        **settings: Of the algorithm and of the problem, fixed.

    Returns:
        The setting, what was promised and scored, and the optimism; `write` makes a preset of it.

    Raises:
        InputError: If anything given cannot be used: a grid of one, too few rows to split, an unknown setting, …
        UnsoundError: Every setting diverged; the message says where. Nothing is chosen then.

    Example:
        >>> tuned = neuralucb.tune("lin-ucb", "h1", rounds=200, seeds=5, dim=4)  # doctest: +SKIP
        >>> tuned.write("mine.toml")  # doctest: +SKIP
    """
    try:
        from neuralucb.sweeps.engine import prepare, run_sweep
    except ImportError as missing:
        if missing.name is None or missing.name.startswith("neuralucb"):
            raise
        raise InputError(
            f"tune needs {missing.name}, which is not installed; pip install 'neuralucb[experiments]' brings it."
        ) from None
    count = check_integer("seeds", seeds, FEWEST_APART)
    definition = find_problem(problem)
    points = candidates(algorithm, grid, samples=samples, seed=seed)
    _refuse_fixed(points[0], settings)
    halves = _split(definition, settings, preset, rounds, seed)
    first, *_ = [
        read_point(algorithm, halves.definition, {**settings, **point}, preset, halves.rounds) for point in points
    ]
    when = str(schedule or find_bundle(definition, preset).schedule)
    read_schedule(when)
    fixed = {name: value for name, value in first.algorithm.items() if name not in points[0]}
    with _named(f"{definition.name}{CHOOSING}", halves.choosing, first.problem) as name, _folder(out) as folder:
        part = Part(algorithm, name, settings=fixed, schedule=when, points=points)
        sweep = Sweep(
            f"tune-{algorithm}-{definition.name}", halves.rounds, tuple(range(count)), (part,), search="race",
            race_error=race_error,
        )  # fmt: skip
        job = prepare(sweep, folder, device=device, here=True)
        with shown(job, progress) as listener:
            failures = run_sweep(job, listener)
        if failures:
            raise InputError(f"{failures[0]}; see {failures[0].file}, then tune again.")
        (race,) = job.store.read_races()
        chosen, winner = _winner(job.store, race, halves)
    complete = {**fixed, **winner}
    result = run(
        algorithm, halves.scoring,
        rounds=halves.rounds, seeds=range(count, 2 * count), schedule=when, progress=progress is True, **complete,
    )  # fmt: skip
    scored = Sample(result.final_regret, result.regret, halves.rounds, halves.scoring.rows)
    rows = None if halves.choosing.rows is None else (halves.choosing.rows, int(halves.scoring.rows or 0))
    return Tuned(
        algorithm=algorithm,
        problem=definition.name,
        rounds=halves.rounds,
        setting=winner,
        settings=complete | _of_data(definition, first),
        schedule=when,
        chosen=promise(chosen, seeds=count, rows=halves.scoring.rows, finalists=len(race["left"])),
        scored=score(scored),
        result=result,
        tried=race["settings"],
        cost=sum(stage["lane_rounds"] for stage in race["stages"]) / (len(points) * count * halves.rounds),
        race=race,
        seeds=tuple(range(count)),
        rows=rows,
        folder=None if out is None else Path(out),
    )


class _Halves(NamedTuple):
    """The problem for choosing and for scoring."""

    definition: Definition
    """the problem as it was given, with its settings"""
    choosing: Problem
    scoring: Problem
    rounds: int


def _split(
    definition: Definition, settings: Mapping[str, Any], preset: str | None, rounds: int | None, seed: int
) -> _Halves:
    """Both halves of the rows, each made for itself; the problem itself twice where there are no rows."""
    of_problem = {setting.name for setting in definition.settings}
    bundled = find_bundle(definition, preset).settings
    given = {name: value for name, value in {**bundled, **settings}.items() if name in of_problem}
    whole = build_problem(definition, given)
    if whole.take is None or whole.rows is None:
        return _Halves(
            definition, whole, whole, DEFAULT_ROUNDS if rounds is None else check_integer("rounds", rounds, 1)
        )
    if whole.rows < FEWEST_ROWS:
        raise InputError(
            f"problem must have at least {FEWEST_ROWS} rows, half to choose on and half to score on, got {whole.rows} "
            f"rows of {definition.name}; take more data, or `run` the setting that you trust."
        )
    order = np.random.default_rng(seed).permutation(whole.rows)
    choosing, scoring = (whole.take(np.sort(rows)) for rows in np.array_split(order, 2)[::-1])
    played = (
        min(DEFAULT_ROUNDS, choosing.limit or DEFAULT_ROUNDS) if rounds is None else check_integer("rounds", rounds, 1)
    )
    if choosing.limit is not None and played > choosing.limit:
        raise InputError(
            f"rounds must be at most {choosing.limit}, half of the {whole.rows} rows of {definition.name}, since the "
            f"other half scores, got {played}; play fewer, or start over after the last row: --repeat, in Python "
            "repeat=True."
        )
    return _Halves(definition, choosing, scoring, played)


@contextmanager
def _named(name: str, problem: Problem, settings: Mapping[str, Any]) -> Iterator[str]:
    """A problem under a name, for as long as it is raced on.

    The half has no settings, so that its digest stands for those of the whole: a folder goes on with the same alone.
    """
    text = json.dumps([problem.digest, dict(settings)], sort_keys=True, default=str)
    made = problem._replace(name=name, digest=hashlib.sha256(text.encode()).hexdigest()[:16])
    if name in PROBLEMS:
        raise InputError(f"problem {name!r} is registered already; rename yours: tuning needs that name.")
    PROBLEMS[name] = Definition(name, "half of a problem", (), lambda: made, made.shared, built=True)
    try:
        yield name
    finally:
        del PROBLEMS[name]


def _folder(out: Path | str | None) -> Any:
    """The folder of the race; a temporary one where it is not to be kept."""
    return tempfile.TemporaryDirectory(prefix="neuralucb-tune-") if out is None else nullcontext(out)


def _refuse_fixed(point: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    twice = sorted(set(point) & set(settings))
    if twice:
        raise InputError(f"{twice[0]} is both in the grid and set to {settings[twice[0]]!r}; keep one.")


def _winner(store: "Store", race: Mapping[str, Any], halves: _Halves) -> tuple[Sample, dict[str, Any]]:
    """The setting with the lowest mean on all seeds of choosing, and its runs."""
    from neuralucb.sweeps.selection import contests, read_grids

    if not race["left"]:
        words = [
            f"{', '.join(f'{name} {value}' for name, value in each['setting'].items())} by round "
            f"{max(each['diverged'].values())}"
            for each in race["dropped"]
        ]
        more = f", and {len(words) - 3} more" if len(words) > 3 else ""
        raise UnsoundError(
            f"every setting of {race['algorithm']} on {race['problem']} diverged, so that none was chosen: "
            f"{'; '.join(words[:3])}{more}; add smaller values of step_size, or larger ones of regularization."
        )
    (contest,) = contests(read_grids(store))
    setting = contest.grid.settings[contest.best]
    runs = sorted((each for each in store.finished_runs() if each.swept == setting), key=lambda each: each.seed)
    curves = np.stack([each.regret for each in runs])
    return Sample(curves[:, -1], curves, halves.rounds, halves.choosing.rows), setting


def _of_data(definition: Definition, point: Point) -> dict[str, Any]:
    """How the data were made, as far as it is not the default."""
    default = {setting.name: setting.default for setting in definition.settings}
    return {
        name: value for name, value in point.problem.items() if name in DATA_SETTINGS and value != default.get(name)
    }
