"""The paper's figures as sweeps, at three sizes (Zhou, Li & Gu 2020, Section 7)."""

from typing import Any

from neuralucb.algorithms import find_algorithm
from neuralucb.sweeps.spec import Part, Sweep, paper_grid

__all__ = ["FIGURES", "SCALES", "paper_sweep"]

SCALES = ("smoke", "small", "paper")
FIGURES = {"figure1": ("h1", "h2", "h3"), "figure2": ("covertype", "magic", "shuttle", "mnist")}
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
SCALE = ("uniform",)
"""beside the paper's, for scale"""

ROUNDS = {
    "figure1": {"smoke": 200, "small": 4_000, "paper": 10_000},
    "figure2": {"smoke": 100, "small": 2_000, "paper": 15_000},
}
SEEDS = {"smoke": 2, "small": 6, "paper": 10}
SCHEDULES = {"figure1": {}, "figure2": {"smoke": "50", "small": "10:200,50"}}
"""when to learn, where it is not the paper's"""

REAL_GRID = {
    "regularization": [1e-1, 1e-2, 1e-3, 1e-4],
    "step_size": [factor * size for size in (1e-1, 1e-2, 1e-3, 1e-4) for factor in (2, 5)],
}
"""λ and η of the algorithms that train a network on real data; the rest is as for the synthetic problems."""

LESS_OF_IT = {"smoke": {"step_size": [0.02]}, "small": {"regularization": [1e-2], "step_size": [0.05]}}
"""Of that grid for the smaller sizes: with fewer training steps smaller ones learn next to nothing, larger diverge."""

LITTLE_EXPLORATION = {"exploration": [0.01, 0.1], "epsilon": [0.01]}
"""For small real data: in so few rounds the middle of the paper's grids explores itself to death."""

LESS_WORK: dict[tuple[str, str], dict[str, Any]] = {
    ("figure1", "smoke"): {"steps": 20, "networks": 3, "budget": 50},
    ("figure2", "smoke"): {"steps": 20, "networks": 2, "budget": 50, "batch_size": 50},
    ("figure2", "small"): {"steps": 200, "networks": 3, "budget": 500},
}
"""Settings that make a size what it is: they shorten training, and are part of every row in the store."""


def paper_sweep(figure: str, scale: str) -> Sweep:
    """The runs behind a figure: `paper` is the paper's size and grids, `small` and `smoke` are less."""
    parts = [
        Part(name, problem, _grid(name, figure, scale), _less_work(name, figure, scale), "paper", schedule)
        for schedule in [SCHEDULES[figure].get(scale)]
        for problem in FIGURES[figure]
        for name in (*ALGORITHMS, *SCALE)
    ]
    return Sweep(f"{figure}-{scale}", ROUNDS[figure][scale], tuple(range(SEEDS[scale])), tuple(parts))


def _grid(name: str, figure: str, scale: str) -> dict[str, list[Any]]:
    """The paper's grid; for smoke the middle of it, and two values of γ or α; likewise for small real data."""
    grid = paper_grid(name)
    real = figure == "figure2" and "steps" in _settings(name)
    if real:
        grid |= REAL_GRID
    if scale == "smoke":
        grid = {key: values[:2] if key == "exploration" else _middle(values) for key, values in grid.items()}
    elif (figure, scale) == ("figure2", "small"):
        grid = {key: LITTLE_EXPLORATION.get(key) or _middle(values) for key, values in grid.items()}
    return grid | LESS_OF_IT.get(scale, {}) if real else grid


def _middle(values: list[Any]) -> list[Any]:
    return values[len(values) // 2 :][:1]


def _less_work(name: str, figure: str, scale: str) -> dict[str, Any]:
    less = LESS_WORK.get((figure, scale), {})
    return {key: value for key, value in less.items() if key in _settings(name)}


def _settings(name: str) -> set[str]:
    return {setting.name for setting in find_algorithm(name).settings}
