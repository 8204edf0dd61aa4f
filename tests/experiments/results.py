"""Results made up for tests: nothing is compiled."""

import numpy as np

from neuralucb.experiments import Result, Traces


def made_up(algorithm, problem="h1", final=(1.0, 2.0), *, rounds=4, traced=False, **others):
    """A result whose seeds end at these regrets, straight lines."""
    ends = np.asarray(final, np.float64)
    regret = np.outer(ends, np.arange(1, rounds + 1) / rounds)
    shape = regret.shape
    loss = np.full(shape, np.nan, np.float32)
    loss[:, -1] = 0.25
    trace = Traces(
        arm=np.arange(regret.size, dtype=np.int32).reshape(shape) % 3,
        reward=-regret.astype(np.float32),
        regret=np.diff(regret, axis=1, prepend=0).astype(np.float32),
        propensity=np.full(shape, 0.5, np.float32),
        loss=loss,
    )
    fields = {
        "schedule": "50",
        "settings": {"exploration": 0.1, "design": "full", "width": 20, "repeat": False},
        "seeds": tuple(range(len(ends))),
        "diverged_at": np.zeros(len(ends), np.int64),
        "compile_seconds": 1.5,
        "seconds": 0.5,
        "device": "cpu",
        "trace": trace if traced else None,
    }
    return Result(algorithm, problem, rounds, regret=regret, **fields | others)
