"""Logs as Parquet, written: our own schema, documented in docs/logs.md, with names of features in the metadata."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.logs.columns import Chunk, Names

__all__ = ["META", "VERSION", "write_parquet"]

META, VERSION = b"neuralucb.log", 1
"""The key of the metadata, and the version of the schema in it."""


def write_parquet(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write the decisions; returns how many. Features that appear late are known to the metadata, written last."""
    import pyarrow as pa
    from pyarrow import parquet

    written, arms, writer, names = 0, 0, None, Names((), ())
    try:
        for chunk in chunks:
            if writer is None:
                whole = np.dtype("int64") if chunk.position is None else chunk.position.dtype
                schema = _schema(_feature_type(chunk), chunk.reward.dtype, chunk.arm.dtype, whole)
                writer = parquet.ParquetWriter(path, schema, compression="snappy", **_encodings())
            _refuse_fractions(chunk, schema)
            writer.write_table(pa.Table.from_arrays(_arrays(chunk, schema), schema=schema))
            written += len(chunk.line)
            names = chunk.names
            arms = max(arms, int(chunk.arms.max(initial=-1)) + 1)
        if writer is None:
            raise ValueError("the log has no decision; the file must have at least one.")
        facts = {"version": VERSION, "shared": names.shared, "own": names.own, "arms": arms}
        writer.add_key_value_metadata({META: json.dumps(facts)})
    finally:
        if writer is not None:
            writer.close()
    return written


def _feature_type(chunk: Chunk) -> np.dtype[Any]:
    """float32 or float64, wide enough for shared and own features."""
    used = [values.dtype for values in (chunk.shared, chunk.own) if values.shape[1]]
    return np.result_type(np.float32, *used)


def _refuse_fractions(chunk: Chunk, schema: Any) -> None:
    import pyarrow as pa

    seen = ~np.isnan(chunk.reward)
    odd = np.flatnonzero(seen & (chunk.reward != np.floor(chunk.reward)))
    if odd.size and pa.types.is_integer(schema.field("reward").type):
        raise ValueError(
            f"decision {chunk.line[odd[0]]} has the reward {chunk.reward[odd[0]]}, but the first had whole numbers as "
            "int64; give rewards of one type."
        )


def _schema(features: np.dtype[Any], reward: np.dtype[Any], arm: np.dtype[Any], position: np.dtype[Any]) -> Any:
    import pyarrow as pa

    number, real = pa.from_numpy_dtype(features), pa.float64()
    return pa.schema(
        [
            ("id", pa.string()),
            ("time", pa.timestamp("us", "UTC")),
            ("shared", pa.list_(number)),
            ("arms", pa.list_(pa.int32())),
            ("own", pa.list_(number)),
            ("arm", pa.from_numpy_dtype(arm)),
            ("reward", pa.from_numpy_dtype(reward)),
            ("propensity", real),
            ("weight", real),
            ("probabilities", pa.list_(real)),
            ("position", pa.from_numpy_dtype(position)),
            ("expected", pa.list_(real)),
        ]
    )


def _encodings() -> dict[str, Any]:
    """Dictionaries cost more than they save on numbers that hardly repeat."""
    return {"use_dictionary": ["arms.list.element", "arm", "reward", "weight", "position"], "write_statistics": False}


def _arrays(chunk: Chunk, schema: Any) -> list[Any]:
    import pyarrow as pa

    n, counts = len(chunk.line), chunk.counts

    def column(values: np.ndarray, name: str, missing: np.ndarray | None = None) -> Any:
        return pa.array(values, type=schema.field(name).type, mask=missing)

    def lists(values: np.ndarray, lengths: np.ndarray, name: str, missing: np.ndarray | None = None) -> Any:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        flat = pa.array(values.reshape(-1), type=schema.field(name).type.value_type)
        gone = None if missing is None else pa.array(missing)
        return pa.ListArray.from_arrays(pa.array(offsets), flat, mask=gone)

    def maybe(values: np.ndarray | None, name: str) -> Any:
        if values is None:
            return pa.nulls(n, schema.field(name).type)
        begins = np.cumsum(counts) - counts
        return lists(values, counts, name, np.isnan(values[begins]))

    shared, own = len(chunk.names.shared), len(chunk.names.own)
    return [
        column(chunk.id, "id"),
        column(chunk.time, "time"),
        lists(chunk.shared, np.full(n, shared), "shared"),
        lists(chunk.arms, counts, "arms"),
        lists(chunk.own, counts * own, "own"),
        column(chunk.arm, "arm"),
        column(chunk.reward, "reward", np.isnan(chunk.reward)),
        column(chunk.propensity, "propensity", np.isnan(chunk.propensity)),
        column(chunk.weight, "weight"),
        maybe(chunk.probabilities, "probabilities"),
        pa.nulls(n, schema.field("position").type)
        if chunk.position is None
        else column(chunk.position, "position", chunk.position < 0),
        maybe(chunk.expected, "expected"),
    ]
