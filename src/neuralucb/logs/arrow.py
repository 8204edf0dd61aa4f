"""Chunks as columns of Arrow, and back: the schema of docs/logs.md, with the arms of a decision in lists."""

from collections.abc import Callable
from typing import Any

import numpy as np

from neuralucb.logs.chunk import Bad, Chunk, Names, as_integers, blank_times, take
from neuralucb.runtime.errors import InputError

__all__ = ["WRITER_OPTIONS", "chunk_of", "list_lengths", "list_values", "schema_for", "table_of"]

WRITER_OPTIONS: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": ["arms.list.element", "arm", "reward", "weight", "position"],
    "write_statistics": False,
}
"""Dictionaries cost more than they save on numbers that hardly repeat."""


class _Marks:
    """Marks rows that cannot be used, and reports each of them once."""

    def __init__(self, line: np.ndarray, bad: Bad) -> None:
        self.line, self.bad = line, bad
        self.wrong = np.zeros(len(line), dtype=bool)

    def __call__(self, rows: np.ndarray, reason: Callable[[int], str]) -> None:
        for row in np.flatnonzero(rows & ~self.wrong):
            self.bad(int(self.line[row]), reason(int(row)))
        self.wrong |= rows


def chunk_of(batch: Any, names: Names, line: np.ndarray, bad: Bad) -> Chunk:
    """The decisions of a batch of rows with these line numbers [n]; a row that cannot be used goes to `bad`."""
    mark = _Marks(line, bad)
    seen = ~_null(batch, "reward")
    reward, propensity = _numbers(batch, "reward"), _numbers(batch, "propensity").astype(np.float64)
    mark(_null(batch, "arm"), lambda row: "a reward without a decision" if seen[row] else "arm is missing")
    mark(_null(batch, "arms"), lambda row: "arms is missing")
    mark(np.isnan(reward) & seen, lambda row: "reward is NaN; write null where none was seen")
    deterministic = _null(batch, "propensity")
    mark(np.isnan(propensity) & ~deterministic, lambda row: "propensity is NaN; write null for a deterministic choice")
    n, counts = len(batch), list_lengths(batch, "arms")
    shared = _features(batch, "shared", np.ones(n, np.int64), len(names.shared), mark)
    own = _features(batch, "own", counts, len(names.own), mark)
    probabilities, expected = (_optional(batch, name, counts, mark) for name in ("probabilities", "expected"))
    counted = np.repeat(np.arange(n), counts)
    arms, odd = as_integers(list_values(batch, "arms"))
    mark(np.isin(np.arange(n), counted[odd]), lambda row: "arms must be whole numbers")
    arm, odd = as_integers(_numbers(batch, "arm"), _kind(batch, "arm"))
    mark(odd, lambda row: f"arm must be a whole number, got {_numbers(batch, 'arm')[row]}")
    position = _position(batch, mark) if _has(batch, "position") else None
    every = Chunk(
        names,
        mark.line,
        _ids(batch, mark),
        _times(batch),
        counts,
        arms,
        shared,
        own,
        arm,
        reward,
        propensity,
        np.where(_null(batch, "weight"), 1.0, _numbers(batch, "weight")) if _has(batch, "weight") else np.ones(n),
        probabilities,
        position,
        expected,
    )
    return take(every, ~mark.wrong)


def schema_for(chunk: Chunk, features: np.dtype[Any] | None = None) -> Any:
    """The schema of docs/logs.md, with the types of the numbers in this chunk; or with another type for features."""
    import pyarrow as pa

    number, real = pa.from_numpy_dtype(features or _feature_type(chunk)), pa.float64()
    position = np.dtype("int64") if chunk.position is None else chunk.position.dtype
    return pa.schema(
        [
            ("id", pa.string()),
            ("time", pa.timestamp("us", "UTC")),
            ("shared", pa.list_(number)),
            ("arms", pa.list_(pa.int32())),
            ("own", pa.list_(number)),
            ("arm", pa.from_numpy_dtype(chunk.arm.dtype)),
            ("reward", pa.from_numpy_dtype(chunk.reward.dtype)),
            ("propensity", real),
            ("weight", real),
            ("probabilities", pa.list_(real)),
            ("position", pa.from_numpy_dtype(position)),
            ("expected", pa.list_(real)),
        ]
    )


def table_of(chunk: Chunk, schema: Any) -> Any:
    """The decisions as a table of this schema."""
    import pyarrow as pa

    _refuse_fractions(chunk, schema)
    return pa.Table.from_arrays(_arrays(chunk, schema), schema=schema)


def list_lengths(batch: Any, name: str) -> np.ndarray:
    """How long each list is; null is 0."""
    if name not in batch.schema.names or batch.column(name).null_count == len(batch):
        return np.zeros(len(batch), np.int64)
    from pyarrow import compute

    return np.asarray(compute.fill_null(compute.list_value_length(batch.column(name)), 0)).astype(np.int64)


def list_values(batch: Any, name: str) -> np.ndarray:
    """All values of a column of lists, concatenated; null as NaN."""
    if batch.column(name).null_count == len(batch):
        return np.zeros(0)
    return np.asarray(batch.column(name).flatten().to_numpy(zero_copy_only=False))


