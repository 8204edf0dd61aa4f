"""Settings of the preset `best` on real data: choose on seeds from 100, score on seeds from 0.

python benchmarks/tune.py magic --seeds 3 --grid '{"regularization": [0.1, 1]}' --out tuned.jsonl
"""

import argparse
import json
from pathlib import Path

from neuralucb import run_grid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("--algorithm", default="neural-ucb")
    parser.add_argument("--grid", type=json.loads, default={})
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--schedule")
    parser.add_argument("--preset", default="best")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seeds = list(range(options.first_seed, options.first_seed + options.seeds))
    results = run_grid(
        options.algorithm, options.problem, options.grid, rounds=options.rounds, seeds=seeds,
        preset=options.preset, schedule=options.schedule,
    )  # fmt: skip
    with options.out.open("a") as lines:
        lines.writelines(json.dumps(result.as_json() | {"swept": list(options.grid)}) + "\n" for result in results)
    for result in sorted(results, key=lambda result: result.summary().mean)[:4]:
        mean, std, low, high = result.summary()
        words = {name: result.settings[name] for name in options.grid}
        print(
            f"{options.algorithm} {options.problem} {words}: {mean:.0f} ± {std:.0f} [{low:.0f}, {high:.0f}] "
            f"worst {result.final_regret.max():.0f}, diverged {result.diverged}; "
            f"compiling {result.compile_seconds:.0f} s, running {result.seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
