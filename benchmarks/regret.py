"""Final regret over the paper's grids, one JSON line a setting, written as they come.

python benchmarks/regret.py neural-ucb h1 --rounds 10000 --seeds 10 --set initialization=paper --out results.jsonl
"""

import argparse
import json

import jax

from neuralucb import run_grid
from neuralucb.algorithms import find_algorithm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm")
    parser.add_argument("problem")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="fixed settings, instead of their grid"
    )
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    fixed = dict(item.split("=", 1) for item in options.set)
    grid = {setting.name: setting.grid for setting in find_algorithm(options.algorithm).settings if setting.grid}
    grid |= {name: (value,) for name, value in fixed.items()}
    results = run_grid(options.algorithm, options.problem, grid, rounds=options.rounds, seeds=options.seeds)
    with open(options.out, "a") as lines:
        for result in results:
            lines.write(json.dumps(result.as_json() | {"device": jax.devices()[0].device_kind}) + "\n")
    best = min(results, key=lambda result: result.summary().mean)
    mean, std, low, high = best.summary()
    swept = {name: best.settings[name] for name in grid}
    print(
        f"{options.algorithm} {options.problem} {fixed or ''}: best of {len(results)} {swept}: {mean:.0f} ± {std:.0f} "
        f"[{low:.0f}, {high:.0f}], diverged runs {sum(r.diverged for r in results)}; "
        f"compiling {best.compile_seconds:.1f} s, running {best.seconds:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
