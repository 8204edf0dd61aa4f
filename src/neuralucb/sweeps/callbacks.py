"""Callbacks: told of the runs of a sweep, after they are stored, in the process that started it."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neuralucb.runtime.child import name_and_message
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.records import brief
from neuralucb.sweeps.spec import Sweep

if TYPE_CHECKING:
    from neuralucb.sweeps.store import Failure

__all__ = ["Callback", "FinishedRun", "told"]

METHODS = ("start", "run", "end")

LONGEST_NAME = 150
"""Folders are named after runs, and file systems allow 255 bytes."""


@brief
class FinishedRun(NamedTuple):
    """One algorithm with one setting and one seed, played to its end and stored.

    Example:
        >>> class Best:
        ...     lowest = float("inf")
        ...
        ...     def start(self, sweep): ...
        ...     def end(self, failures): ...
        ...     def run(self, run):
        ...         self.lowest = min(self.lowest, run.regret[-1])  # one FinishedRun per run
    """

    algorithm: str
    problem: str
    swept: dict[str, Any]
    """the settings that the sweep varies"""
    settings: dict[str, Any]
    """all settings of the algorithm and of the problem"""
    seed: int
    rounds: np.ndarray
    """[points] the rounds after which `regret` was noted, at most 1000"""
    regret: np.ndarray
    """[points] cumulative regret"""
    diverged_at: int
    """the round of divergence; 0 if none"""
    seconds: float
    """its share of its batch's time"""

    @property
    def name(self) -> str:
        """Readable, different for every run of the sweep, and fit for a folder."""
        swept = [f"{name}={value}" for name, value in self.swept.items()]
        words = "-".join([self.algorithm, self.problem, *swept, f"seed{self.seed}"])
        name = re.sub(r"[^\w.,=+-]", "_", words)
        if name == words and len(name) <= LONGEST_NAME:
            return name
        return f"{name[:LONGEST_NAME]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


class Callback(Protocol):
    """Told what a sweep does. What it raises ends the sweep; what is stored stays stored.

    Example:
        >>> class Print:
        ...     def start(self, sweep):
        ...         print(f"{sweep.runs} runs")
        ...
        ...     def run(self, run):
        ...         print(run.name, run.regret[-1])
        ...
        ...     def end(self, failures):
        ...         print(f"{len(failures)} failed")
    """

    def start(self, sweep: Sweep) -> None:
        """Before the first run, with everything that will be run."""

    def run(self, run: FinishedRun) -> None:
        """After each run that is stored; those of a batch come together. Runs that were stored before are not told."""

    def end(self, failures: Sequence["Failure"]) -> None:
        """After the last run, with the batches that failed; also when the sweep is interrupted."""


@contextmanager
def told(
    callbacks: Sequence[Callback], sweep: Sweep, failures: Sequence["Failure"], safe: Callable[[], str]
) -> Iterator[Callable[[Iterable[FinishedRun]], None]]:
    """Start callbacks, and end them whatever happens; yields the function that tells them of runs.

    Args:
        callbacks: Checked first.
        sweep: What they are started with.
        failures: What they are ended with; it grows meanwhile.
        safe: Says how much is stored, for the error when one of them raises.
    """
    _check(callbacks)
    started: list[Callback] = []

    def call(callback: Callback, method: str, argument: Any) -> None:
        try:
            getattr(callback, method)(argument)
        except InputError:
            raise
        except Exception as problem:
            raise InputError(
                f"callbacks: {type(callback).__name__}.{method} raised {name_and_message(problem)}; {safe()}, and the "
                "same call runs the rest."
            ) from problem

    def tell(runs: Iterable[FinishedRun]) -> None:
        for run in runs:
            for callback in callbacks:
                call(callback, "run", run)

    def end() -> None:
        """End all of them, even if one of them raises; the first problem is raised."""
        problems = []
        for callback in started:
            try:
                call(callback, "end", failures)
            except InputError as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    try:
        for callback in callbacks:
            call(callback, "start", sweep)
            started.append(callback)
        yield tell
    except BaseException as problem:  # it is the one to show, whatever happens at the end
        try:
            end()
        except InputError as other:
            problem.add_note(f"And {other}")
        raise
    end()


def _check(callbacks: Sequence[Callback]) -> None:
    if not isinstance(callbacks, list | tuple):
        raise InputError(f"callbacks must be a list, got {callbacks!r}; put it into brackets.")
    for callback in callbacks:
        if isinstance(callback, type):
            raise InputError(f"callbacks must be objects, got the class {callback.__name__}; call it first.")
        missing = [method for method in METHODS if not callable(getattr(callback, method, None))]
        if missing:
            raise InputError(
                f"callbacks must have the methods {', '.join(METHODS)}, got {callback!r}, without {', '.join(missing)}."
            )
