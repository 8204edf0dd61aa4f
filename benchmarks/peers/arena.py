"""One system plays one stream, in the process and the environment of that system. Needs NumPy alone.

    .bench/torch/bin/python benchmarks/peers/arena.py plain-torch STREAM.npz RESULT.npz --limit 60

Every round is select and update, all in, and the clock is read after each. It is that of the processor: all seconds
are those that the process and its threads computed, so that other work on the machine counts as little as can be. A
system that is too slow stops at its limit: what it had reached is reported, nothing is extrapolated.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
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
    "neural-ucb adam": System(
        "ours", "neural-ucb adam", "", "neuralucb", "ours, nearly the protocol of calvera, one compiled run"
    ),
    "neural-mix": System("ours", "neural-mix", "", "neuralucb", "ours, the default, untuned, one compiled run"),
    "neural-mix online": System(
        "ours_online", "", "", "neuralucb", "ours, the default, `OnlineBandit` called round by round"
    ),
    "plain-torch": System(
        "plain_torch", "", "torch", "torch", "NeuralUCB as released code does it: eager, a backward pass per arm, SGD"
    ),
    "calvera": System("calvera_ucb", "", "calvera", "calvera", "NeuralUCB with diagonal Z and Adam, on Lightning"),
    "vw linear": System("vowpal", "linear", "vowpalwabbit", "vowpalwabbit", "Vowpal Wabbit, SquareCB"),
    "vw quadratic": System(
        "vowpal", "quadratic", "vowpalwabbit", "vowpalwabbit", "Vowpal Wabbit, SquareCB on products of features"
    ),
    "mabwiser": System("mabwiser_linucb", "", "mabwiser", "mabwiser", "LinUCB, a regression per arm", only_shared=True),
    "contextualbandits": System(
        "contextual_bandits", "", "contextualbandits", "contextualbandits", "LinUCB, a regression per arm, in Cython",
        only_shared=True,
    ),
    "river": System("river_linucb", "", "river", "river", "LinUCB, a regression per arm", only_shared=True),
}  # fmt: skip


class Run(NamedTuple):
    """What one system did on one stream; arrays are as long as it got."""

    arms: np.ndarray
    """[n] the arm of each round"""
    seconds: np.ndarray
    """[n] when each round was over, compiling and making the system included, importing not"""
    compiling: np.ndarray
    """[n] how many of these seconds went into compiling"""
    select_seconds: float = 0.0
    """all decisions; 0 where they cannot be told from updates"""


def play_rounds(make: Any, stream: Stream, variant: str, limit: float) -> Run:
    """Round by round: `select(contexts) -> arm` and `update(contexts, arm, reward)`; compiling does not count."""
    clock, rounds = time.process_time, stream.rounds
    arms, seconds, compiling, selecting = np.zeros(rounds, np.int32), np.zeros(rounds), np.zeros(rounds), 0.0
    started = clock()
    player = make(stream, variant)
    compiled = getattr(player, "compile_seconds", lambda: 0.0)
    for t in range(rounds):
        contexts, before, begun = stream.contexts[t], compiled(), clock()
        arm = player.select(contexts)
        selecting += clock() - begun - (compiled() - before)
        player.update(contexts, arm, float(stream.rewards[t, arm]))
        arms[t], seconds[t], compiling[t] = arm, clock() - started, compiled()
        if seconds[t] - compiling[t] > limit:
            rounds = t + 1
            break
    return Run(arms[:rounds], seconds[:rounds], compiling[:rounds], selecting)


def main() -> None:
    """Play, and write arms, seconds and what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("stream", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--code", default="", help="a digest of what plays, kept with the result")
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
        "limit": given.limit,
        "code": given.code,
        "version": importlib.metadata.version(system.package),
        "memory_mb": _peak_memory(),
        "load": os.getloadavg()[0],
        "select_seconds": run.select_seconds,
    }
    np.savez(given.result, facts=json.dumps(facts), arms=run.arms, seconds=run.seconds, compiling=run.compiling)


def _peak_memory() -> float:
    """The most that this process has used, in MB; elsewhere than on Linux a parent's peak may count too."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [float(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return (found or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] / 1024


if __name__ == "__main__":
    main()
