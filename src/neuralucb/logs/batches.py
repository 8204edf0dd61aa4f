"""A log in batches of one fixed size, padded to K arms, so that a policy is compiled once for all of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.logs.chunk import Chunk, dense
from neuralucb.logs.formats import Log
from neuralucb.policy import Slot
from neuralucb.runtime.records import brief

__all__ = ["Batch", "batches", "contexts_of", "one_context", "shape_of"]

NUMBERS = 1 << 21
"""Features per batch, about: 8 MB in float32, enough to keep the cores busy."""
ROWS = 1 << 15
"""Decisions per batch, at most."""


@brief
class Batch(NamedTuple):
    """Decisions padded to K arms and to the batch's size; rows at the end that are not `valid` are padding."""

    line: np.ndarray
    shared: np.ndarray
    """[n, d] float32"""
    own: np.ndarray
    """[n, K, d] float32; d is 0 where all features are shared"""
    available: np.ndarray
    """[n, K] bool; all True in rows of padding"""
    arm: np.ndarray
    reward: np.ndarray
    propensity: np.ndarray
    weight: np.ndarray
    valid: np.ndarray


def batches(log: Log, *, begin: int = 0, end: int | None = None) -> Iterator[Batch]:
    """The decisions from number `begin` (from 0) to `end` (exclusive), in batches of one size; the last is padded.

    Chunks are cut and joined, since every format has chunks of another length.
    """
    most = min(max(NUMBERS // max(log.arms * _width(log), 1), 128), ROWS)
    ahead = max((log.decisions if end is None else min(end, log.decisions)) - begin, 1)
    size = 1 << min(most.bit_length() - 1, (ahead - 1).bit_length())
    waiting: list[Batch] = []
    for part in _parts(log, begin, end):
        start = 0
        while start < len(part.line):
            stop = start + size - sum(len(one.line) for one in waiting)
            waiting.append(Batch(*(column[start:stop] for column in part)))
            start = stop
            if stop <= len(part.line):
                yield _joined(waiting)
                waiting = []
    if waiting:
        yield _padded(_joined(waiting), size)


def shape_of(log: Log) -> dict[str, Any]:
    """What `build` must know about a log.

    Args:
        log: As `open_log` gives it.

    Returns:
        `dim` and `shared_by`: where all features are shared, the arms share one context.

    Example:
        >>> from neuralucb.logs import open_log
        >>> shape_of(open_log(Path("log.parquet")))
        {'dim': 2, 'shared_by': None}
    """
    return {"dim": _width(log), "shared_by": None if log.names.own else log.arms}


def contexts_of(shared: jax.Array, own: jax.Array) -> Any:
    """The contexts of one decision [K, …], from its shared features [d] and those of each arm [K, d]."""
    arms = own.shape[0]
    repeated = jnp.broadcast_to(shared[None, :], (arms, shared.shape[0]))
    if own.shape[1] == 0:
        return Slot(repeated, jnp.arange(arms, dtype=jnp.int32))
    return jnp.concatenate([repeated, own], axis=1)


def one_context(shared: jax.Array, own: jax.Array, arm: jax.Array) -> Any:
    """The context of one arm of a decision."""
    return jax.tree.map(lambda leaf: leaf[arm], contexts_of(shared, own))


def _width(log: Log) -> int:
    return len(log.names.shared) + len(log.names.own) or 1


def _as_batch(chunk: Chunk, log: Log) -> Batch:
    shared, own, available = dense(chunk, log.names, arms=log.arms)
    if not (shared.shape[1] or own.shape[2]):
        shared = np.ones((len(chunk.line), 1), np.float32)  # no features: every decision has the same context
    reward = chunk.reward.astype(np.float64)
    arm = chunk.arm.astype(np.int32, copy=False)  # one type, one compilation
    columns = (arm, reward, chunk.propensity, chunk.weight, np.ones(len(chunk.line), dtype=bool))
    return Batch(chunk.line, shared, own, available, *columns)


def _parts(log: Log, begin: int, end: int | None) -> Iterator[Batch]:
    """The chunks as batches, without decisions before `begin` or from `end` on."""
    seen = 0
    for chunk in log.chunks():
        first, last = max(begin - seen, 0), len(chunk.line) if end is None else min(end - seen, len(chunk.line))
        if end is not None and seen >= end:
            return
        seen += len(chunk.line)
        if last > first:
            yield Batch(*(column[first:last] for column in _as_batch(chunk, log)))


def _joined(parts: list[Batch]) -> Batch:
    return parts[0] if len(parts) == 1 else Batch(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _padded(batch: Batch, size: int) -> Batch:
    missing = size - len(batch.line)
    if not missing:
        return batch
    padded = Batch(*(np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]) for part in batch))
    padded.available[-missing:] = True
    padded.propensity[-missing:] = 1
    return padded
