"""A sweep as plain data: what to run, read from TOML or made for the paper's figures."""

import itertools
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neuralucb.algorithms import ALGORITHMS, find_algorithm
from neuralucb.experiments.plans import find_bundle, read_point
from neuralucb.problems import find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.schedules import read_schedule

__all__ = ["Part", "Sweep", "as_toml", "paper_grid", "read_sweep"]


@dataclass(frozen=True)
class Part:
    """One algorithm on one problem, over every combination of the grid's values."""

    algorithm: str
    problem: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """fixed ones, beside the preset's and the defaults"""
    preset: str | None = None
    schedule: str | None = None

    @property
    def runs(self) -> int:
        """How many runs it has for a seed."""
        return math.prod(len(values) for values in self.grid.values())


@dataclass(frozen=True)
class Sweep:
    """Everything that decides the numbers, and nothing else: two equal sweeps have equal results."""

    name: str
    rounds: int
    seeds: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.seeds) * sum(part.runs for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Sweep":
        """The sweep that `as_json` gave."""
        parts = tuple(Part(**part) for part in record["parts"])
        return cls(record["name"], record["rounds"], tuple(record["seeds"]), parts)


def paper_grid(algorithm: str) -> dict[str, list[Any]]:
    """The grid that the paper searched for an algorithm; ours where it gives none."""
    return {setting.name: list(setting.grid) for setting in find_algorithm(algorithm).settings if setting.grid}


def read_sweep(path: Path) -> Sweep:
    """A sweep from a TOML file; what is wrong in it is named with its line and key."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a mark before the first letter
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read: {problem}.") from None
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"at line (\d+)", str(problem))  # the key, which tomllib does not always name, stands there
        line = text.split("\n")[int(place[1]) - 1].strip() if place else ""
        raise InputError(f"{path} is not TOML: {problem}{f', in: {line}' if line else ''}.") from None
    return _Reader(path, text).sweep(record)


def as_toml(sweep: Sweep) -> str:
    """The file from which `read_sweep` makes this sweep; numbers and words are written alike in JSON and TOML."""
    numbered = sweep.seeds == tuple(range(len(sweep.seeds)))
    lines = [f"name = {_toml(sweep.name)}", f"rounds = {sweep.rounds}"]
    lines.append(f"seeds = {len(sweep.seeds) if numbered else _toml(list(sweep.seeds))}")
    for part in sweep.parts:
        lines += ["", "[[runs]]", f"algorithms = {_toml([part.algorithm])}", f"problems = {_toml([part.problem])}"]
        for key in ("grid", "settings", "preset", "schedule"):
            value = getattr(part, key)
            if value:
                lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


WHOLE = {"name", "rounds", "seeds", "preset", "schedule", "runs"}
RUNS = {"algorithms", "problems", "grid", "settings", "preset", "schedule"}
MOST_RUNS = 1_000_000
"""More runs than this are a slip, not a plan."""


class _Reader:
    """Turns a TOML record into a sweep; knows where in the text a key stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def sweep(self, record: Mapping[str, Any]) -> Sweep:
        self._only(record, WHOLE, None)
        runs = record.get("runs")
        if not isinstance(runs, list) or not runs or not all(isinstance(entry, dict) for entry in runs):
            raise self._wrong("runs", None, "must be at least one [[runs]] table")
        rounds = record.get("rounds", 10_000)
        if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
            raise self._wrong("rounds", None, f"must be a whole number of at least 1, got {rounds!r}")
        if rounds >= 2**31:
            raise self._wrong("rounds", None, f"must be below 2³¹, got {rounds}")
        name = record.get("name", self.path.stem)
        if not isinstance(name, str) or not re.fullmatch(r"[\w][\w .+-]{0,99}", name):
            what = "must be a word or two, at most 100 letters, since a folder is named by it"
            raise self._wrong("name", None, f"{what}, got {name!r}")
        parts: dict[tuple[str, str], Part] = {}
        places: list[tuple[int, Part]] = []
        for index, entry in enumerate(runs):
            for part in self._parts(record, entry, index):
                if (part.algorithm, part.problem) in parts:
                    twice = f"has {part.algorithm} on {part.problem} a second time; a sweep has one grid for both"
                    raise self._wrong("algorithms", index, twice)
                places.append((index, part))
                parts[part.algorithm, part.problem] = part
        sweep = Sweep(name, rounds, self._seeds(record), tuple(parts.values()))
        if sweep.runs > MOST_RUNS:
            raise self._wrong("seeds", None, f"times grids makes {sweep.runs} runs; at most {MOST_RUNS}, take fewer")
        for index, part in places:
            self._check(part, rounds, index)
        return sweep

    def _check(self, part: Part, rounds: int, index: int) -> None:
        """Every combination, as it would be run."""
        definition = find_problem(part.problem)
        try:
            bundle = find_bundle(definition, part.preset)
            read_schedule(bundle.schedule if part.schedule is None else part.schedule)
            for values in itertools.product(*part.grid.values()):
                given = {**part.settings, **dict(zip(part.grid, values, strict=True))}
                read_point(part.algorithm, definition, given, part.preset, rounds)
        except ValueError as problem:
            keys = (*part.grid, *part.settings, "preset", "schedule")
            named = ["rounds"] * str(problem).startswith("rounds ") + [key for key in keys if key in str(problem)]
            raise self._wrong(named[0] if named else "algorithms", index, f"is wrong: {problem}") from None

    def _seeds(self, record: Mapping[str, Any]) -> tuple[int, ...]:
        seeds = record.get("seeds", 10)
        if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= 100_000:
            return tuple(range(seeds))
        good = isinstance(seeds, list) and seeds and all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
        if not good or len(set(seeds)) < len(seeds):
            raise self._wrong("seeds", None, f"must be a number of runs, or different seeds from 0, got {seeds!r}")
        return tuple(seeds)

    def _parts(self, record: Mapping[str, Any], entry: Mapping[str, Any], index: int) -> list[Part]:
        self._only(entry, RUNS, index)
        algorithms = self._names(entry, "algorithms", index, list(ALGORITHMS))
        problems = self._names(entry, "problems", index, None)
        for key, names, find in (("algorithms", algorithms, find_algorithm), ("problems", problems, find_problem)):
            for name in names:
                try:
                    find(name)
                except ValueError as problem:
                    raise self._wrong(key, index, f"is wrong: {problem}") from None
        grid = entry.get("grid", {})
        if grid != "paper" and not isinstance(grid, dict):
            raise self._wrong("grid", index, f'must be "paper" or a table of lists, got {grid!r}')
        settings = entry.get("settings", {})
        if not isinstance(settings, dict):
            raise self._wrong("settings", index, f"must be a table, got {settings!r}")
        common = {key: entry.get(key, record.get(key)) for key in ("preset", "schedule")}
        return [
            Part(
                algorithm,
                find_problem(problem).name,
                self._grid(grid, algorithm, problem, settings, algorithms, index),
                self._shared(settings, algorithm, problem, algorithms, index),
                **{key: None if value is None else str(value) for key, value in common.items()},
            )
            for problem in problems
            for algorithm in algorithms
        ]

    def _names(self, entry: Mapping[str, Any], key: str, index: int, every: list[str] | None) -> list[str]:
        names = entry.get(key)
        if names == "all" and every is not None:
            return every
        if isinstance(names, str):
            return [names]
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise self._wrong(key, index, f"must be a list of names, got {names!r}")
        return names

    def _grid(
        self, grid: Any, algorithm: str, problem: str, fixed: Mapping[str, Any], algorithms: Sequence[str], index: int
    ) -> dict[str, Any]:
        if grid == "paper":
            return {name: values for name, values in paper_grid(algorithm).items() if name not in fixed}
        for name, values in grid.items():
            if not isinstance(values, list) or not values:
                raise self._wrong(name, index, f"must be a list of values, got {values!r}")
            if name in fixed:
                raise self._wrong(name, index, "stands in both grid and settings")
            if len({_as_read(name, value, algorithms) for value in values}) < len(values):
                raise self._wrong(name, index, f"has a value twice, got {values!r}")
            if name in {setting.name for setting in find_problem(problem).settings}:
                raise self._wrong(name, index, "is the problem's: a grid over it would choose the easiest problem")
        return self._shared(grid, algorithm, problem, algorithms, index)

    def _shared(
        self, given: Mapping[str, Any], algorithm: str, problem: str, algorithms: Sequence[str], index: int
    ) -> dict[str, Any]:
        """Those of the given settings that this algorithm or problem has; one that nobody has is refused."""
        of_problem = {setting.name for setting in find_problem(problem).settings}
        known = {setting.name for name in algorithms for setting in find_algorithm(name).settings} | of_problem
        for name in given:
            if name not in known:
                raise self._wrong(name, index, f"is not a setting of these; they have: {', '.join(sorted(known))}")
        own = {setting.name for setting in find_algorithm(algorithm).settings} | of_problem
        return {name: value for name, value in given.items() if name in own}

    def _only(self, record: Mapping[str, Any], allowed: set[str], index: int | None) -> None:
        for key in record:
            if key not in allowed:
                raise self._wrong(key, index, f"is not known here; known: {', '.join(sorted(allowed))}")

    def _wrong(self, key: str, index: int | None, what: str) -> ValueError:
        return ValueError(f"{self.path} line {self._line(key, index)}: {key} {what.removesuffix('.')}.")

    def _line(self, key: str, index: int | None) -> int:
        """Where a key stands: in the index-th [[runs]], or for all of them; else where that [[runs]] begins."""
        seen, place, for_all = -1, None, None
        for number, line in enumerate(map(_without_comment, self.lines), start=1):
            if re.match(r"\s*\[\[\s*runs\s*\]\]", line):
                seen += 1
                place = number if seen == index else place
            if re.search(rf"""(^|[\s\[{{,.])["']?{re.escape(key)}["']?\s*[=\]]""", line):
                if index is None or seen == index:
                    return number
                for_all = number if seen == -1 else for_all
        return for_all or place or max(1, len(self.lines))


def _without_comment(line: str) -> str:
    """A line up to its #, if that does not stand in quotes."""
    return re.sub(r"""("[^"]*"|'[^']*')|#.*""", r"\1", line)


def _as_read(name: str, value: Any, algorithms: Sequence[str]) -> str:
    """A value in one spelling, so that 0.1, 1e-1 and "0.10" are one; a wrong one as it stands."""
    settings = [each for algorithm in algorithms for each in find_algorithm(algorithm).settings if each.name == name]
    with suppress(ValueError):
        return repr(settings[0].read(value)) if settings else repr(value)
    return repr(value)
