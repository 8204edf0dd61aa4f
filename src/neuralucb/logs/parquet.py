"""Logs as Parquet files: the schema of docs/logs.md, with the names of features in the metadata."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.logs.arrow import WRITER_OPTIONS, chunk_of, list_lengths, list_values, schema_for, table_of
from neuralucb.logs.chunk import MOST_ARMS, Bad, Chunk, Names, Summary, as_integers, clean, unnamed
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.expansion import parquet_bytes, refuse_bomb

__all__ = ["META", "VERSION", "read_parquet", "summarize_parquet", "write_parquet"]

META, VERSION = b"neuralucb.log", 1
"""The key of the metadata, and the version of the schema in it."""

BATCH = 8192
"""Decisions read at a time."""

REQUIRED = ("arm", "reward", "propensity")

LISTS = ("shared", "arms", "own", "probabilities", "expected")

NUMBERS = (*REQUIRED, "weight", "position")


def read_parquet(path: Path, bad: Bad) -> Iterator[Chunk]:
    """The decisions of a file in our schema."""
    file = _open(path)
    names, arms, _ = _summary(file, path)
    first = 1
    for batch in _batches(file, path):
        line = np.arange(first, first + len(batch), dtype=np.int64)
        chunk = clean(chunk_of(batch, names, line, bad), bad)
        highest = int(chunk.arms.max(initial=-1))
        if highest >= arms:
            raise InputError(
                f"{path} has arm {highest} in rows {first} to {first + len(batch) - 1}, but its metadata says that it "
                f"has {arms} arms; recreate it from its source."
            )
        yield chunk
        first += len(batch)


def summarize_parquet(path: Path) -> Summary:
    """What a file holds, from its metadata; a file of another tool, without our metadata, is read through."""
    return _summary(_open(path), path)


def write_parquet(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write the decisions; returns how many. Metadata comes last, since features may appear late."""
    from pyarrow import parquet

    written, arms, writer, names = 0, 0, None, Names((), ())
    try:
        for chunk in chunks:
            if writer is None:
                schema = schema_for(chunk)
                writer = parquet.ParquetWriter(path, schema, **WRITER_OPTIONS)
            writer.write_table(table_of(chunk, schema))
            written += len(chunk.line)
            names = chunk.names
            arms = max(arms, int(chunk.arms.max(initial=-1)) + 1)
        if writer is None:
            raise InputError("the log has no decision; the file must have at least one.")
        facts = {"version": VERSION, "shared": names.shared, "own": names.own, "arms": arms}
        writer.add_key_value_metadata({META: json.dumps(facts)})
    finally:
        if writer is not None:
            writer.close()
    return written


def _open(path: Path) -> Any:
    """The file, if it has the columns of a log."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(f"{path} needs pyarrow: pip install 'neuralucb[experiments]'.") from None
    try:
        file = parquet.ParquetFile(path)
        schema = file.schema_arrow
    except (ArrowException, OSError):
        raise InputError(f"{path} cannot be read: {_why_not_opened(path)}.") from None
    largest = max(parquet_bytes(file.metadata), default=0)
    refuse_bomb(path, largest, cure="write it in smaller row groups")
    _check_names(schema.names, path)
    for field in schema:
        _check_type(field, path)
    return file


def _why_not_opened(path: Path) -> str:
    if path.is_dir():
        return "Is a directory; name one file"
    return "not a Parquet file, or truncated" if path.is_file() else "No such file"


def _check_names(names: list[str], path: Path) -> None:
    """Refuse a column that occurs twice, and one that is missing."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column named {', '.join(twice)}; rename them.")
    missing = [name for name in (*REQUIRED, "arms") if name not in names]
    if missing:
        raise InputError(
            f"{path} is not a log: it has no column {', '.join(missing)}; docs/logs.md has the schema. "
            f"It has: {', '.join(names)}."
        )


def _check_type(field: Any, path: Path) -> None:
    """Refuse a column whose type is not the schema's. One of type null is empty, and each row reports what it lacks."""
    from pyarrow import types

    name, kind = field.name, field.type
    if types.is_null(kind):
        return
    if name == "time" and not (types.is_timestamp(kind) or types.is_date(kind)):
        raise InputError(f"{path}: column time must have timestamps, got {kind}; cast it, or leave it out.")
    if name in LISTS and not (_is_list(kind) and _is_number(kind.value_type)):
        raise InputError(f"{path}: column {name} must have lists of numbers, got {kind}; see docs/logs.md.")
    if name in NUMBERS and not _is_number(kind):
        raise InputError(f"{path}: column {name} must have numbers, got {kind}; see docs/logs.md.")


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(test(kind) for test in tests)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind))


def _summary(file: Any, path: Path) -> Summary:
    """From the metadata; without ours, as in the files of other tools, features get numbers for names."""
    text = (file.metadata.metadata or {}).get(META)
    names, arms = _count(file, path) if text is None else _read_facts(text, path)
    return Summary(names, arms, file.metadata.num_rows)


def _read_facts(text: bytes, path: Path) -> tuple[Names, int]:
    """Names and arms, as the metadata has them."""
    try:
        facts = json.loads(text)
        version, shared, own, arms = (facts[key] for key in ("version", "shared", "own", "arms"))
        if type(arms) is not int or not 0 <= arms <= MOST_ARMS or any(type(name) is not str for name in shared + own):
            raise ValueError
        names = Names(tuple(shared), tuple(own))
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} has metadata {META.decode()!r} that is not ours, or damaged; recreate it from its source."
        ) from None
    if version != VERSION:
        raise InputError(f"{path} has version {version} of the schema; this release reads version {VERSION}.")
    return names, arms


def _count(file: Any, path: Path) -> tuple[Names, int]:
    """Names and arms, from the longest lists and the highest arm."""
    shared = own = arms = 0
    for batch in _batches(file, path, [name for name in ("shared", "own", "arms") if name in file.schema_arrow.names]):
        counts = list_lengths(batch, "arms")
        shared = max(shared, int(list_lengths(batch, "shared").max(initial=0)))
        own = max(own, int((list_lengths(batch, "own") // np.maximum(counts, 1)).max(initial=0)))
        numbered, odd = as_integers(list_values(batch, "arms"))  # a row with an odd one will be refused
        arms = max(arms, int(numbered[~odd & (numbered < MOST_ARMS)].max(initial=-1)) + 1)
    return unnamed(shared, own), arms


def _batches(file: Any, path: Path, columns: list[str] | None = None) -> Iterator[Any]:
    """The rows, a few thousand at a time."""
    from pyarrow import ArrowException

    groups = range(file.num_row_groups)  # one at a time: given all at once, Arrow reads ahead without a bound
    batches = chain.from_iterable(file.iter_batches(BATCH, row_groups=[group], columns=columns) for group in groups)
    row = 0
    while True:
        try:
            batch = next(batches, None)
        except (ArrowException, OSError):
            raise InputError(f"{path} is damaged after row {row}; recreate it from its source.") from None
        if batch is None:
            return
        yield batch
        row += len(batch)
