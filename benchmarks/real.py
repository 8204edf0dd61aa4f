"""Every algorithm on real data, each set with a setting of its own: chosen on seeds 100 to 102, scored on seeds 0 to 9.

NEURALUCB_DATA=FOLDER python benchmarks/real.py magic lin-ucb,kernel-ucb --out real.jsonl
python benchmarks/real.py --table real.jsonl

Writes a line for each algorithm as soon as it has ended; what is there already is not run again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb import run_grid
from neuralucb.algorithms import ALGORITHMS
from neuralucb.experiments.presets import REAL
from neuralucb.experiments.statistics import interval
from neuralucb.problems import find_problem

OFTEN_AT_FIRST = "1:200,5:1000,10:2000,50"

GOOD: dict[str, Any] = REAL | {
    "scaling": "standard",
    "encoding": "heads",
    "start": "warm",
    "steps": 300,
    "batch_size": 64,
    "exploration": 0.01,
}
DEEP: dict[str, Any] = GOOD | {"width": 300, "depth": 3}
SETTLING: dict[str, Any] = {"optimizer": "adam", "decay": "linear", "intercept": True}
BEST: dict[str, dict[str, Any]] = {
    "magic": DEEP | SETTLING | {"step_size": 3e-3, "regularization": 3},
    "shuttle": GOOD | {"step_size": 0.3, "regularization": 1e-3, "input_scaling": "unit"},
    "covertype": DEEP | SETTLING | {"step_size": 1e-3, "regularization": 1, "initialization": "symmetric"},
    "mnist": DEEP
    | {"optimizer": "adam", "step_size": 3e-4, "regularization": 1e-5, "exploration": 0.006, "input_scaling": "smooth"},
}
"""Settings by data set, found by hand: what one setting for all is measured against."""

SHAPES = {"width", "depth", "scaling", "encoding", "duplicate", "design", "input_scaling", "intercept"}
"""Those that algorithms which train nothing take over."""

CHOOSING, SCORING = [100, 101, 102], list(range(10))
HORIZONS = (10_000, 15_000)
GRIDS: dict[str, dict[str, list[Any]]] = {
    "neural-ucb": {},
    "neural-epsilon-greedy": {},
    "bootstrapped-nn": {},
    "neural-ucb0": {"regularization": [1e-3, 0.1], "noise_bound": [0.01, 0.1], "norm": [0.01]},
    "neural-epsilon-greedy0": {"regularization": [1e-3, 0.1], "epsilon": [0.001, 0.01]},
    "lin-ucb": {"exploration": [0.01, 0.1, 1]},
    "glm-ucb": {"regularization": [0.1, 1], "step_size": [1, 10], "exploration": [0.01, 0.1]},
    "kernel-ucb": {"bandwidth": [0.1, 1], "exploration": [0.01, 0.1]},
}
"""What is chosen; nothing where the preset has it. Parts of the paper's grids: the values that won in first trials."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?")
    parser.add_argument("algorithms", nargs="?", default=",".join(GRIDS))
    parser.add_argument("--seeds", type=int, default=len(SCORING))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table is not None:
        print_table([json.loads(line) for line in options.table.read_text().splitlines()])
        return
    if options.problem is None or options.out is None:
        parser.error("name a problem and --out, or a file with --table")
    for algorithm in options.algorithms.split(","):
        if (options.problem, algorithm) not in done(options.out):
            record = score(algorithm, options.problem, SCORING[: options.seeds])
            with options.out.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
            print(
                options.problem, algorithm, {horizon: np.mean(record["regret"][str(horizon)]) for horizon in HORIZONS},
                record["chosen"], f"{record['seconds']:.0f} s", flush=True,
            )  # fmt: skip


def done(path: Path) -> set[tuple[str, str]]:
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(record["problem"], record["algorithm"]) for record in records}


def score(algorithm: str, problem: str, seeds: list[int]) -> dict[str, Any]:
    """The best point of the grid on the choosing seeds, played on the others."""
    grid, chosen = GRIDS[algorithm], {}
    known = {setting.name for setting in (*ALGORITHMS[algorithm].settings, *find_problem(problem).settings)}
    kept = known if "steps" in known else known & SHAPES
    own = {name: [value] for name, value in BEST[problem].items() if name in kept}
    if grid:
        tried = run_grid(algorithm, problem, own | grid, rounds=HORIZONS[0], seeds=CHOOSING, schedule=OFTEN_AT_FIRST)
        best = min(tried, key=lambda result: result.summary().mean)
        chosen = {name: best.settings[name] for name in grid}
    point = own | {name: [value] for name, value in chosen.items()}
    (result,) = run_grid(algorithm, problem, point, rounds=HORIZONS[-1], seeds=seeds, schedule=OFTEN_AT_FIRST)
    return {
        "algorithm": algorithm,
        "problem": problem,
        "chosen": chosen,
        "regret": {str(horizon): result.regret[:, horizon - 1].tolist() for horizon in HORIZONS},
        "diverged": result.diverged,
        "seconds": result.seconds,
        "device": result.device,
    }


def print_table(records: list[dict[str, Any]]) -> None:
    """Markdown: a row an algorithm; mean, Student's 95 % interval and worst seed."""
    problems = list(dict.fromkeys(record["problem"] for record in records))
    cells = {(record["problem"], record["algorithm"]): record for record in records}
    for horizon in HORIZONS:
        print(f"\n| T = {horizon} | " + " | ".join(problems) + " |\n| --- |" + " --- |" * len(problems))
        for algorithm in (name for name in ALGORITHMS if name in GRIDS):
            row = [_cell(cells.get((problem, algorithm)), horizon) for problem in problems]
            print(f"| {algorithm} | " + " | ".join(row) + " |")


def _cell(record: dict[str, Any] | None, horizon: int) -> str:
    if record is None:
        return "not run"
    regret = np.asarray(record["regret"][str(horizon)])
    low, high = interval(regret)
    trouble = f", {record['diverged']} diverged" if record["diverged"] else ""
    return f"{regret.mean():.0f} [{low:.0f}, {high:.0f}], worst {regret.max():.0f}{trouble}"


if __name__ == "__main__":
    main()
