"""Clicks that are told at once and zeros that come late, as from a service with a wait time and much traffic.

    python benchmarks/late_zeros.py --late 150 --together 150
    python benchmarks/late_zeros.py --late 150 --together 150 --recent 0

Three arms; the third is the best one half of the time. Shown is the share of the clicks of the best arms that are
expected of those chosen, after a third of the decisions. `--late 0` tells every zero at once.
"""

import argparse

import numpy as np

from neuralucb import OnlineBandit, build

SCHEDULE = "3:60,5:150,10:300,20:1000,50:2000,200"


def play(seed, decisions, late, together, recent):
    """The share of one seed: zeros are `late` decisions late at least, and so many come together."""
    generator = np.random.default_rng(seed)
    bandit = OnlineBandit(build("neural-mix", dim=6, recent=recent), floor=0.05, schedule=SCHEDULE, seed=seed)
    earned, best, zeros = 0.0, 0.0, []
    for number in range(decisions):
        visitor = generator.normal(size=3)
        contexts = np.hstack([np.tile(visitor, (3, 1)), np.eye(3)]).astype(np.float32)
        chances = np.array([0.05, 0.3, 0.5 if visitor[0] > 0 else 0.1])
        decision = bandit.select(contexts)
        if generator.random() < chances[decision.position]:
            bandit.observe(decision.id, 1.0)
        else:
            zeros.append((number, decision.id))
        if (number + 1) % together == 0:
            due = [each for each in zeros if each[0] <= number - late]
            zeros = zeros[len(due) :]
            bandit.observe_many([name for _, name in due], [0.0] * len(due))
        if number > decisions // 3:
            earned, best = earned + chances[decision.position], best + chances.max()
    return earned / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("decisions", 2500), ("late", 150), ("together", 1), ("recent", 100), ("seeds", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    for seed in range(given.seeds):
        print(seed, round(play(seed, given.decisions, given.late, given.together, given.recent), 3), flush=True)


if __name__ == "__main__":
    main()
