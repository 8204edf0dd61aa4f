"""Models as rows: what was learned, as safetensors and JSON with their SHA-256. Observations are rows themselves."""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np

from neuralucb.online.codec import check_type, with_leaves
from neuralucb.online.lesson_record import warn
from neuralucb.online.state import State
from neuralucb.policy import Belief
from neuralucb.runtime.errors import StorageError

__all__ = ["Model", "Served", "arrays_of", "freeze", "keep", "newest", "newest_version", "publish", "serve"]

COLUMNS = "version, epoch, position, observations, extract(epoch FROM made_at)::float8, fields, arrays, sha256"

CANDIDATES = f"""
    (SELECT {COLUMNS} FROM live_model WHERE version > %(above)s)
    UNION ALL
    (SELECT {COLUMNS} FROM models WHERE version > %(above)s ORDER BY version DESC, number DESC LIMIT 3)
    ORDER BY version DESC
"""


class Model(NamedTuple):
    """One row of `models` or `live_model`."""

    version: int
    epoch: int
    position: int
    """it has learned from the outcomes up to here"""
    observations: int
    time: float
    """seconds since 1970; 0 if it is not in the database yet"""
    fields: str
    arrays: bytes
    sha256: bytes

    def is_intact(self) -> bool:
        """Whether its bytes are those that were written."""
        return _digest(self.arrays, self.fields) == self.sha256


class Served(NamedTuple):
    """What a replica needs of a model."""

    belief: Belief
    version: int
    time: float


def freeze(state: State, *, epoch: int, position: int) -> Model:
    """The model of a learner at this moment."""
    from safetensors.numpy import save

    fields, arrays = state.export()
    kept = {name: np.asarray(array, order="C") for name, array in arrays.items() if not name.startswith("history.")}
    text, data = json.dumps(fields, allow_nan=False), save(kept)
    return Model(state.version, epoch, position, state.observations.total, 0.0, text, data, _digest(data, text))


def newest_version(cursor: Any) -> int:
    """The version of the newest model; -1 before the first."""
    cursor.execute(
        "SELECT greatest((SELECT max(version) FROM live_model), (SELECT max(version) FROM models), -1)::bigint"
    )
    return int(cursor.fetchone()[0])


def newest(cursor: Any, *, above: int = -1) -> Model | None:
    """The newest model above a version that is not damaged; None if there is none.

    Raises:
        StorageError: All of them are damaged.
    """
    cursor.execute(CANDIDATES, {"above": above}, binary=True)
    rows = [Model(*row) for row in cursor.fetchall()]
    for index, model in enumerate(rows):
        if model.is_intact():
            if index:
                warn(f"the model of version {rows[0].version} is damaged; version {model.version} is used instead.")
            return model
    if rows:
        raise StorageError(f"model {rows[0].version} does not match its SHA-256, nor do older ones; restore a backup.")
    return None


def publish(cursor: Any, model: Model) -> None:
    """Make a model the one that replicas use."""
    cursor.execute(
        """
        INSERT INTO live_model (version, epoch, position, observations, fields, arrays, sha256)
        VALUES (%s, %s, %s, %s, %s, %s, %s)
        ON CONFLICT (only_row) DO UPDATE SET (version, epoch, position, observations, made_at, fields, arrays, sha256) =
            (excluded.version, excluded.epoch, excluded.position, excluded.observations, now(), excluded.fields,
             excluded.arrays, excluded.sha256)
        """,
        (*model[:4], model.fields, model.arrays, model.sha256),
    )
    cursor.execute("SELECT pg_notify('neuralucb_' || current_schema(), 'model')")


def keep(cursor: Any, model: Model, *, kind: str) -> int:
    """Keep a model as a row that survives a crash of the server; returns its number.

    Of those of lessons only the last is kept.
    """
    cursor.execute(
        """
        INSERT INTO models (kind, version, epoch, position, observations, fields, arrays, sha256)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING number
        """,
        (kind, *model[:4], model.fields, model.arrays, model.sha256),
    )
    number = int(cursor.fetchone()[0])
    cursor.execute("DELETE FROM models WHERE kind = 'lesson' AND number < %s", (number,))
    return number


def arrays_of(model: Model) -> dict[str, np.ndarray]:
    """The arrays of a model, of the types that we write."""
    from safetensors.numpy import load

    arrays: dict[str, np.ndarray] = load(model.arrays)
    for name, array in arrays.items():
        check_type(name, array.dtype.str)
    return arrays


def serve(initial: Belief, model: Model) -> Served:
    """What a replica needs of a model, given the belief before the first observation, for its structure."""
    arrays = arrays_of(model)
    leaves = {name.removeprefix("belief."): array for name, array in arrays.items() if name.startswith("belief.")}
    return Served(with_leaves(initial, leaves, strict=True), model.version, model.time)


def _digest(arrays: bytes, fields: str) -> bytes:
    return hashlib.sha256(arrays + fields.encode()).digest()
