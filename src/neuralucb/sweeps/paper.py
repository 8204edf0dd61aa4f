"""The paper's figures as sweeps, at three scales (Zhou, Li & Gu 2020, Section 7)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.policy import Slot
from neuralucb.problems import Definition, Problem, Round, find_problem
from neuralucb.problems.datasets import SETS, DataSet, data_path
from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.spec import Part, Sweep

__all__ = ["FIGURES", "READINGS", "SCALES", "paper_grid", "paper_sweep", "table1_sizes"]

SCALES = ("smoke", "small", "paper")
READINGS = ("paper", "released")
"""Presets: the paper to the letter, and its networks as the released code trains them; see docs/deviations.md."""

FIGURES: dict[str, tuple[str, ...]] = {
    "figure1": ("h1", "h2", "h3"),
    "figure2": ("covertype", "magic", "shuttle", "mnist"),
}
ALGORITHMS = (
    "neural-ucb",
    "neural-epsilon-greedy",
    "bootstrapped-nn",
    "neural-ucb0",
    "neural-epsilon-greedy0",
    "kernel-ucb",
    "glm-ucb",
    "lin-ucb",
)
REFERENCES = ("uniform",)
"""Drawn beside the paper's algorithms, for scale."""

ROUNDS = {
    "figure1": {"smoke": 200, "small": 4_000, "paper": 10_000},
    "figure2": {"smoke": 100, "small": 2_000, "paper": 15_000},
}
SEEDS = {"smoke": 2, "small": 6, "paper": 10}
SCHEDULES: dict[str, dict[str, str]] = {"figure1": {}, "figure2": {"smoke": "50", "small": "10:200,50", "paper": "100"}}
"""When to learn, where it differs from the paper. To train at every round before 2000 costs 14 times as much."""

REAL_GRID = {
    "regularization": [1e-1, 1e-2, 1e-3, 1e-4],
    "step_size": [factor * size for size in (1e-1, 1e-2, 1e-3, 1e-4) for factor in (2, 5)],
}
"""λ and η of the algorithms that have a network, on data sets; the other grids are those of the synthetic problems."""

REDUCED_REAL_GRID = {"smoke": {"step_size": [0.02]}, "small": {"regularization": [1e-2], "step_size": [0.05]}}
"""The same at smaller scales: with fewer training steps, smaller step sizes barely learn and larger ones diverge."""

REDUCED_EXPLORATION = {"exploration": [0.01, 0.1], "epsilon": [0.01]}
"""For figure 2 at scale small: in so few rounds, the middle of the paper's grids explores far too much."""

LESS_WORK: dict[tuple[str, str], dict[str, Any]] = {
    ("figure1", "smoke"): {"steps": 20, "networks": 3, "budget": 50},
    ("figure2", "smoke"): {"steps": 20, "networks": 2, "budget": 50, "batch_size": 50},
    ("figure2", "small"): {"steps": 200, "networks": 3, "budget": 500},
}
"""Settings that shorten training at a smaller scale; they are stored with every run."""


