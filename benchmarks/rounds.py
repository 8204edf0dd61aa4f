"""Cost of a round over growing T, on one core: seconds of a run without compiling, one seed, the synthetic setting.

taskset -c 0 python benchmarks/rounds.py [--rounds 1000,2000,4000,10000]
"""

import argparse

from neuralucb import run
from neuralucb.algorithms import ALGORITHMS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", default="1000,2000,4000,10000")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    options = parser.parse_args()
    horizons = [int(part) for part in options.rounds.split(",")]
    print("| algorithm | " + " | ".join(f"T = {rounds}" for rounds in horizons) + " |")
    print("| --- |" + " --- |" * len(horizons))
    for name in options.algorithms.split(","):
        cells = []
        for rounds in horizons:
            seconds = run(name, "h1", rounds=rounds, seeds=1).seconds
            cells.append(f"{seconds:.2f} s ({seconds / rounds * 1e6:.0f} µs per round)")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
