"""Chunks kept in a temporary Parquet file, so that a log of text is parsed once however often it is read."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from neuralucb.logs.arrow import WRITER_OPTIONS, chunk_of, schema_for, table_of
from neuralucb.logs.chunk import Chunk, Names

__all__ = ["Spill"]

LINE = "line"
"""The column, beside those of a log, that says where a decision stood in its file."""


class Spill:
    """A temporary file that gives back the chunks it was given: equal numbers, types, names and lines.

    Where the system allows it, the file has no name: its space is free again as soon as nobody holds the spill, even
    if the process is killed. Where it cannot be written, as on a full disk, the spill is not complete, and the chunks
    must be read from their source again.
    """

    def __init__(self) -> None:
        self.is_complete: bool = False
        """whether `chunks` gives back every chunk that went through `keep`"""
        self._names = Names((), ())
        self._widths: list[tuple[int, int]] = []
        """how many of the names each chunk had: features join as they are found"""
        self._file: Any = None
        self._schema: Any = None
        self._writer: Any = None
        self._reader: Any = None
        self._lock = Lock()

    def keep(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The same chunks, each of them kept on its way unless it is empty."""
        try:
            self._open()
            for chunk in chunks:
                if self._file is not None and len(chunk.line):
                    self._add(chunk)
                yield chunk
            self._finish()
        finally:
            if not self.is_complete:
                self._discard()

    def chunks(self) -> Iterator[Chunk]:
        """A pass over the chunks; several passes may be under way at a time."""
        for group, (shared, own) in enumerate(self._widths):
            with self._lock:  # passes share the position in the file
                rows = self._reader.read_row_group(group)
            (batch,) = rows.combine_chunks().to_batches()
            names = Names(self._names.shared[:shared], self._names.own[:own])
            yield chunk_of(batch, names, np.asarray(batch.column(LINE)), _refuse)

    def _open(self) -> None:
        try:
            import pyarrow  # noqa: F401

            self._file = tempfile.TemporaryFile(prefix="neuralucb-log-")  # noqa: SIM115
        except (ImportError, OSError):
            return
        finalize(self, self._file.close)

    def _add(self, chunk: Chunk) -> None:
        try:
            self._write(chunk)
        except OSError:
            self._discard()
        self._names = chunk.names
        self._widths.append((len(chunk.names.shared), len(chunk.names.own)))

    def _finish(self) -> None:
        if self._writer is None:
            return
        from pyarrow import parquet

        try:
            self._writer.close()
            self._file.flush()
            self._reader = parquet.ParquetFile(self._file)
            self.is_complete = True
        except OSError:
            self._discard()

    def _discard(self) -> None:
        """Free the space; the writer first, which writes when it is closed."""
        for resource in (self._writer, self._file):
            with suppress(OSError):
                if resource is not None:
                    resource.close()
        self._file = self._writer = None

    def _write(self, chunk: Chunk) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        if self._writer is None:
            self._schema = schema_for(chunk, np.dtype(np.float64))
            self._writer = parquet.ParquetWriter(
                self._file, self._schema.append(pa.field(LINE, pa.int64())), **WRITER_OPTIONS
            )
        self._writer.write_table(table_of(chunk, self._schema).append_column(LINE, pa.array(chunk.line)))


def _refuse(line: int, reason: str) -> None:
    raise RuntimeError(f"line {line} was good when it was kept, and is not when it is read: {reason}")
