"""A sweep as plain data: which algorithms run on which problems, over which grids and seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import check_modules
from neuralucb.runtime.records import brief

__all__ = ["Part", "Sweep"]


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

    def __post_init__(self) -> None:
        """Refuse what other processes could not be told."""
        for name, values in (*self.grid.items(), *((name, [value]) for name, value in self.settings.items())):
            for value in values:
                if callable(value) or isinstance(value, tuple) or callable(getattr(value, "apply", None)):
                    raise InputError(
                        f"{name} must be plain data in a sweep, whose runs are made by other processes, got "
                        f"{value!r:.60}; register it by name in a module, and name that module in import."
                    )

    @property
    def runs(self) -> int:
        """Number of runs per seed."""
        return math.prod(len(values) for values in self.grid.values())


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

    Example:
        >>> Sweep("mine", 300, (0, 1, 2), (Part("uniform", "h1"),)).runs
        3
    """

    name: str
    rounds: int
    seeds: tuple[int, ...]
    parts: tuple[Part, ...]
    imports: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse names that no module can have."""
        check_modules("imports", self.imports)

    @property
    def runs(self) -> int:
        """Number of runs in total."""
        return len(self.seeds) * sum(part.runs for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """The sweep as plain data, for a file; without imports as version 0.1 wrote it."""
        record = asdict(self)
        imports = record.pop("imports")
        return {**record, "import": list(imports)} if imports else record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Sweep":
        """The sweep that `as_json` was called on."""
        parts = tuple(Part(**part) for part in record["parts"])
        return cls(record["name"], record["rounds"], tuple(record["seeds"]), parts, tuple(record.get("import", ())))
