"""The library's compiled runs: NeuralUCB by the protocols of plain_torch and of calvera, and NeuralMix, the default."""

import time
from typing import Any

import jax
import numpy as np
from arena import Run
from streams import Stream

import neuralucb
from neuralucb.experiments.presets import PRESETS
from neuralucb.policy import Slot
from neuralucb.problems import Problem, Round

__all__ = ["play"]

ADAM = {
    "steps": 32, "batch_size": 32, "step_size": 1e-3, "optimizer": "adam", "rows": "drawn", "early_end": 0.0,
}  # fmt: skip
"""Calvera makes an epoch of minibatches of 32 per training: 32 of them in the mean of the first 2000 rounds."""


def play(stream: Stream, variant: str, limit: float) -> Run:
    """One run of one seed. It cannot be stopped, so that `limit` does not count; clocks are read between segments."""
    schedule, settings = _settings(variant, shared=stream.shared)
    marks, compiling, started = [(0, 0.0)], 0.0, time.process_time()

    def hear(event: str, seconds: float, **_: object) -> None:
        """JAX tells when it has traced, lowered or compiled something; the last time is before the first round."""
        nonlocal compiling
        if event.startswith("/jax/core/compile/") and len(marks) == 1:
            compiling = time.process_time() - started

    jax.monitoring.register_event_duration_secs_listener(hear)
    result = neuralucb.run(
        variant.partition(" ")[0], problem_of(stream), rounds=stream.rounds, seeds=[stream.seed],
        preset="default", trace=True, schedule=schedule,
        progress=lambda stage, done, total: marks.append((done, time.process_time() - started)),
        **settings,
    )  # fmt: skip
    marks.append((stream.rounds, time.process_time() - started))
    if result.diverged:
        print(f"{variant} diverged on {stream.name} in round {result.diverged_at[0]}")
    done, seconds = np.asarray(marks).T
    # a round ended no later than the segment it belongs to
    ended = seconds[np.searchsorted(done, np.arange(1, stream.rounds + 1))]
    return Run(np.asarray(result.trace.arm[0], np.int32), ended, np.full(stream.rounds, compiling))


def problem_of(stream: Stream) -> Problem:
    """The stream as a problem; the rewards are all that algorithms see, the regret is counted elsewhere."""
    arms = np.arange(stream.arms, dtype=np.int32)

    def draw(key: jax.Array, data: tuple[jax.Array, jax.Array], world: None, t: jax.Array) -> Round:
        contexts, rewards = (array[t] for array in data)
        if stream.shared:
            contexts = Slot(jax.numpy.broadcast_to(contexts, (stream.arms, stream.dim)), jax.numpy.asarray(arms))
        return Round(contexts, rewards, jax.numpy.float32(0))

    return Problem(
        dim=stream.dim, arms=stream.arms, init=lambda key, data: None, draw=draw,
        data=(stream.contexts, stream.rewards), shared=stream.shared, limit=stream.rounds, name=stream.name,
        digest=stream.digest,
    )  # fmt: skip


def _settings(variant: str, *, shared: bool) -> tuple[str, dict[str, Any]]:
    """Schedule and settings of a preset, without what it says about contexts, which are the stream's."""
    adam = variant == "neural-ucb adam"
    preset = "default" if variant == "neural-mix" else "uclaml" if shared or adam else "paper"
    schedule, settings, *_ = PRESETS[preset].bundle(shared=shared)
    found = {name: value for name, value in settings.items() if name != "input_scaling"}
    if adam:
        found |= ADAM | {"width": 100 if shared else 20}
        schedule = "1:2000,100"
    return schedule, found
