"""The store: a folder of Parquet files, one a batch, each written whole; never changed, never torn."""

import errno
import glob
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet

from neuralucb import __version__
from neuralucb.problems.datasets import data_folder
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_whole
from neuralucb.sweeps.batches import Batch, Outcome
from neuralucb.sweeps.spec import Sweep

__all__ = ["FAILURES", "SCHEMA", "Store", "as_table"]

SCHEMA = pa.schema(
    [
        ("algorithm", pa.string()),
        ("problem", pa.string()),
        ("rounds", pa.int32()),
        ("schedule", pa.string()),
        ("settings", pa.string()),  # JSON, complete: of the algorithm and of the problem
        ("swept", pa.string()),  # JSON: those of them that the sweep varies
        ("seed", pa.int64()),
        ("final_regret", pa.float64()),
        ("curve", pa.list_(pa.float32())),  # cumulative regret after rounds every, 2·every, …, and the last
        ("curve_every", pa.int32()),
        ("diverged_at", pa.int32()),  # the round, 0 if never
        ("seconds", pa.float64()),  # its share of the batch's, compiling not counted
        ("compile_seconds", pa.float64()),  # of the batch
        ("device", pa.string()),
        ("version", pa.string()),
        ("jax", pa.string()),
        ("commit", pa.string()),
        ("batch", pa.string()),
    ]
)
FAILURES = "failures"
WRITTEN: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""how Parquet is written: a damaged page is found out, not read as other numbers"""
NO_DATA: Mapping[str, Sequence[str]] = MappingProxyType({})


class Store:
    """A folder that belongs to one sweep: sweep.json, runs/*.parquet, failures/*.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lanes_for(self, sweep: Sweep, lanes: int) -> int:
        """How many runs a batch has: those with which the folder was begun, so that going on completes its batches.

        A folder that another sweep has made, or that holds other things, is refused.
        """
        if (self.folder / "sweep.json").exists():
            known = self._manifest()
            if known["sweep"] != json.loads(json.dumps(sweep.as_json())):
                raise InputError(
                    f"{self.folder} holds another sweep, {known['sweep'].get('name')!r}; name another folder, "
                    f"or go on with that one by `{self._resume}`."
                )
            if known["version"] != __version__:
                raise InputError(
                    f"{self.folder} was begun by neuralucb {known['version']}, this is {__version__}; their numbers "
                    "are not to be mixed. Name another folder."
                )
            return int(known["lanes"])
        if self.folder.exists() and (not self.folder.is_dir() or any(map(_is_of_others, self.folder.iterdir()))):
            raise InputError(f"{self.folder} is not empty and holds no sweep; name another folder.")
        return lanes

    def require_data(self, digests: Mapping[str, Sequence[str]]) -> None:
        """Raise ValueError if the folder was begun with other data under the same names."""
        known = self._manifest().get("data") if (self.folder / "sweep.json").exists() else None
        if known is None:  # a new folder, or one begun before data were recorded
            return
        other = [problem for problem, found in digests.items() if known.get(problem) != list(found)]
        if other:
            raise InputError(
                f"{self.folder} was begun with other data of {', '.join(other)} than those in {data_folder()}; put the "
                "same there (NEURALUCB_DATA names the folder), or name another folder for the results."
            )

    def open_for(self, sweep: Sweep, lanes: int, digests: Mapping[str, Sequence[str]] = NO_DATA) -> None:
        """Take the folder for this sweep; of two that come at once one wins, and the other goes by its record."""
        path = self.folder / "sweep.json"
        record = {"sweep": sweep.as_json(), "lanes": lanes, "version": __version__, "data": dict(digests)}
        text = json.dumps(record, indent=1, ensure_ascii=False)
        if not path.exists():
            mine = write_whole(
                self.folder / f".{os.getpid()}.part", lambda part: part.write_text(text, encoding="utf-8")
            )
            with suppress(FileExistsError):
                os.link(mine, path)  # only one can
            mine.unlink()
        if self.lanes_for(sweep, lanes) != lanes:
            raise InputError(f"{self.folder} was begun by another process a moment ago; run the same command again.")
        self.require_data(digests)

    def sweep(self) -> Sweep:
        """The sweep that the folder was made for."""
        record = self._manifest()
        try:
            return Sweep.from_json(record["sweep"])
        except (KeyError, TypeError):
            raise InputError(f"{self.folder / 'sweep.json'} is damaged; name another folder.") from None

    def missing(self, batches: Sequence[Batch]) -> list[Batch]:
        """The batches that are not there yet."""
        return [batch for batch in batches if not self._path(batch).exists()]

    def require_own(self, batches: Sequence[Batch]) -> None:
        """Raise ValueError if somebody has put Parquet files there that are no batches of this sweep."""
        own = {self._path(batch).name for batch in batches}
        strangers = [file for file in self._files() if file.name not in own]
        if strangers:
            more = f" and {len(strangers) - 1} more" * (len(strangers) > 1)
            raise InputError(f"{strangers[0]}{more}: not of this sweep; move it elsewhere, then `{self._resume}`.")

    def write(self, batch: Batch, table: pa.Table) -> None:
        """Keep a batch, whole and durable; a note of an earlier failure goes."""
        self._keep(self._path(batch), lambda temporary: parquet.write_table(table, temporary, **WRITTEN))
        (self.folder / FAILURES / f"{batch.name}.json").unlink(missing_ok=True)

    def note_failure(self, batch: Batch, reason: str) -> None:
        """Keep why a batch could not be run."""
        record = {
            "algorithm": batch.algorithm, "problem": batch.problem, "runs": len(batch.runs),
            "swept": [run.swept for run in batch.runs[:1]], "reason": reason,
        }  # fmt: skip
        path = self.folder / FAILURES / f"{batch.name}.json"
        self._keep(path, lambda temporary: temporary.write_text(json.dumps(record, indent=1), encoding="utf-8"))

    def failures(self) -> list[dict[str, Any]]:
        """What could not be run, and why."""
        notes = sorted((self.folder / FAILURES).glob("*.json"))
        done = {path.stem for path in self._files()}
        return [self._note(path) for path in notes if path.stem not in done]

    def read(self, columns: Iterable[str], **equal: str) -> pa.Table:
        """Columns of all runs, or of those where the given columns equal the given values."""
        condition = None
        for name, value in equal.items():
            clause = dataset.field(name) == value
            condition = clause if condition is None else condition & clause
        begin = "{algorithm}-{problem}-".format(**equal) if {"algorithm", "problem"} <= set(equal) else ""
        files = [str(file) for file in self._files(begin)]
        checked = dataset.ParquetFileFormat(page_checksum_verification=True)
        try:
            return dataset.dataset(files, schema=SCHEMA, format=checked).to_table(list(columns), filter=condition)
        except (pa.ArrowException, OSError) as problem:  # Arrow has both for a damaged file
            damaged = [file for file in files if not _is_sound(Path(file))]
            if not damaged:
                raise InputError(f"{self.folder / 'runs'} cannot be read: {problem}.") from None
            raise InputError(self._damaged(", ".join(damaged))) from None

    def is_gone(self) -> bool:
        """Whether somebody has removed the folder, or what makes it a sweep's."""
        return not (self.folder / "sweep.json").exists()

    def _keep(self, path: Path, write: Callable[[Path], Any]) -> None:
        """Write a file; a folder that was removed is not made again, since without its record nothing could go on."""
        if self.is_gone():
            raise FileNotFoundError(errno.ENOENT, "it was removed", str(self.folder))
        path.parent.mkdir(exist_ok=True)
        write_whole(path, write)

    def _path(self, batch: Batch) -> Path:
        return self.folder / "runs" / f"{batch.name}.parquet"

    def _note(self, path: Path) -> dict[str, Any]:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = None
        if not isinstance(record, dict) or not {"algorithm", "problem", "runs", "reason"} <= set(record):
            raise InputError(self._damaged(str(path)))
        return record

    def _damaged(self, what: str) -> str:
        return f"{what} is damaged; delete it, then `{self._resume}`."

    @property
    def _resume(self) -> str:
        return f"neuralucb resume {shlex.quote(str(self.folder))}"

    def _files(self, begin: str = "") -> list[Path]:
        """The Parquet files whose names begin so."""
        return sorted((self.folder / "runs").glob(f"{glob.escape(begin)}*.parquet"))

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / "sweep.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{self.folder} holds no sweep: {path.name} is not there.") from None
        except (OSError, json.JSONDecodeError) as problem:
            raise InputError(f"{path} cannot be read: {problem}.") from None
        kinds = {"sweep": dict, "lanes": int, "version": str}
        sound = isinstance(record, dict) and all(type(record.get(key)) is kind for key, kind in kinds.items())
        if not sound or record["lanes"] < 1 or not isinstance(record.get("data", {}), dict):
            raise InputError(f"{path} is damaged; name another folder.")
        return dict(record)


def _is_of_others(path: Path) -> bool:
    """Whether a file in a folder without a sweep is anything but the trace of a process that was killed."""
    return not path.name.endswith(".part")


def _is_sound(path: Path) -> bool:
    try:
        return bool(parquet.read_table(path, page_checksum_verification=True).schema.equals(SCHEMA))
    except (pa.ArrowException, OSError):
        return False


def as_table(batch: Batch, outcome: Outcome) -> pa.Table:
    """The runs of a batch as rows."""
    count = len(batch.runs)
    points = outcome.curves.shape[1]
    offsets = np.arange(0, (count + 1) * points, points, dtype=np.int32)
    columns: dict[str, Any] = {
        "algorithm": [batch.algorithm] * count,
        "problem": [batch.problem] * count,
        "rounds": [batch.rounds] * count,
        "schedule": [batch.schedule] * count,
        "settings": [json.dumps({**run.settings, **batch.world}) for run in batch.runs],
        "swept": [json.dumps(run.swept) for run in batch.runs],
        "seed": [run.seed for run in batch.runs],
        "final_regret": outcome.final_regret,
        "curve": pa.ListArray.from_arrays(offsets, pa.array(outcome.curves.ravel(), pa.float32())),
        "curve_every": [outcome.every] * count,
        "diverged_at": outcome.diverged_at,
        "seconds": [outcome.seconds / count] * count,
        "compile_seconds": [outcome.compile_seconds] * count,
        "device": [outcome.device] * count,
        "version": [__version__] * count,
        "jax": [jax.__version__] * count,
        "commit": [_commit()] * count,
        "batch": [batch.name] * count,
    }
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}, schema=SCHEMA)


@lru_cache(maxsize=1)
def _commit() -> str:
    """The commit of a checkout that the package runs from, `-dirty` if it was changed since; empty where there is none.

    A package installed somewhere below another project's checkout is none of that project's files.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    known = [*git, "ls-files", "--error-unmatch", Path(__file__).name]
    named = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        for command in (known, named):
            said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return said
