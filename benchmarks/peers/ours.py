"""The library's compiled runs: NeuralUCB by the protocol of plain_torch, and the default, NeuralMix."""

import time

import numpy as np
from arena import Run
from streams import SCALING, Stream

import neuralucb

__all__ = ["play"]


def play(stream: Stream, variant: str, limit: float) -> Run:
    """One run of one seed. It cannot be stopped, so that `limit` does not count; clocks are read between segments."""
    preset = {"neural-mix": "default", "neural-ucb": "uclaml" if stream.shared else "paper"}[variant]
    rounds, marks = len(stream.noise), [(0, 0.0)]
    started = time.perf_counter()
    result = neuralucb.run(
        variant, stream.name, rounds=rounds, seeds=[stream.seed], preset=preset, trace=True,
        progress=lambda stage, done, total: marks.append((done, time.perf_counter() - started)),
        **(SCALING if stream.shared else {}),
    )  # fmt: skip
    marks.append((rounds, time.perf_counter() - started))
    arms = np.asarray(result.trace.arm[0], np.int32)
    reported, met = np.diff(result.regret[0], prepend=0.0), stream.regret[np.arange(rounds), arms]
    if not np.allclose(reported, met, atol=1e-2):
        raise RuntimeError(f"{variant} met another stream than {stream.name} of seed {stream.seed}.")
    done, seconds = np.asarray(marks).T
    # a round ended no later than the segment it belongs to
    ended = seconds[np.searchsorted(done, np.arange(1, rounds + 1))]
    return Run(arms, ended, result.compile_seconds)
