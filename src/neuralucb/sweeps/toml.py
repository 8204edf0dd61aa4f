"""Sweeps in TOML files: reading one, with line and key of what is wrong in it, and writing one."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from neuralucb.algorithms import ALGORITHMS, find_algorithm
from neuralucb.experiments.plans import find_bundle, read_point
from neuralucb.problems import find_problem
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import add_modules
from neuralucb.schedules import read_schedule
from neuralucb.sweeps.paper import paper_grid
from neuralucb.sweeps.spec import Part, Sweep

__all__ = ["as_toml", "read_record", "read_sweep"]

SWEEP_KEYS = {"name", "rounds", "seeds", "preset", "schedule", "import", "search", "race_error", "runs"}
RUNS_KEYS = {"algorithms", "problems", "grid", "points", "settings", "preset", "schedule"}
MOST_RUNS = 1_000_000
"""A sweep of more runs than this is taken for a typing error."""


def read_sweep(path: Path | str) -> Sweep:
    """Read a sweep from a TOML file.

    Args:
        path: The file; docs/sweeps.md shows its keys.

    Returns:
        The sweep, with every combination of its grids checked.

    Raises:
        InputError: The file cannot be read, or something in it is wrong; the message names the line and the key.

    Example:
        >>> read_sweep("mine.toml").runs
        2
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        place = re.search(r"at line (\d+)", str(problem))  # tomllib does not always name the key, so we quote the line
        line = text.split("\n")[int(place[1]) - 1].strip() if place else ""
        raise InputError(f"{path} is not valid TOML: {problem}{f', in: {line}' if line else ''}.") from None
    return _Reader(path, text).sweep(record)


def read_record(record: Mapping[str, Any]) -> Sweep:
    """A sweep from a dictionary of the form that a TOML file has, checked in the same way; mistakes name the key."""
    return _Reader(None, "").sweep(record)


def as_toml(sweep: Sweep) -> str:
    """Write a sweep as TOML.

    Args:
        sweep: Any sweep.

    Returns:
        The text of a file from which `read_sweep` makes an equal sweep.

    Example:
        >>> print(as_toml(Sweep("mine", 300, (0, 1), (Part("uniform", "h1"),))).splitlines()[0])
        name = "mine"
    """
    from_zero = sweep.seeds == tuple(range(len(sweep.seeds)))
    lines = [f"name = {_value(sweep.name)}", f"rounds = {sweep.rounds}"]
    lines.append(f"seeds = {len(sweep.seeds) if from_zero else _value(list(sweep.seeds))}")
    lines += [f"import = {_value(list(sweep.imports))}"] * bool(sweep.imports)
    if sweep.search == "race":
        lines += [f"search = {_value(sweep.search)}", f"race_error = {_value(sweep.race_error)}"]
    for part in sweep.parts:
        lines += ["", "[[runs]]", f"algorithms = {_value([part.algorithm])}", f"problems = {_value([part.problem])}"]
        for key in ("grid", "points", "settings", "preset", "schedule"):
            value = getattr(part, key)
            if value:
                lines.append(f"{key} = {_value(value)}")
    return "\n".join(lines) + "\n"


class _Entry(NamedTuple):
    """A [[runs]] table, its names checked."""

    number: int
    """which one it is, from 0"""
    algorithms: Sequence[str]
    grid: Any
    settings: Mapping[str, Any]


