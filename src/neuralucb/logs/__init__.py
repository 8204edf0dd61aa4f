"""Logs of decisions, in and out: Parquet, Vowpal Wabbit's dsjson, Open Bandit Pipeline and Dataset."""

from neuralucb.logs.checking import Findings, check_log
from neuralucb.logs.columns import Bad, Chunk, Dense, Names, dense
from neuralucb.logs.files import Log, Skipped, convert, open_log, read_chunks, write_log
from neuralucb.logs.obp import from_obp, to_obp
from neuralucb.logs.recording import recorded

__all__ = [
    "Bad",
    "Chunk",
    "Dense",
    "Findings",
    "Log",
    "Names",
    "Skipped",
    "check_log",
    "convert",
    "dense",
    "from_obp",
    "open_log",
    "read_chunks",
    "recorded",
    "to_obp",
    "write_log",
]
