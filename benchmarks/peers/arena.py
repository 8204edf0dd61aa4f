"""One system plays one stream, in the process and the environment of that system. Needs NumPy alone.

    .bench/torch/bin/python benchmarks/peers/arena.py plain-torch STREAM.npz RESULT.npz --limit 60

Every round is select and update, all in, and the clock is read after each. A system that is too slow stops at its
limit: what it had reached is reported, nothing is extrapolated.
"""

import argparse
import importlib
import importlib.metadata
import json
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from streams import Stream, read_stream

__all__ = ["SYSTEMS", "Run", "System", "play_rounds"]


class System(NamedTuple):
    """Where a system lives."""

    module: str
    """of this folder; its `make(stream, variant)` gives a player, or its `play(stream, variant, limit)` a Run"""
    variant: str
    environment: str
    """folder below .bench; empty for the library's"""
    package: str
    """whose version is told"""
    meaning: str
    only_shared: bool = False
    """whether it cannot play problems with one context per arm"""


SYSTEMS = {
    "neural-ucb": System("ours", "neural-ucb", "", "neuralucb", "ours, the protocol of plain-torch, one compiled run"),
    "neural-mix": System("ours", "neural-mix", "", "neuralucb", "ours, the default, untuned, one compiled run"),
    "neural-mix online": System(
        "ours_online", "", "", "neuralucb", "ours, the default, `OnlineBandit` called round by round"
    ),
    "plain-torch": System(
        "plain_torch", "", "torch", "torch", "NeuralUCB as released code does it: eager, a backward pass per arm, SGD"
    ),
    "vw linear": System("vowpal", "linear", "vowpalwabbit", "vowpalwabbit", "Vowpal Wabbit, SquareCB"),
    "vw quadratic": System(
        "vowpal", "quadratic", "vowpalwabbit", "vowpalwabbit", "Vowpal Wabbit, SquareCB on products of features"
    ),
}


class Run(NamedTuple):
    """What one system did on one stream; arrays are as long as it got."""

    arms: np.ndarray
    """[n] the arm of each round"""
    seconds: np.ndarray
    """[n] when each round was over, compiling and making the system included, importing not"""
    compile_seconds: float = 0.0


def play_rounds(make: Any, stream: Stream, variant: str, limit: float) -> Run:
    """Round by round: `select(contexts) -> arm`, then `update(contexts, arm, reward)`."""
    rounds = len(stream.noise)
    arms, seconds = np.zeros(rounds, np.int32), np.zeros(rounds)
    started = time.perf_counter()
    player = make(stream, variant)
    for t in range(rounds):
        contexts = stream.contexts[t]
        arm = player.select(contexts)
        player.update(contexts, arm, float(stream.expected[t, arm] + stream.noise[t]))
        arms[t], seconds[t] = arm, time.perf_counter() - started
        if seconds[t] > limit:
            return Run(arms[: t + 1], seconds[: t + 1])
    return Run(arms, seconds)


def main() -> None:
    """Play, and write arms, seconds and what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("stream", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--limit", type=float, default=600.0)
    given = parser.parse_args()
    system, stream = SYSTEMS[given.system], read_stream(given.stream)
    module = importlib.import_module(system.module)
    if hasattr(module, "play"):
        run = module.play(stream, system.variant, given.limit)
    else:
        run = play_rounds(module.make, stream, system.variant, given.limit)
    facts = {
        "system": given.system,
        "stream": stream.name,
        "seed": stream.seed,
        "digest": stream.digest,
        "version": importlib.metadata.version(system.package),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "compile_seconds": run.compile_seconds,
    }
    np.savez(given.result, facts=json.dumps(facts), arms=run.arms, seconds=run.seconds)


if __name__ == "__main__":
    main()
