"""A log in the vectors of the encoder: a model that learns from it decides on live requests at once."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from neuralucb.features import ARM_ID, Vocabulary, hashed_slot
from neuralucb.logs.chunk import Chunk, Names
from neuralucb.logs.formats import Log

__all__ = ["encoded"]


def encoded(log: Log, slots: int = 128, vocabulary: Vocabulary | None = None) -> Log:
    """The log with the features that an `Encoder` of this size would give its decisions.

    Columns become slots in the order of the log, shared ones first; those that find no free slot are hashed. Arms that
    have no features get the category `arm/id`, with their number.

    Args:
        log: As `open_log` gives it.
        slots: The size of a vector.
        vocabulary: To continue an earlier one, whose size counts; it gets the names of this log.

    Returns:
        A log of the same decisions, in which each arm has `slots` features of its own and none are shared.

    Example:
        >>> from neuralucb.logs import open_log
        >>> encoded(open_log(Path("log.parquet")), slots=8).names.own
        ('arm/own[0]', 'arm/own[1]', 'free[2]', 'free[3]', 'free[4]', 'free[5]', 'hashed[6]', 'hashed[7]')
    """
    known = Vocabulary(slots) if vocabulary is None else vocabulary
    shared = [f"context/{name}" for name in log.names.shared]
    has_features = bool(log.names.own)
    own = [f"arm/{name}" for name in log.names.own] or [f"{ARM_ID}={arm}" for arm in range(log.arms)]
    known.assign([*shared, *own])
    names = Names((), tuple(known.slot_names()))
    chunks = partial(_chunks, log, names, _matrix(shared, known), _matrix(own, known), has_features)
    return log._replace(names=names, chunks=chunks)


def _matrix(names: list[str], vocabulary: Vocabulary) -> np.ndarray:
    """[names, slots] with the sign of each name at its slot."""
    matrix = np.zeros((len(names), vocabulary.slots), np.float32)
    for row, name in enumerate(names):
        slot, sign = (
            (vocabulary.places[name], 1.0) if name in vocabulary.places else hashed_slot(name, vocabulary.slots)
        )
        matrix[row, slot] = sign
    return matrix


def _chunks(log: Log, names: Names, shared: np.ndarray, own: np.ndarray, has_features: bool) -> Iterator[Chunk]:
    for chunk in log.chunks():
        # a chunk may come before columns that appear later
        rows = chunk.shared.astype(np.float32) @ shared[: chunk.shared.shape[1]]
        features = chunk.own.astype(np.float32) @ own[: chunk.own.shape[1]] if has_features else own[chunk.arms]
        vectors = np.repeat(rows, chunk.counts, axis=0) + features
        yield chunk._replace(names=names, shared=np.zeros((len(chunk.line), 0), np.float32), own=vectors)