def paper_sweep(
    figure: str, scale: str, search: str = "grid", reading: str = "paper", problems: Sequence[str] | None = None
) -> Sweep:
    """The runs behind a figure of the paper.

    Args:
        figure: "figure1" (synthetic problems) or "figure2" (data sets).
        scale: "paper" for the paper's size and grids, "small" or "smoke" for less.
        search: "grid" for all of them, or "race" to drop settings that are clearly worse on the way.
        reading: "paper", to the letter; or "released", warm starts and standard scaling as in the released code, for
            the algorithms that train a network.
        problems: Some of the figure's problems, by name; all of them if not set.

    Returns:
        The sweep; `prepare` and `run_sweep` run it.

    Raises:
        InputError: There is no such figure, scale or reading, or a problem is not one of the figure's.

    Example:
        >>> paper_sweep("figure1", "smoke").runs
        78
    """
    asked = ("figure", figure, FIGURES), ("scale", scale, SCALES), ("reading", reading, READINGS)
    for name, value, known in asked:
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    played = FIGURES[figure] if problems is None else tuple(problems)
    for problem in played:
        if problem not in FIGURES[figure]:
            raise InputError(f"problems must be of {figure}'s {', '.join(FIGURES[figure])}, got {problem!r}.")
    if not played:
        raise InputError(f"problems must name at least one of {', '.join(FIGURES[figure])}, got none.")
    parts = [
        Part(name, problem, _grid(name, figure, scale), _less_work(name, figure, scale), reading, schedule)
        for schedule in [SCHEDULES[figure].get(scale)]
        for problem in dict.fromkeys(played)
        for name in (*ALGORITHMS, *REFERENCES)
        if reading == "paper" or "steps" in _settings(name)
    ]
    name = f"{figure}-{scale}" + "-race" * (search == "race") + f"-{reading}" * (reading != "paper")
    name += "" if problems is None else "-" + "-".join(dict.fromkeys(played))
    return Sweep(name, ROUNDS[figure][scale], tuple(range(SEEDS[scale])), tuple(parts), search=search)


def paper_grid(algorithm: str) -> dict[str, list[Any]]:
    """The grid that the paper searched for an algorithm; ours where it gives none."""
    return {setting.name: list(setting.grid) for setting in find_algorithm(algorithm).settings if setting.grid}


def table1_sizes(sweep: Sweep) -> dict[str, Definition]:
    """In place of each data set that is not on this machine, a problem of its size in Table 1: enough to plan with.

    Args:
        sweep: A sweep of the paper.

    Returns:
        By name, for `prepare(…, stand_ins=…)`; empty if every data set was found.

    Example:
        >>> list(table1_sizes(paper_sweep("figure1", "smoke")))
        []
    """
    used = {part.problem for part in sweep.parts} & set(SETS)
    return {
        name: find_problem(name)._replace(make=partial(_of_size, SETS[name]))
        for name in SETS
        if name in used and not data_path(name).exists()
    }


def _of_size(size: DataSet, *, intercept: bool, repeat: bool, **_: Any) -> Problem:
    """A problem with the shapes of a data set and none of its numbers."""
    dim, every = size.features + intercept, np.arange(size.classes, dtype=np.int32)
    shapes = ((size.rows, dim), np.float32), ((size.rows,), np.int32)
    data = tuple(jax.ShapeDtypeStruct(*shape) for shape in shapes)

    def draw(key: jax.Array, data: Any, world: Any, t: jax.Array) -> Round:
        zeros = jnp.zeros((size.classes, dim), jnp.float32)
        return Round(Slot(zeros, jnp.asarray(every)), jnp.zeros(size.classes, jnp.float32), jnp.float32(0))

    limit = None if repeat else size.rows
    return Problem(dim, size.classes, lambda key, data: (), draw, data, True, limit, size.name)


def _grid(name: str, figure: str, scale: str) -> dict[str, list[Any]]:
    """The paper's grid; at scale smoke its middle and two values of γ or α; similarly for figure 2 at scale small."""
    grid, settings = paper_grid(name), _settings(name)
    real = figure == "figure2" and "steps" in settings
    if figure == "figure2" and "width" in settings:  # Section 7.2's λ is for all five that have a network
        grid |= {key: values for key, values in REAL_GRID.items() if key in settings}
    if scale == "smoke":
        grid = {key: values[:2] if key == "exploration" else _middle(values) for key, values in grid.items()}
    elif (figure, scale) == ("figure2", "small"):
        grid = {key: REDUCED_EXPLORATION.get(key) or _middle(values) for key, values in grid.items()}
    return grid | REDUCED_REAL_GRID.get(scale, {}) if real else grid


def _middle(values: list[Any]) -> list[Any]:
    return values[len(values) // 2 :][:1]


def _less_work(name: str, figure: str, scale: str) -> dict[str, Any]:
    less = LESS_WORK.get((figure, scale), {})
    return {key: value for key, value in less.items() if key in _settings(name)}


def _settings(name: str) -> set[str]:
    return {setting.name for setting in find_algorithm(name).settings}
