"""Clicks that mostly never come: a default reward of 0 after a while, beside being told every 0 at once.

    python benchmarks/default_reward.py --seeds 5

Five arms with eight numbers each are clicked with a chance that a curve of them gives, about one time in ten. One
decision per second of a clock that is set. `told`: every reward, 0 or 1, at once. `default`: clicks at once, nothing
else; after 60 s without one, the default reward 0. `clicks only`: the same without a wait time, so that no 0 is ever
learned. What counts is the expected clicks of the arms chosen, of which uniform choices would bring `uniform`.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np

from neuralucb.service import embedded
from neuralucb.service.store import Plan, Request, Reward, Settings

ARMS, FEATURES, WAIT = 5, 8, 60.0
KINDS = ("told", "default", "clicks only")


class Clock:
    """Seconds that pass when they are told to."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self):
        self.now = 1e9

    def time(self):
        return self.now


def chances(contexts):
    """[…, 8] -> […] the chance of a click: from 0.01 to 0.5, about 0.1 on average."""
    x = contexts
    return 0.01 + 0.49 / (1 + np.exp(3.0 - 2.0 * x[..., 0] - 1.5 * x[..., 1] * x[..., 2]))


def play(kind, seed, rounds, algorithm="neural-mix"):
    """Expected clicks per decision, and what uniform choices would bring."""
    generator = np.random.default_rng(seed)
    every = generator.normal(size=(rounds, ARMS, FEATURES)).astype(np.float32)
    luck = generator.uniform(size=rounds)  # the same for all kinds
    clock, before = Clock(), embedded.time
    embedded.time = clock
    earned = 0.0
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = embedded.EmbeddedStore(folder, Plan(algorithm, slots=FEATURES, floor=0.05, seed=seed), arms=ARMS)
            store.configure(Settings(wait_seconds=None if kind == "clicks only" else WAIT, learning=False))
            for number, contexts in enumerate(every):
                clock.now += 1.0
                store.settle()
                earned += _decide(store, f"{number}", contexts, luck[number], tell_all=kind == "told")
                bandit = store._bandit
                if store._learner._due() <= bandit.state.observations.total:
                    bandit.learn()  # here and not beside, so that runs can be repeated
            store.close()
    finally:
        embedded.time = before
    return earned / rounds, float(chances(every).mean())


def _decide(store, event, contexts, luck, *, tell_all):
    """One decision, and its reward if it is told; returns the chance of a click."""
    ids = tuple(map(str, range(ARMS)))
    request = Request(event, contexts, ids, np.ones(ARMS, bool), b"{}", event.encode().ljust(16), False, None, None)
    (answer,) = store.decide([request])
    chance = float(chances(contexts)[answer.position])
    clicked = luck < chance
    if clicked or tell_all:
        store.reward([Reward(event, float(clicked), None)])
    return chance


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--algorithm", default="neural-mix")
    arguments = parser.parse_args()
    found = {kind: [] for kind in (*KINDS, "uniform")}
    for seed in range(arguments.seeds):
        for kind in KINDS:
            earned, uniform = play(kind, seed, arguments.rounds, arguments.algorithm)
            found[kind].append(earned)
        found["uniform"].append(uniform)
        print(seed, {kind: round(values[-1], 4) for kind, values in found.items()}, flush=True)
    told = found["told"]
    for kind, values in found.items():
        ratios = [one / other for one, other in zip(values, told, strict=True)]
        spread = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
        mean = statistics.mean(values)
        print(f"{kind}: {mean:.4f} clicks per decision, {statistics.mean(ratios):.3f} ± {spread:.3f} of told")


if __name__ == "__main__":
    main()
