"""Beside Figure 2: its chosen settings trained every round up to 2000, and NeuralUCB₀ with its exact dual Z.

python benchmarks/figure2_extras.py play --problems magic --out extras.jsonl   # a line as soon as each has ended
python benchmarks/figure2_extras.py table extras.jsonl                          # for docs/results/figure2.md

The chosen settings are read from docs/results/figure2.csv. What is in the file already is not played again.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from neuralucb import run
from neuralucb.experiments.statistics import estimate_mean
from neuralucb.experiments.tables import title_of

CHOSEN = Path("docs/results/figure2.csv")
EARLY = "1:2000,100"
ROUNDS = 15_000
TRAINED = ("neural-ucb", "neural-epsilon-greedy", "lin-ucb")
DUALS = [{"regularization": ridge, "norm": norm, "noise_bound": 0.1} for ridge in (0.1, 1.0) for norm in (0.01, 0.1)]
"""A few settings of the paper's grid for NeuralUCB₀; its dual keeps T × T numbers, 1.8 GB in float64."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("play", "table"))
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/figure2-extras.jsonl"))
    parser.add_argument("--problems", type=lambda text: text.split(","), default=["magic", "shuttle", "covertype"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--dual-seeds", type=int, default=3)
    options = parser.parse_args()
    if options.do == "table":
        print_table([json.loads(line) for line in (options.file or options.out).read_text().splitlines()])
        return
    known = options.out.read_text().splitlines() if options.out.exists() else []
    done = {_key(json.loads(line)) for line in known}
    for task in tasks(options):
        if _key(task) not in done:
            kept = {name: value for name, value in task.items() if name not in ("settings", "seeds")}
            result = run(**kept, **task["settings"], seeds=task["seeds"], rounds=options.rounds)
            record = {
                **task,
                "regret": result.regret[:, [min(10_000, options.rounds) - 1, -1]].tolist(),
                "diverged": result.diverged,
                "seconds": result.seconds,
            }
            with options.out.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
            print(task, np.mean(record["regret"], axis=0), f"{result.seconds:.0f} s", flush=True)


def tasks(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be played: keyword arguments of `run`."""
    chosen = pandas.read_csv(CHOSEN).drop_duplicates(["reading", "problem", "algorithm"])
    chosen = chosen[chosen.algorithm.isin(TRAINED) & chosen.problem.isin(options.problems)]
    for row in chosen.itertuples():
        named = (each.rsplit(" ", 1) for each in row.setting.split(", "))
        settings = {name: float(value) for name, value in named}
        # LinUCB has no lessons: only its numbers stand beside the others
        yield {
            "algorithm": row.algorithm, "problem": row.problem, "preset": row.reading,
            "schedule": EARLY, "seeds": options.seeds, "settings": settings,
        }  # fmt: skip
    for problem in options.problems:
        for settings in DUALS:
            yield {
                "algorithm": "neural-ucb0", "problem": problem, "preset": "paper", "schedule": "100",
                "seeds": options.dual_seeds, "settings": settings | {"design": "dual"},
            }  # fmt: skip


def print_table(records: list[dict[str, Any]]) -> None:
    """Markdown, a row per line of the file."""
    print("| problem | algorithm | reading | trained | T = 10 000 | T = 15 000 | worst seed | seeds | s | setting |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for record in records:
        regret = np.asarray(record["regret"])
        mean, low, high = estimate_mean(regret[:, 1])
        trouble = f", {record['diverged']} diverged" if record["diverged"] else ""
        words = ", ".join(f"{name} {value}" for name, value in record["settings"].items())
        print(
            f"| {record['problem']} | {title_of(record['algorithm'])} | {record['preset']} | {record['schedule']} "
            f"| {regret[:, 0].mean():.0f} | {mean:.0f} [{low:.0f}, {high:.0f}]{trouble} | {regret[:, 1].max():.0f} "
            f"| {len(regret)} | {record['seconds']:.0f} | {words} |"
        )


def _key(task: dict[str, Any]) -> str:
    return json.dumps([task[name] for name in ("algorithm", "problem", "preset", "schedule", "settings")])


if __name__ == "__main__":
    main()
