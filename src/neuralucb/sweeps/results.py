"""Sweeps from Python: one call that runs a sweep, and what it returns."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.words import counted
from neuralucb.sweeps.callbacks import Callback, FinishedRun
from neuralucb.sweeps.spec import Sweep

if TYPE_CHECKING:
    import pandas

    from neuralucb.sweeps.engine import Job
    from neuralucb.sweeps.report import Best
    from neuralucb.sweeps.store import Failure, Store
    from neuralucb.sweeps.workers import Event

__all__ = ["SweepResult", "Told", "shown", "sweep"]

Told: TypeAlias = Callable[[str, int, int], Any]
"""What progress is told: the name of the sweep, runs done, runs in total."""

COLUMNS = ("algorithm", "problem", "seed", "rounds", "schedule", "final_regret", "diverged_at", "seconds", "device")
"""Of the store, as a frame has them; the swept settings stand between problem and seed."""

SHOWN = 3
"""How many failures the representation of a result lists."""


class SweepResult(NamedTuple):
    """A sweep that was run: where its runs are stored, what failed, and how to look at it.

    Example:
        >>> result = neuralucb.sweep("mine.toml")  # doctest: +SKIP
        >>> result.best()[0].setting, result.to_frame().groupby("algorithm").final_regret.mean()  # doctest: +SKIP
    """

    sweep: Sweep
    folder: Path
    """the store: `runs/*.parquet`, `sweep.json`, and what `report` writes"""
    stored: int
    """number of runs that are stored, of `sweep.runs`; in a race, those that were played to their end"""
    failures: "tuple[Failure, ...]"
    """the batches that could not be run; the same call tries them again"""

    def best(self) -> "list[Best]":
        """The best setting of every algorithm on every problem, both ways.

        Returns:
            One record each: `setting` has the lowest mean regret on all seeds, `regret`; `held_out_setting` was chosen
            on every other seed, and has the mean `held_out` on the remaining ones.

        Raises:
            InputError: A file of the store is damaged; the message names it and the cure.

        Example:
            >>> {row.algorithm: row.regret.mean for row in result.best()}  # doctest: +SKIP
        """
        from neuralucb.sweeps.report import read_best

        return read_best(self._store())

    def to_frame(self) -> "pandas.DataFrame":
        """All stored runs as a table of pandas, one row per run, with a column for each swept setting.

        A setting that an algorithm does not have is missing in its rows. Curves stay in the store: `runs()` and
        `pandas.read_parquet(result.folder / "runs")` have them.

        Raises:
            InputError: If pandas is not installed, or a file of the store is damaged.

        Example:
            >>> result.to_frame().pivot_table("final_regret", "exploration", "algorithm")  # doctest: +SKIP
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame needs pandas, which is not installed; pip install pandas brings it.") from None
        parts = list(dict.fromkeys((part.algorithm, part.problem) for part in self.sweep.parts))
        names = dict.fromkeys(name for part in self.sweep.parts for name in part.swept)
        columns = {name: f"setting_{name}" if name in COLUMNS else name for name in names}
        made = []
        for row in self._store().read([*COLUMNS, "swept"]).to_pylist():
            swept = json.loads(row.pop("swept"))
            place = [(str(type(swept.get(name))), swept.get(name)) for name in names]
            row |= {columns[name]: value for name, value in swept.items()}
            made.append(((parts.index((row["algorithm"], row["problem"])), place, row["seed"]), row))
        rows = [row for _, row in sorted(made, key=itemgetter(0))]
        return pandas.DataFrame(rows, columns=[*COLUMNS[:2], *columns.values(), *COLUMNS[2:]])

    def runs(self) -> Iterator[FinishedRun]:
        """All stored runs with their regret curves, as callbacks get them.

        Raises:
            InputError: A file of the store is damaged; the message names it and the cure.

        Example:
            >>> for run in result.runs():  # doctest: +SKIP
            ...     print(run.name, run.regret[-1])
        """
        return self._store().finished_runs()

    def races(self) -> list[dict[str, Any]]:
        """Of a race, what was dropped, when and why; one record per algorithm and problem. Empty for a full grid.

        Raises:
            InputError: A file of the store is damaged; the message names it and the cure.

        Example:
            >>> [(each["round"], each["why"]) for each in result.races()[0]["dropped"]]  # doctest: +SKIP
        """
        return self._store().read_races()

    def report(self) -> Path:
        """Write report.html, its figures and the table of the best settings into the folder.

        Returns:
            The page, which loads nothing from elsewhere.

        Raises:
            InputError: A file of the store is damaged; the message names it and the cure.

        Example:
            >>> print(result.report())  # doctest: +SKIP
            mine/report.html
        """
        from neuralucb.display.sweep_report import write_report  # upward: what people look at is display's affair

        return write_report(self._store())

    def __repr__(self) -> str:
        stored = f"{self.stored} of {counted(self.sweep.runs, 'run')}"
        lines = [f"SweepResult({self.sweep.name!r}: {stored} in {str(self.folder)!r}"]
        lines += [f"failed: {failure}" for failure in self.failures[:SHOWN]]
        if len(self.failures) > SHOWN:
            lines.append(f"… and {len(self.failures) - SHOWN} more failed")
        return "\n  ".join(lines) + ")"

    def _store(self) -> "Store":
        from neuralucb.sweeps.store import Store

        return Store(self.folder)