class _Reader:
    """Turns a TOML record into a sweep; knows on which line of the text a key is, if it comes from a file."""

    def __init__(self, path: Path | None, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def sweep(self, record: Mapping[str, Any]) -> Sweep:
        self._allow_only(SWEEP_KEYS, record, None)
        entries = record.get("runs")
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self._wrong("runs", None, "must be at least one [[runs]] table")
        name, rounds, imports = self._name(record), self._rounds(record), self._imports(record)
        parts: dict[tuple[str, str], Part] = {}
        entry_of: list[tuple[int, Part]] = []
        for index, entry in enumerate(entries):
            for part in self._parts(record, entry, index):
                if (part.algorithm, part.problem) in parts:
                    twice = f"has {part.algorithm} on {part.problem} a second time; a sweep has one grid per pair"
                    raise self._wrong("algorithms", index, twice)
                entry_of.append((index, part))
                parts[part.algorithm, part.problem] = part
        search = {key: record[key] for key in ("search", "race_error") if key in record}
        try:
            sweep = Sweep(name, rounds, self._seeds(record), tuple(parts.values()), imports, **search)
        except InputError as problem:
            key, _, what = str(problem).partition(" ")
            raise self._wrong(key, None, what) from None
        if sweep.runs > MOST_RUNS:
            raise self._wrong("seeds", None, f"times grids makes {sweep.runs} runs; at most {MOST_RUNS}, take fewer")
        for index, part in entry_of:
            self._check(part, rounds, index)
        return sweep

    def _check(self, part: Part, rounds: int, index: int) -> None:
        """Check every combination as it would be run."""
        definition = find_problem(part.problem)
        try:
            bundle = find_bundle(definition, part.preset)
            read_schedule(bundle.schedule if part.schedule is None else part.schedule)
            for swept in part.combinations():
                read_point(part.algorithm, definition, {**part.settings, **swept}, part.preset, rounds)
        except InputError as problem:
            keys = (*part.swept, *part.settings, "preset", "schedule")
            named = ["rounds"] * str(problem).startswith("rounds ") + [key for key in keys if key in str(problem)]
            raise self._wrong(named[0] if named else "algorithms", index, f"is wrong: {problem}") from None

    def _name(self, record: Mapping[str, Any]) -> str:
        name = record.get("name", self.path.stem if self.path else "sweep")
        if not isinstance(name, str) or not re.fullmatch(r"[\w][\w .+-]{0,99}", name):
            rule = "must be a word or two, at most 100 letters, since the folder is named after it"
            raise self._wrong("name", None, f"{rule}, got {name!r}")
        return name

    def _imports(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """The modules to import, imported: the names that they register are read next."""
        names = record.get("import", [])
        try:
            add_modules(names)
        except InputError as problem:
            raise self._wrong("import", None, f"is wrong: {problem}") from None
        return tuple(names)

    def _rounds(self, record: Mapping[str, Any]) -> int:
        rounds = record.get("rounds", 10_000)
        if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
            raise self._wrong("rounds", None, f"must be an integer of at least 1, got {rounds!r}")
        if rounds >= 2**31:
            raise self._wrong("rounds", None, f"must be below 2³¹, got {rounds}")
        return rounds

    def _seeds(self, record: Mapping[str, Any]) -> tuple[int, ...]:
        seeds = record.get("seeds", 10)
        if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= 100_000:
            return tuple(range(seeds))
        valid = isinstance(seeds, list) and seeds and all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
        if not valid or len(set(seeds)) < len(seeds):
            rule = "must be the number of seeds, at most 100000, or a list of different integers from 0"
            raise self._wrong("seeds", None, f"{rule}, got {seeds!r}")
        return tuple(seeds)

    def _parts(self, record: Mapping[str, Any], entry: Mapping[str, Any], index: int) -> list[Part]:
        self._allow_only(RUNS_KEYS, entry, index)
        ALGORITHMS.load()
        algorithms = self._names(entry, "algorithms", index, list(ALGORITHMS))
        problems = self._names(entry, "problems", index, None)
        for key, names, find in (("algorithms", algorithms, find_algorithm), ("problems", problems, find_problem)):
            for name in names:
                try:
                    find(name)
                except InputError as problem:
                    raise self._wrong(key, index, f"is wrong: {problem}") from None
        grid = entry.get("grid", {})
        if grid != "paper" and not isinstance(grid, dict):
            raise self._wrong("grid", index, f'must be "paper" or a table of lists, got {grid!r}')
        settings = entry.get("settings", {})
        if not isinstance(settings, dict):
            raise self._wrong("settings", index, f"must be a table, got {settings!r}")
        read = _Entry(index, algorithms, grid, settings)
        points = self._points(entry, read)
        common = {key: entry.get(key, record.get(key)) for key in ("preset", "schedule")}
        return [
            Part(
                algorithm,
                find_problem(problem).name,
                self._grid(read, algorithm, problem),
                self._applicable(settings, read, algorithm, problem),
                **{key: None if value is None else str(value) for key, value in common.items()},
                points=points,
            )
            for problem in problems
            for algorithm in algorithms
        ]

    def _points(self, entry: Mapping[str, Any], read: _Entry) -> list[dict[str, Any]]:
        """The combinations of a [[runs]] that has no grid; each has the same settings, which every algorithm has."""
        points = entry.get("points", [])
        if not isinstance(points, list) or not all(isinstance(point, dict) and point for point in points):
            raise self._wrong("points", read.number, f"must be a list of tables, got {points!r:.60}")
        if points and "grid" in entry:
            raise self._wrong("points", read.number, "must not be given together with grid; keep one")
        if any(set(point) != set(points[0]) for point in points):
            raise self._wrong("points", read.number, f"must all have the settings {', '.join(points[0])}")
        if any(point in points[:place] for place, point in enumerate(points)):
            raise self._wrong("points", read.number, "has a combination twice")
        for name in points[0] if points else ():
            lacks = [one for one in read.algorithms if name not in {s.name for s in find_algorithm(one).settings}]
            if lacks or name in read.settings:
                what = f"is not a setting of {lacks[0]}" if lacks else "is set in both points and settings; keep one"
                raise self._wrong(name, read.number, what)
        return points

    def _names(self, entry: Mapping[str, Any], key: str, index: int, every: list[str] | None) -> list[str]:
        names = entry.get(key)
        if names == "all" and every is not None:
            return every
        if isinstance(names, str):
            return [names]
        if not isinstance(names, list) or not names:
            raise self._wrong(key, index, f"must be a list of names, got {names!r}")
        for name in names:
            if not isinstance(name, str):
                got = f"got {' '.join(repr(name).split()):.60}"
                raise self._wrong(key, index, f"must be names, {got}; register your own under a name")
        return names

    def _grid(self, entry: _Entry, algorithm: str, problem: str) -> dict[str, Any]:
        index = entry.number
        if entry.grid == "paper":
            return {name: values for name, values in paper_grid(algorithm).items() if name not in entry.settings}
        for name, values in entry.grid.items():
            if not isinstance(values, list) or not values:
                raise self._wrong(name, index, f"must be a list of values, got {values!r}")
            if name in entry.settings:
                raise self._wrong(name, index, "is set in both grid and settings; keep one")
            if len({_canonical(name, value, entry.algorithms) for value in values}) < len(values):
                raise self._wrong(name, index, f"has a value twice, got {values!r}")
            if name in {setting.name for setting in find_problem(problem).settings}:
                rule = "is a setting of the problem, which a grid must not vary: the easiest problem would win"
                raise self._wrong(name, index, f"{rule}; set it in settings")
        return self._applicable(entry.grid, entry, algorithm, problem)

    def _applicable(self, given: Mapping[str, Any], entry: _Entry, algorithm: str, problem: str) -> dict[str, Any]:
        """The given settings that this algorithm or problem has; one that none of the algorithms has is refused."""
        of_problem = {setting.name for setting in find_problem(problem).settings}
        known = {setting.name for name in entry.algorithms for setting in find_algorithm(name).settings} | of_problem
        for name in given:
            if name not in known:
                raise self._wrong(
                    name, entry.number, f"is not a setting of these; they have: {', '.join(sorted(known))}"
                )
        accepted = {setting.name for setting in find_algorithm(algorithm).settings} | of_problem
        return {name: value for name, value in given.items() if name in accepted}

    def _allow_only(self, allowed: set[str], record: Mapping[str, Any], index: int | None) -> None:
        for key in record:
            if key not in allowed:
                raise self._wrong(key, index, f"is not known here; known: {', '.join(sorted(allowed))}")

    def _wrong(self, key: str, index: int | None, what: str) -> InputError:
        if self.path is None:
            place = "" if index is None or key in SWEEP_KEYS - RUNS_KEYS else f"runs[{index}]."
            return InputError(f"spec: {place}{key} {what.removesuffix('.')}.")
        return InputError(f"{self.path} line {self._line(key, index)}: {key} {what.removesuffix('.')}.")

    def _line(self, key: str, index: int | None) -> int:
        """The line of a key: in the index-th [[runs]], or above all of them; else where that [[runs]] begins."""
        seen, start, above = -1, None, None
        for number, line in enumerate(map(_without_comment, self.lines), start=1):
            if re.match(r"\s*\[\[\s*runs\s*\]\]", line):
                seen += 1
                start = number if seen == index else start
            if re.search(rf"""(^|[\s\[{{,.])["']?{re.escape(key)}["']?\s*[=\]]""", line):
                if index is None or seen == index:
                    return number
                above = number if seen == -1 else above
        return above or start or max(1, len(self.lines))


def _value(value: Any) -> str:
    """A value in TOML; numbers and strings are written as in JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _without_comment(line: str) -> str:
    """A line up to its first # outside quotes."""
    return re.sub(r"""("[^"]*"|'[^']*')|#.*""", r"\1", line)


def _canonical(name: str, value: Any, algorithms: Sequence[str]) -> str:
    """A value in one spelling, so that 0.1, 1e-1 and "0.10" are equal; an invalid one unchanged."""
    settings = [each for algorithm in algorithms for each in find_algorithm(algorithm).settings if each.name == name]
    with suppress(ValueError):
        return repr(settings[0].read(value)) if settings else repr(value)
    return repr(value)
