"""Vowpal Wabbit's SquareCB, linear or with products of features; costs between 0 and 1, as it wants them.

Where arms share a context, features are crossed with the arm. Rewards become costs by the extremes seen so far.
"""

import numpy as np
from streams import Stream
from vowpalwabbit import Workspace

__all__ = ["Vowpal", "make"]

SETTING = "--gamma_scale 1000 --learning_rate 0.5"


def make(stream: Stream, variant: str) -> "Vowpal":
    """The player; `variant` is linear or quadratic."""
    return Vowpal(stream, quadratic=variant == "quadratic")


class Vowpal:
    """One workspace, examples as text."""

    def __init__(self, stream: Stream, *, quadratic: bool, setting: str = SETTING) -> None:
        self.shared, self.arms = stream.shared, stream.arms
        options = f"--cb_explore_adf --squarecb {setting} --quiet --random_seed {stream.seed + 1}"
        if self.shared:
            options += " --ignore_linear x --interactions xa" + (" --interactions xxa" if quadratic else "")
        elif quadratic:
            options += " --interactions aa"
        self.workspace = Workspace(options)
        self.random = np.random.default_rng((stream.seed, 2))
        self.low, self.high = np.inf, -np.inf

    def select(self, contexts: np.ndarray) -> int:
        if self.shared:
            self.lines = ["shared |x " + _features(contexts), *(f"|a {arm}" for arm in range(self.arms))]
        else:
            self.lines = ["|a " + _features(row) for row in contexts]
        chances = np.asarray(self.workspace.predict(self.lines), np.float64)
        arm = int(self.random.choice(self.arms, p=chances / chances.sum()))
        self.chance = float(chances[arm])
        return arm

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.low, self.high = min(self.low, reward), max(self.high, reward)
        cost = (self.high - reward) / ((self.high - self.low) or 1.0)
        place = arm + self.shared
        self.lines[place] = f"0:{cost:.6f}:{self.chance:.6f} {self.lines[place]}"
        self.workspace.learn(self.lines)


def _features(row: np.ndarray) -> str:
    return " ".join([f"{index}:{value:.7g}" for index, value in enumerate(row.tolist()) if value])
