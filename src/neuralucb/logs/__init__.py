"""Logs of decisions, read and written: Parquet, Vowpal Wabbit's dsjson, Open Bandit Pipeline and Dataset, tables."""

from neuralucb.logs.check import Findings, check_log
from neuralucb.logs.chunk import Bad, Chunk, Dense, Names, dense
from neuralucb.logs.encoded import encoded
from neuralucb.logs.formats import FORMATS, Format, Log, Skipped, convert, open_log, read_chunks, write_log
from neuralucb.logs.obp import from_obp, to_obp
from neuralucb.logs.record import recorded
from neuralucb.logs.tables import open_table

__all__ = [
    "FORMATS",
    "Bad",
    "Chunk",
    "Dense",
    "Findings",
    "Format",
    "Log",
    "Names",
    "Skipped",
    "check_log",
    "convert",
    "dense",
    "encoded",
    "from_obp",
    "open_log",
    "open_table",
    "read_chunks",
    "recorded",
    "to_obp",
    "write_log",
]
