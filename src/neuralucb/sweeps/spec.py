"""A sweep as plain data: which algorithms run on which problems, over which grids and seeds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import check_modules
from neuralucb.runtime.records import brief

__all__ = ["CHOOSING", "FEWEST_APART", "RACE_ERROR", "SEARCHES", "Part", "Sweep"]

SEARCHES = ("grid", "race")

RACE_ERROR = 0.05

CHOOSING = ".choosing"
"""How the names of problems end that are one half of another, made by `tune`."""

FEWEST_APART = 4
"""Seeds of a race, at least, for half of them to be kept for the score; fewer all race, as one could not tell what is
clearly worse."""


@brief
@dataclass(frozen=True)
class Part:
    """One algorithm on one problem, over every combination of the grid's values.

    Args:
        algorithm: Name of the algorithm, as in `neuralucb list`.
        problem: Name of the problem.
        grid: For each swept setting the values to try; every combination is run.
        settings: Fixed settings, which take precedence over the preset's and the defaults.
        preset: Name of a preset; None for the problem's default.
        schedule: When to learn, such as "50"; None for the preset's.
        points: Instead of a grid, the combinations themselves, each with the same settings.

    Example:
        >>> Part("lin-ucb", "h1", {"exploration": [0.1, 1.0]}, {"dim": 4}).runs
        2
    """

    algorithm: str
    problem: str
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    schedule: str | None = None
    points: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse what other processes could not be told."""
        fixed = [(name, [value]) for each in (self.settings, *self.points) for name, value in each.items()]
        for name, values in (*self.grid.items(), *fixed):
            for value in values:
                if callable(value) or isinstance(value, tuple) or callable(getattr(value, "apply", None)):
                    raise InputError(
                        f"{name} must be plain data in a sweep, whose runs are made by other processes, got "
                        f"{value!r:.60}; register it by name in a module, and name that module in import."
                    )

    @property
    def runs(self) -> int:
        """Number of runs per seed."""
        return len(self.points) or math.prod(len(values) for values in self.grid.values())

    @property
    def swept(self) -> tuple[str, ...]:
        """The settings that vary."""
        return tuple(self.points[0] if self.points else self.grid)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """What to run: the values of the swept settings."""
        if self.points:
            yield from map(dict, self.points)
        else:
            yield from (dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values()))


@brief
@dataclass(frozen=True)
class Sweep:
    """Everything that decides the numbers, and nothing else: two equal sweeps have equal results.

    Args:
        name: A short name; the default folder of the results is named after it.
        rounds: Rounds per run, T.
        seeds: The seeds of every setting; a seed is the same problem for every algorithm.
        parts: What to run.
        imports: Modules that register algorithms, problems or networks of the parts; worker processes import them too.
        search: "grid" plays every setting to the end; "race" drops settings on the way that are clearly worse, or
            diverged.
        race_error: In a race, the level over all stages of the tests between a setting and the leader.

    Example:
        >>> Sweep("mine", 300, (0, 1, 2), (Part("uniform", "h1"),)).runs
        3
    """

    name: str
    rounds: int
    seeds: tuple[int, ...]
    parts: tuple[Part, ...]
    imports: tuple[str, ...] = ()
    search: str = "grid"
    race_error: float = RACE_ERROR

    def __post_init__(self) -> None:
        """Refuse names that no module can have, and searches that are not known."""
        check_modules("imports", self.imports)
        if self.search not in SEARCHES:
            raise InputError(f"search must be one of {', '.join(SEARCHES)}, got {self.search!r}.")
        number = isinstance(self.race_error, int | float) and not isinstance(self.race_error, bool)
        if not number or not 0 < self.race_error < 1:
            raise InputError(f"race_error must be a probability between 0 and 1, got {self.race_error!r}.")
        if self.search == "race" and len(self.seeds) < 2:
            raise InputError(
                f"seeds must be at least 2 in a race, which compares settings seed by seed, got {len(self.seeds)}; "
                "take 10, or search = grid."
            )
        if self.search == "race" and all(part.runs == 1 for part in self.parts):
            raise InputError(
                "search = race needs a grid of at least two settings, but every grid has one; add values, or take "
                "search = grid."
            )

    @property
    def runs(self) -> int:
        """Number of runs in total; in a race, if nothing were dropped."""
        return len(self.seeds) * sum(part.runs for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """The sweep as plain data, for a file; a full grid without imports as version 0.1 wrote it."""
        record = asdict(self)
        for part in record["parts"]:
            if not part["points"]:
                del part["points"]
        imports, search, race_error = (record.pop(name) for name in ("imports", "search", "race_error"))
        if imports:
            record["import"] = list(imports)
        return record if search == "grid" else {**record, "search": search, "race_error": race_error}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Sweep":
        """The sweep that `as_json` was called on."""
        parts = tuple(Part(**part) for part in record["parts"])
        search = {name: record[name] for name in ("search", "race_error") if name in record}
        return cls(
            record["name"], record["rounds"], tuple(record["seeds"]), parts, tuple(record.get("import", ())), **search
        )
