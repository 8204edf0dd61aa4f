"""Final regret over the paper's grids. Appends one JSON line a setting; what the file has already is not run again.

python benchmarks/regret.py all h1,h2,h3 --rounds 10000 --seeds 10 --out results.jsonl
python benchmarks/regret.py --table results.jsonl
"""

import argparse
import json
from pathlib import Path

import numpy as np

from neuralucb import run_grid
from neuralucb.algorithms import ALGORITHMS, find_algorithm
from neuralucb.experiments.results import interval


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="?", help="names with commas between, or all")
    parser.add_argument("problems", nargs="?", help="names with commas between")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="fixed, instead of the grid")
    parser.add_argument("--out", type=Path, help="file of results to append to")
    parser.add_argument("--table", type=Path, help="file of results to print as a table")
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    names = list(ALGORITHMS) if options.algorithms == "all" else options.algorithms.split(",")
    for problem in options.problems.split(","):
        for name in names:
            sweep(name, problem, options)


def sweep(name: str, problem: str, options: argparse.Namespace) -> None:
    fixed = dict(item.split("=", 1) for item in options.set)
    own = {setting.name for setting in find_algorithm(name).settings}
    grid = {setting.name: setting.grid for setting in find_algorithm(name).settings if setting.grid}
    grid |= {key: (value,) for key, value in fixed.items() if key in own or key in ("dim", "arms", "noise")}
    here = (name, problem, options.rounds, options.seeds, list(grid))
    if not fixed and any(_what(row) == here for row in read(options.out)):
        return
    results = run_grid(name, problem, grid, rounds=options.rounds, seeds=options.seeds)
    with options.out.open("a") as lines:
        lines.writelines(json.dumps(result.as_json() | {"swept": list(grid)}) + "\n" for result in results)
    best = min(results, key=lambda result: result.summary().mean)
    mean, std, low, high = best.summary()
    print(
        f"{name} {problem} {fixed or ''}: best of {len(results)} { {key: best.settings[key] for key in grid} }: "
        f"{mean:.0f} ± {std:.0f} [{low:.0f}, {high:.0f}], diverged {sum(r.diverged for r in results)} runs; "
        f"compiling {best.compile_seconds:.1f} s, running {best.seconds:.1f} s",
        flush=True,
    )


def table(path: Path) -> str:
    """Best of the grid on the same seeds, as the paper does; and chosen on even seeds, scored on odd ones."""
    rows = read(path)
    lines = [
        "| algorithm | problem | best of the grid, 95 % interval | worst seed | chosen on even seeds, scored on odd "
        "| settings | grid | diverged runs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for problem in dict.fromkeys(row["problem"] for row in rows):
        for name in dict.fromkeys(row["algorithm"] for row in rows):
            mine = [row for row in rows if (row["algorithm"], row["problem"]) == (name, problem)]
            for kind in dict.fromkeys(str(_what(row)) for row in mine):
                lines.append(line(name, problem, [row for row in mine if str(_what(row)) == kind]))
    return "\n".join(lines)


def line(name: str, problem: str, rows: list[dict]) -> str:
    regret = np.array([row["final_regret"]["per_seed"] for row in rows])
    best = int(regret.mean(axis=1).argmin())
    low, high = interval(regret[best])
    scored = regret[int(regret[:, ::2].mean(axis=1).argmin())][1::2]
    honest = interval(scored)
    settings = ", ".join(f"{key} {rows[best]['settings'][key]}" for key in rows[best]["swept"])
    diverged = sum(row["diverged"] for row in rows)
    return (
        f"| {name} | {problem} | {regret[best].mean():.0f} [{low:.0f}, {high:.0f}] | {regret[best].max():.0f} "
        f"| {scored.mean():.0f} [{honest[0]:.0f}, {honest[1]:.0f}] | {settings or '–'} | {len(rows)} "
        f"| {diverged} of {regret.size} |"
    )


def _what(row: dict) -> tuple:
    """What makes rows comparable."""
    return row["algorithm"], row["problem"], row["rounds"], len(row["seeds"]), row["swept"]


def read(path: Path) -> list[dict]:
    return [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
