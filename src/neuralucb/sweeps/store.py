"""The store: a folder with one Parquet file per batch, each written completely or not at all, and never changed."""

import errno
import glob
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from neuralucb import __version__
from neuralucb.problems.datasets import data_folder
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_text, write_whole
from neuralucb.runtime.records import brief
from neuralucb.runtime.words import counted
from neuralucb.sweeps.batches import Batch, Kept, Outcome
from neuralucb.sweeps.callbacks import FinishedRun
from neuralucb.sweeps.spec import CHOOSING, Sweep

__all__ = ["FAILURES", "SCHEMA", "Failure", "Store", "as_table", "source_commit"]

SCHEMA = pa.schema(
    [
        ("algorithm", pa.string()),
        ("problem", pa.string()),
        ("rounds", pa.int32()),
        ("schedule", pa.string()),
        ("settings", pa.string()),  # JSON: all settings of the algorithm and of the problem
        ("swept", pa.string()),  # JSON: the settings that the sweep varies
        ("seed", pa.int64()),
        ("final_regret", pa.float64()),
        ("curve", pa.list_(pa.float32())),  # cumulative regret after rounds every, 2·every, …, and the last
        ("curve_every", pa.int32()),
        ("diverged_at", pa.int32()),  # the round, 0 if never
        ("seconds", pa.float64()),  # its share of the batch's time, without compiling
        ("compile_seconds", pa.float64()),  # of the whole batch
        ("device", pa.string()),
        ("version", pa.string()),
        ("jax", pa.string()),
        ("commit", pa.string()),
        ("batch", pa.string()),
    ]
)
FINISHED = [
    "algorithm", "problem", "rounds", "settings", "swept", "seed", "curve", "curve_every", "diverged_at", "seconds",
]  # fmt: skip
FAILURES, RACE = "failures", "race"
WRITTEN: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""How Parquet is written: with checksums, so that a damaged page is an error and not other numbers."""
CONTINUED = ("0.1.0",)
"""Earlier versions whose sweeps are gone on with; tests/data has one of each, and every row says what computed it."""
NO_DATA: Mapping[str, Sequence[str]] = MappingProxyType({})


@brief
class Failure(NamedTuple):
    """A batch that could not be run, and why.

    Example:
        >>> failure = Failure("lin-ucb", "h1", 3, "MemoryError: 9 GB", "", Path("mine/failures/1.json"))
        >>> print(failure)
        lin-ucb on h1, 3 runs: MemoryError: 9 GB
    """

    algorithm: str
    problem: str
    runs: int
    reason: str
    """name and message of the exception, or how the process ended"""
    traceback: str
    """of the worker, complete; empty where there was none, and in stores of version 0.1"""
    file: Path
    """the file in which all of this is kept"""

    def __str__(self) -> str:
        return f"{self.algorithm} on {self.problem}, {counted(self.runs, 'run')}: {self.reason}"

    def last_lines(self, count: int = 4) -> list[str]:
        """The last lines of the traceback."""
        return self.traceback.rstrip().splitlines()[-count:]


class Store:
    """A folder that belongs to one sweep: sweep.json, runs/*.parquet, failures/*.json; of a race also stages/, race/.

    Args:
        folder: The folder; it need not exist yet.

    Example:
        >>> Store("sweep").sweep().rounds > 0
        True
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder: Path = Path(folder)

    @property
    def resume_command(self) -> str:
        """The command that runs what is missing; a tuning's half of the rows is known to `tune` alone."""
        if (self.folder / "sweep.json").exists() and any(
            part.problem.endswith(CHOOSING) for part in self.sweep().parts
        ):
            return "neuralucb tune … (with the same arguments)"
        return f"neuralucb resume {shlex.quote(str(self.folder))}"

    def lanes_for(self, sweep: Sweep, lanes: int) -> int:
        """Runs per batch: those the folder was begun with, so that its batches are completed; else the given ones.

        A folder that belongs to another sweep, or that holds other files, is refused.
        """
        if (self.folder / "sweep.json").exists():
            known = self._manifest()
            theirs, ours = known["sweep"], json.loads(json.dumps(sweep.as_json()))
            if theirs.get("search", "grid") != sweep.search:
                raise InputError(
                    f"{self.folder} holds the results of search = {theirs.get('search', 'grid')}, got search = "
                    f"{sweep.search}; name another folder, or continue that one with `{self.resume_command}`."
                )
            if _without_import(theirs) != _without_import(ours):
                raise InputError(
                    f"{self.folder} holds another sweep, {known['sweep'].get('name')!r}; name another folder, "
                    f"or continue that one with `{self.resume_command}`."
                )
            if known["version"] not in (__version__, *CONTINUED):
                raise InputError(
                    f"{self.folder} was begun by neuralucb {known['version']}, this is {__version__}; their numbers "
                    "must not be mixed. Name another folder."
                )
            return int(known["lanes"])
        if self.folder.exists() and (not self.folder.is_dir() or any(map(_is_foreign, self.folder.iterdir()))):
            raise InputError(f"{self.folder} is not empty and holds no sweep; name another folder.")
        return lanes

    def require_data(self, digests: Mapping[str, Sequence[str]]) -> None:
        """Raise InputError if the folder was begun with different data under the same names."""
        known = self._manifest().get("data") if (self.folder / "sweep.json").exists() else None
        if known is None:  # a new folder, or one begun before data were recorded
            return
        other = [problem for problem, found in digests.items() if known.get(problem) != list(found)]
        if other:
            raise InputError(
                f"{self.folder} was begun with other data of {', '.join(other)}, or with the same made otherwise; "
                f"restore them (data sets are in {data_folder()}, which NEURALUCB_DATA names) and their settings, or "
                "name another folder for the results."
            )

    def open_for(self, sweep: Sweep, lanes: int, digests: Mapping[str, Sequence[str]] = NO_DATA) -> None:
        """Claim the folder for this sweep; if two processes do so at once, one wins and the other reads its record."""
        path = self.folder / "sweep.json"
        record = {"sweep": sweep.as_json(), "lanes": lanes, "version": __version__, "data": dict(digests)}
        text = json.dumps(record, indent=1, ensure_ascii=False)
        if not path.exists():
            mine = write_text(self.folder / f".{os.getpid()}.part", text)
            with suppress(FileExistsError):
                os.link(mine, path)  # only one process can
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
        """The batches that are not stored yet."""
        return [batch for batch in batches if not self._path(batch).exists()]

    def require_no_other_files(self, batches: Sequence[Batch]) -> None:
        """Raise InputError if the folder of the runs holds Parquet files that are not batches of this sweep."""
        known = {self._path(batch).name for batch in batches if batch.until is None}
        others = [file for file in self._files() if file.name not in known]
        if others:
            more = f" and {len(others) - 1} more" * (len(others) > 1)
            raise InputError(
                f"{others[0]}{more}: not part of this sweep; move it elsewhere, then `{self.resume_command}`."
            )

    def write(self, batch: Batch, table: pa.Table) -> None:
        """Store a batch durably, and remove the record of an earlier failure."""
        self._keep(self._path(batch), lambda temporary: parquet.write_table(table, temporary, **WRITTEN))
        (self.folder / FAILURES / f"{batch.name}.json").unlink(missing_ok=True)

    def write_kept(self, batch: Batch, kept: Kept, rows: Sequence[int] | None = None) -> None:
        """Keep the states of a stage's runs, for the next stage: of all of them, or of those in some rows."""
        from safetensors.numpy import save_file

        chosen = np.arange(len(batch.runs)) if rows is None else np.asarray(rows)
        arrays = {str(index): np.ascontiguousarray(array[chosen]) for index, array in enumerate(kept.arrays)}
        arrays["rows"] = chosen
        self._keep(self._kept_path(batch.name), lambda temporary: save_file(arrays, temporary))

    def read_kept(self, batch: Batch) -> Kept | None:
        """The states that the runs of a batch go on from; None if not all are found: then they are played again."""
        from safetensors import SafetensorError, safe_open

        members: dict[str, list[int]] = {}
        for place, origin in enumerate(batch.origins):
            members.setdefault(origin.batch, []).append(place)
        parts, order = [], []
        try:
            for name, places in members.items():
                with safe_open(self._kept_path(name), "np") as file:
                    row_of = {int(row): index for index, row in enumerate(file.get_tensor("rows"))}
                    rows = [row_of[batch.origins[place].row] for place in places]
                    parts.append([file.get_tensor(str(index))[rows] for index in range(len(file.keys()) - 1)])
                    order += places
        except (OSError, SafetensorError, KeyError):
            return None
        if not parts:
            return None
        back = np.argsort(order)
        return Kept(batch.origins[0].round, tuple(np.concatenate(arrays)[back] for arrays in zip(*parts, strict=True)))

    def forget_kept(self, batches: Iterable[str]) -> None:
        """Remove the states that these batches, by name, have left: nothing goes on from them any more."""
        for name in batches:
            self._kept_path(name).unlink(missing_ok=True)

    def write_race(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep what a race has dropped, when and why."""
        text = json.dumps(record, indent=1, ensure_ascii=False)
        self._keep(self.folder / RACE / f"{name}.json", lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def read_races(self) -> list[dict[str, Any]]:
        """What `write_race` was given, in the order of the sweep."""
        found: list[dict[str, Any]] = []
        for path in sorted((self.folder / RACE).glob("*.json")):
            try:
                found.append(dict(json.loads(path.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError):
                raise InputError(self._damaged(str(path))) from None
        parts = [(part.algorithm, part.problem) for part in self.sweep().parts] if found else []
        return sorted(found, key=lambda race: parts.index((race["algorithm"], race["problem"])))

    def note_failure(self, batch: Batch, reason: str, traceback: str = "") -> Failure:
        """Store why a batch could not be run."""
        path = self.folder / FAILURES / f"{batch.name}.json"
        record = {
            "algorithm": batch.algorithm, "problem": batch.problem, "runs": len(batch.runs),
            "swept": [run.swept for run in batch.runs[:1]], "reason": reason, "traceback": traceback.splitlines(),
        }  # fmt: skip
        self._keep(path, lambda temporary: temporary.write_text(json.dumps(record, indent=1), encoding="utf-8"))
        return Failure(batch.algorithm, batch.problem, len(batch.runs), reason, traceback, path)

    def failures(self) -> list[Failure]:
        """The batches that could not be run and are still missing."""
        records = sorted((self.folder / FAILURES).glob("*.json"))
        done = {path.stem for path in [*self._files(), *(self.folder / "stages").glob("*.parquet")]}
        return [self._failure(path) for path in records if path.stem not in done]

    def read(self, columns: Iterable[str], **equal: str) -> pa.Table:
        """Columns of all runs, or of the runs whose columns equal the given values."""
        from pyarrow import dataset  # imports pandas too, which a worker process never needs

        condition = None
        for name, value in equal.items():
            clause = dataset.field(name) == value
            condition = clause if condition is None else condition & clause
        begin = "{algorithm}-{problem}-".format(**equal) if {"algorithm", "problem"} <= set(equal) else ""
        files = [str(file) for file in self._files(begin)]
        checked = dataset.ParquetFileFormat(page_checksum_verification=True)
        try:
            return dataset.dataset(files, schema=SCHEMA, format=checked).to_table(list(columns), filter=condition)
        except (pa.ArrowException, OSError) as problem:  # Arrow raises either for a damaged file
            damaged = [file for file in files if not _is_sound(Path(file))]
            if not damaged:
                raise InputError(f"{self.folder / 'runs'} cannot be read: {problem}.") from None
            raise InputError(self._damaged(", ".join(damaged))) from None

    def runs_of(self, batch: Batch) -> list[FinishedRun]:
        """The runs of a batch that is stored, in its order."""
        return self._finished(self._path(batch))

    def finished_runs(self) -> Iterator[FinishedRun]:
        """All runs that are stored, batch by batch."""
        for path in self._files():
            yield from self._finished(path)

    def is_gone(self) -> bool:
        """Whether the folder, or the record of its sweep, was removed."""
        return not (self.folder / "sweep.json").exists()

    def _keep(self, path: Path, write: Callable[[Path], Any]) -> None:
        """Write a file. A folder that was removed is not made again: without its record nothing could be resumed."""
        if self.is_gone():
            raise FileNotFoundError(errno.ENOENT, "it was removed", str(self.folder))
        path.parent.mkdir(exist_ok=True)
        write_whole(path, write)

    def _finished(self, path: Path) -> list[FinishedRun]:
        try:
            rows = parquet.read_table(path, columns=FINISHED, page_checksum_verification=True).to_pylist()
        except (pa.ArrowException, OSError):
            raise InputError(self._damaged(str(path))) from None
        return [_finished_run(row) for row in rows]

    def _path(self, batch: Batch) -> Path:
        return self.folder / ("runs" if batch.until is None else "stages") / f"{batch.name}.parquet"

    def _kept_path(self, name: str) -> Path:
        return self.folder / "stages" / f"{name}.safetensors"

    def _failure(self, path: Path) -> Failure:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            lines = record.get("traceback", [])  # version 0.1 kept none
            algorithm, problem, runs, reason = (record[name] for name in ("algorithm", "problem", "runs", "reason"))
            return Failure(algorithm, problem, runs, reason, "\n".join(lines), path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(self._damaged(str(path))) from None

    def _damaged(self, what: str) -> str:
        return f"{what} is damaged; delete it, then `{self.resume_command}`."

    def _files(self, begin: str = "") -> list[Path]:
        """The Parquet files whose names begin with this text."""
        return sorted((self.folder / "runs").glob(f"{glob.escape(begin)}*.parquet"))

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / "sweep.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{self.folder} holds no sweep: {path.name} was not found.") from None
        except (OSError, json.JSONDecodeError) as problem:
            raise InputError(f"{path} cannot be read: {problem}.") from None
        kinds = {"sweep": dict, "lanes": int, "version": str}
        sound = isinstance(record, dict) and all(type(record.get(key)) is kind for key, kind in kinds.items())
        if not sound or record["lanes"] < 1 or not isinstance(record.get("data", {}), dict):
            raise InputError(f"{path} is damaged; name another folder.")
        return dict(record)


def as_table(batch: Batch, outcome: Outcome) -> pa.Table:
    """The runs of a batch as rows of a table."""
    count = len(batch.runs)
    points = outcome.curves.shape[1]
    offsets = np.arange(0, (count + 1) * points, points, dtype=np.int32)
    columns: dict[str, Any] = {
        "algorithm": [batch.algorithm] * count,
        "problem": [batch.problem] * count,
        "rounds": [batch.until or batch.rounds] * count,
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
        "commit": [source_commit(Path(__file__))] * count,
        "batch": [batch.name] * count,
    }
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}, schema=SCHEMA)


@lru_cache
def source_commit(file: Path) -> str:
    """The commit of the checkout that a source file belongs to, `-dirty` if it was changed since; "" if none.

    A package that is installed somewhere below another project's checkout does not belong to that project.
    """
    git = ["git", "-C", str(file.parent)]
    tracked = [*git, "ls-files", "--error-unmatch", file.name]
    describe = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        for command in (tracked, describe):
            printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return printed


def _finished_run(row: Mapping[str, Any]) -> FinishedRun:
    regret = np.asarray(row["curve"], np.float64)
    return FinishedRun(
        algorithm=row["algorithm"],
        problem=row["problem"],
        swept=json.loads(row["swept"]),
        settings=json.loads(row["settings"]),
        seed=row["seed"],
        rounds=np.minimum(row["curve_every"] * np.arange(1, len(regret) + 1), row["rounds"]),
        regret=regret,
        diverged_at=row["diverged_at"],
        seconds=row["seconds"],
    )


def _without_import(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a sweep runs; the modules it needs may be named in its file, by --import or by NEURALUCB_IMPORT."""
    return {key: value for key, value in record.items() if key != "import"}


def _is_foreign(path: Path) -> bool:
    """Whether a file is anything but a temporary one, left by a process that was killed."""
    return not path.name.endswith(".part")


def _is_sound(path: Path) -> bool:
    try:
        return bool(parquet.read_table(path, page_checksum_verification=True).schema.equals(SCHEMA))
    except (pa.ArrowException, OSError):
        return False