def _null(batch: Any, name: str) -> np.ndarray:
    return np.asarray(batch.column(name).is_null())


def _has(batch: Any, name: str) -> bool:
    return name in batch.schema.names and batch.column(name).null_count < len(batch)


def _numbers(batch: Any, name: str) -> np.ndarray:
    """A column of numbers, null as NaN."""
    if batch.column(name).null_count == len(batch):
        return np.full(len(batch), np.nan)  # the column may have no type
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False))


def _ids(batch: Any, mark: _Marks) -> np.ndarray:
    ids = np.full(len(batch), None, dtype=object)
    if not _has(batch, "id"):
        return ids
    try:
        values = batch.column("id").to_pylist()
    except UnicodeDecodeError:
        values = [_text(value) for value in batch.column("id")]
        mark(np.asarray([value is UnicodeError for value in values]), lambda row: "id is not text in UTF-8")
    ids[:] = [value if value is None or type(value) is str else str(value) for value in values]
    return ids


def _text(value: Any) -> Any:
    """The value in Python; the error itself in place of one that is not text."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return UnicodeError


def _times(batch: Any) -> np.ndarray:
    if not _has(batch, "time"):
        return blank_times(len(batch))
    return np.asarray(batch.column("time").to_numpy(zero_copy_only=False)).astype("datetime64[us]")


def _position(batch: Any, mark: _Marks) -> np.ndarray:
    values, null = _numbers(batch, "position"), _null(batch, "position")
    position, odd = as_integers(values, _kind(batch, "position"))
    mark(odd & ~null, lambda row: f"position must be a whole number, got {values[row]}")
    position[null] = -1
    return position


def _kind(batch: Any, name: str) -> type[np.signedinteger]:
    """The type of a column of integers, so that Open Bandit Pipeline gets back the type it gave."""
    return np.int32 if str(batch.schema.field(name).type) == "int32" else np.int64


def _features(batch: Any, name: str, counts: np.ndarray, width: int, mark: _Marks) -> np.ndarray:
    """[rows or arms, width] features; lists written before a feature appeared are shorter, and there it is 0."""
    lengths = list_lengths(batch, name)
    if width and name in batch.schema.names:
        mark(_null(batch, name), lambda row: f"{name} is missing; write an empty list for no features")
    flat = list_values(batch, name) if lengths.any() else np.zeros(0, np.float64)
    if (lengths == counts * width).all():
        return flat.reshape(-1, width) if width else np.zeros((int(counts.sum()), 0), np.float64)
    widths = np.where(counts > 0, lengths // np.maximum(counts, 1), 0)
    wrong = (widths * counts != lengths) | (widths > width)
    mark(wrong, lambda row: f"{name} has {lengths[row]} numbers, which is not {counts[row]} times {width} or fewer")
    full = np.zeros((int(counts.sum()), width), flat.dtype)
    begins, arm_begins = np.cumsum(lengths) - lengths, np.cumsum(counts) - counts
    for size in np.unique(widths[~wrong]):
        rows = np.flatnonzero((widths == size) & ~wrong)
        to = (arm_begins[rows].repeat(counts[rows]) + _ramp(counts[rows]))[:, None]
        source = (begins[rows].repeat(counts[rows]) + _ramp(counts[rows]) * size)[:, None]
        full[to, np.arange(size)[None, :]] = flat[source + np.arange(size)[None, :]]
    return full


def _ramp(counts: np.ndarray) -> np.ndarray:
    """0, 1, …, count - 1 for each count."""
    return np.arange(counts.sum()) - (np.cumsum(counts) - counts).repeat(counts)


def _optional(batch: Any, name: str, counts: np.ndarray, mark: _Marks) -> np.ndarray | None:
    """[arms] one list per row; NaN for rows without."""
    if not _has(batch, name):
        return None
    lengths = list_lengths(batch, name)
    if (lengths == counts).all():
        return list_values(batch, name)
    mark((lengths != counts) & (lengths > 0), lambda row: f"{name} has {lengths[row]} numbers for {counts[row]} arms")
    full = np.full(int(counts.sum()), np.nan)
    full[np.repeat(lengths == counts, counts)] = list_values(batch, name)[np.repeat(lengths == counts, lengths)]
    return full


def _feature_type(chunk: Chunk) -> np.dtype[Any]:
    """float32 or float64, wide enough for shared and own features."""
    used = [values.dtype for values in (chunk.shared, chunk.own) if values.shape[1]]
    return np.result_type(np.float32, *used)


def _refuse_fractions(chunk: Chunk, schema: Any) -> None:
    import pyarrow as pa

    seen = ~np.isnan(chunk.reward)
    odd = np.flatnonzero(seen & (chunk.reward != np.floor(chunk.reward)))
    if odd.size and pa.types.is_integer(schema.field("reward").type):
        raise InputError(
            f"decision {chunk.line[odd[0]]} has the reward {chunk.reward[odd[0]]}, but the first had whole numbers as "
            "int64; give rewards of one type."
        )


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
