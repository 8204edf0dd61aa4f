"""Results as Parquet files: one row per result and seed, which pandas, polars and DuckDB read too."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuralucb.experiments.results import Result, Traces
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.expansion import parquet_bytes
from neuralucb.runtime.files import write_whole
from neuralucb.runtime.memory import require_memory

__all__ = ["StoredResult", "read_results", "write_results"]

KIND = b"neuralucb.results"
FORMAT = "1"
SAME = (
    "algorithm", "problem", "rounds", "schedule", "settings", "compile_seconds", "seconds", "device", "version",
    "jax_version",
)  # fmt: skip
"""Columns that all seeds of a result share."""


class StoredResult(NamedTuple):
    """A result of a file."""

    result: Result
    is_scale: bool
    """whether it was only played along, for scale"""


def write_results(path: str | Path, results: Sequence[Result], *, scale: Sequence[Result] = ()) -> Path:
    """Write results to one file, completely or not at all.

    Settings are kept as JSON; a value that JSON does not know, such as a network, is kept as text.
    """
    pa, parquet = _arrow()
    rows: list[dict[str, Any]] = []
    for index, result in enumerate((*results, *scale)):
        rows += _rows(result, index, index >= len(results))
    floats = pa.list_(pa.float32())
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("algorithm", "problem", "schedule", "settings")),
            *((name, pa.string()) for name in ("device", "version", "jax_version")),
            *((name, pa.int64()) for name in ("result", "rounds", "seed", "diverged_at")),
            *((name, pa.float64()) for name in ("final_regret", "compile_seconds", "seconds")),
            ("is_scale", pa.bool_()),
            ("regret", pa.list_(pa.float64())),
            ("trace_arm", pa.list_(pa.int32())),
            *((f"trace_{name}", floats) for name in Traces._fields if name != "arm"),
        ],
        metadata={KIND: FORMAT},
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    try:
        return write_whole(Path(path), lambda part: parquet.write_table(table, part, compression="zstd"))
    except OSError as problem:
        raise InputError(f"path {path} cannot be written ({problem.strerror or problem}); name another.") from None


def read_results(path: str | Path) -> list[StoredResult]:
    """The results of a file that `write_results` wrote, in their order."""
    pa, parquet = _arrow()
    if Path(path).is_dir():
        raise InputError(f"path {path} is a folder; name the file that save wrote.")
    try:
        needed = sum(parquet_bytes(parquet.read_metadata(Path(path))))
        require_memory(needed, what=f"reading {path}", cure="save fewer results in one file", host=True)
        table = parquet.read_table(Path(path), partitioning=None)
    except (OSError, pa.ArrowInvalid) as problem:
        if isinstance(problem, FileNotFoundError):
            raise InputError(f"path {path} was not found.") from None
        raise InputError(f"path {path} cannot be read as Parquet: {problem}.") from None
    found = (table.schema.metadata or {}).get(KIND)
    if found is None:
        raise InputError(
            f"path {path} was not written by Result.save or Comparison.save; a sweep's runs are tables of their own."
        )
    if found.decode() != FORMAT:
        raise InputError(f"path {path} has format {found.decode()}, and this version reads {FORMAT}; update neuralucb.")
    return list(_results(table))


def _rows(result: Result, index: int, is_scale: bool) -> Iterator[dict[str, Any]]:
    shared = {name: getattr(result, name) for name in SAME}
    shared |= {"settings": json.dumps(result.settings, default=str), "result": index, "is_scale": is_scale}
    for place, seed in enumerate(result.seeds):
        traced = {} if result.trace is None else result.trace._asdict()
        yield {
            **shared,
            "seed": seed,
            "diverged_at": int(result.diverged_at[place]),
            "final_regret": float(result.final_regret[place]),
            "regret": result.regret[place],
            **{f"trace_{name}": values[place] for name, values in traced.items()},
        }


def _results(table: Any) -> Iterator[StoredResult]:
    numbers = table["result"].to_numpy()
    for number in dict.fromkeys(numbers.tolist()):
        part = table.filter(numbers == number)
        shared = {name: part[name][0].as_py() for name in SAME}
        shared["settings"] = json.loads(shared["settings"])
        traced = part["trace_arm"].null_count == 0
        trace = Traces(*(_matrix(part[f"trace_{name}"]) for name in Traces._fields)) if traced else None
        result = Result(
            **shared,
            seeds=tuple(part["seed"].to_pylist()),
            regret=_matrix(part["regret"]),
            diverged_at=part["diverged_at"].to_numpy(),
            trace=trace,
        )
        yield StoredResult(result, part["is_scale"][0].as_py())


def _matrix(column: Any) -> np.ndarray:
    """A column of lists of one length, as [rows, length]."""
    return np.asarray(column.combine_chunks().flatten().to_numpy(zero_copy_only=False)).reshape(len(column), -1)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("saving results needs pyarrow, which is not installed; pip install pyarrow.") from None
    return pyarrow, parquet