def sweep(
    spec: Sweep | Mapping[str, Any] | Path | str,
    *,
    out: Path | str | None = None,
    engine: str = "local",
    device: str = "auto",
    workers: int | None = None,
    address: str | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | Told | None = None,
) -> SweepResult:
    """Run a sweep, or what is missing of it: algorithms on problems, over grids of settings and seeds.

    Every batch of runs is stored as soon as it has ended. The same call again runs only what is missing, and a call
    for a finished sweep runs nothing. A script needs no `if __name__ == "__main__":` for it: worker processes run the
    script only if it registers an algorithm, problem or network of the sweep, and then only up to this call.

    Args:
        spec: The path of a TOML file, a dictionary of the same form, or a `Sweep`; `search = "race"` in it drops
            settings that are clearly worse on the way.
        out: The folder of the results; None for one named after the sweep.
        engine: "local" for this machine, or "ray" for a Ray cluster.
        device: "auto" (a GPU if JAX sees one), "cpu" or "gpu".
        workers: Processes on a CPU; None for one per core.
        address: Of the Ray cluster, with `engine="ray"`; None for a local one.
        callbacks: Told of every run after it is stored, such as `TensorBoard("events")`.
        progress: True to show it on stderr, or a function of the sweep's name, how many of the missing runs
            are done, and how many they are.

    Returns:
        Where the runs are, what failed, the best settings, a table, a report.

    Raises:
        InputError: Something in `spec` or an argument is wrong, the folder belongs to another sweep, it cannot be
            written, no worker can start, or a callback raised; the message says which, and what is safe.

    Example:
        >>> spec = {
        ...     "name": "mine", "rounds": 300, "seeds": 4,
        ...     "runs": [{"algorithms": ["lin-ucb"], "problems": ["h1"], "grid": {"exploration": [0.1, 1.0]}}],
        ... }  # fmt: skip
        >>> neuralucb.sweep(spec, out="mine")  # doctest: +SKIP
        SweepResult('mine': 8 of 8 runs in 'mine')
    """
    try:
        from neuralucb.sweeps.engine import prepare, run_sweep
    except ImportError as missing:
        if missing.name is None or missing.name.startswith("neuralucb"):
            raise
        raise InputError(
            f"sweep needs {missing.name}, which is not installed; pip install 'neuralucb[experiments]' brings it."
        ) from None
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        rule = "must be True, or a function of the sweep's name, runs done and their total"
        raise InputError(f"progress {rule}, got {progress!r}.")
    planned = _read(spec)
    job = prepare(planned, planned.name if out is None else out, device=device, workers=workers, engine=engine)
    with shown(job, progress) as listener:
        failures = run_sweep(job, listener, address=address, callbacks=callbacks)
    batches = [batch for race in job.races for batch in race.batches] if job.races else job.batches
    played = [batch for batch in batches if batch.until is None]
    stored = sum(len(batch.runs) for batch in played) - sum(len(batch.runs) for batch in job.store.missing(played))
    return SweepResult(job.sweep, job.store.folder, stored, tuple(failures))


def shown(job: "Job", progress: bool | Told | None) -> "AbstractContextManager[Callable[[Event], None]]":
    """A listener that shows progress, or tells it to a function, or does nothing."""
    from neuralucb.sweeps.workers import ignore

    if progress is True:
        from neuralucb.display.console import err  # upward: what people look at is display's affair
        from neuralucb.display.sweep_progress import sweep_progress

        return sweep_progress(job, err)
    if progress is None or progress is False:
        return nullcontext(ignore)
    tell, done, total = progress, 0, sum(len(batch.runs) for batch in job.missing)

    def listener(event: "Event") -> None:
        nonlocal done
        if event.regret is not None or event.failure is not None:
            done += len(event.batch.runs)
            tell(job.sweep.name, done, total)

    return nullcontext(listener)


def _read(spec: Sweep | Mapping[str, Any] | Path | str) -> Sweep:
    from neuralucb.sweeps.toml import read_record, read_sweep

    if isinstance(spec, Sweep):
        record = spec.as_json()
        for part in (parts := record.pop("parts")):
            part["algorithms"], part["problems"] = part.pop("algorithm"), part.pop("problem")
        runs = [{key: value for key, value in part.items() if value is not None} for part in parts]
        return read_record(_plain({**record, "runs": runs}))
    if isinstance(spec, Mapping):
        return read_record(_plain(spec))
    if isinstance(spec, str | Path):
        return read_sweep(spec)
    raise InputError(f"spec must be the path of a TOML file, a dictionary or a Sweep, got {spec!r}.")


def _plain(value: Any) -> Any:
    """Mappings as dictionaries, sequences and arrays as lists, NumPy's numbers as Python's: what TOML would give."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str) and not hasattr(value, "_fields"):
        return [_plain(each) for each in value]
    return value
