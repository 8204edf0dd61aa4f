"""A table as a log: rows with a context, the arm that was shown, and its reward; uniformly at random if not told."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from neuralucb.logs.chunk import MOST_ARMS, Chunk, Names, clean
from neuralucb.logs.formats import Log
from neuralucb.logs.record import recorded
from neuralucb.problems.labelled import scale_contexts
from neuralucb.problems.table_files import read_table
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import require_memory

__all__ = ["open_table"]

ROWS = 4096
"""decisions per chunk"""

CHANCE = 1e-6
"""Below this probability, arms that were shown uniformly would not be as uneven as these."""


def open_table(
    path: Path,
    *,
    reward: str,
    arm: str,
    propensity: str | None = None,
    drop: str = "none",
    input_scaling: str = "none",
) -> Log:
    """Open a .csv, .parquet or .npz file of rows as a log: each row is a decision.

    Arms are the different values of the column `arm`, in their order; all of them were available in every decision.
    Without propensities, arms must have been shown uniformly at random, each with probability 1/K, which is what
    replay was made for (Li et al. 2011).

    Args:
        path: The file, as `from_file` reads it; all other columns are the context, words as one-hot.
        reward: The column of rewards.
        arm: The column of the arms that were shown, words or numbers.
        propensity: The column with the probability that the arm was shown; None if arms were shown uniformly.
        drop: Columns to leave out, with names joined by +.
        input_scaling: How contexts are scaled, as in `labelled`.

    Returns:
        The log, for `evaluate`, `replay`, `write_log` and `OnlineBandit.fit`.

    Raises:
        InputError: If the file cannot be read, a value is missing, a propensity is impossible, or arms were shown so
            unevenly that it was not uniform.

    Example:
        >>> log = open_table(Path("log.csv"), reward="clicks", arm="shown")
        >>> log.arms, log.decisions
        (2, 3)
    """
    take = {"reward": reward, "arm": arm} | ({} if propensity is None else {"propensity": propensity})
    table = read_table(path, take)
    names, rows = table.features(drop)
    if rows.ndim != 2:
        raise InputError(f"X in {path} must be (n, d) for a log, one context that all arms share, got {rows.shape}.")
    arms, codes = np.unique(table.taken[arm], return_inverse=True)
    if not 2 <= len(arms) <= min(MOST_ARMS, max(2, len(rows) // 2)):
        raise InputError(
            f"arm {arm} of {path.name} must have from 2 to half as many different values as rows, got {len(arms)} in "
            f"{len(rows)} rows; name the column of arms, not one of ids or numbers."
        )
    if propensity is None:
        _refuse_uneven(path, arm, arms, codes)
    contexts = rows.astype(np.float32) if input_scaling == "none" else scale_contexts(rows, input_scaling)
    if contexts.shape[1] != len(names):
        names = tuple(f"x[{column}]" for column in range(contexts.shape[1]))
    given = None if propensity is None else table.taken[propensity]
    require_memory(
        16 * min(ROWS, len(rows)) * len(arms),
        what=f"a chunk of decisions with {len(arms)} arms",
        cure="group arms",
        host=True,
    )
    chunks = partial(_chunks, path, Names(names, ()), contexts, codes, table.taken[reward], given, len(arms))
    return Log(path, Names(names, ()), len(arms), len(rows), chunks)


def _chunks(
    path: Path,
    names: Names,
    contexts: np.ndarray,
    arm: np.ndarray,
    reward: np.ndarray,
    propensity: np.ndarray | None,
    arms: int,
) -> Iterator[Chunk]:
    def refuse(line: int, reason: str) -> None:
        raise InputError(f"{path} row {line}: {reason}.")

    for start in range(0, len(arm), ROWS):
        part = slice(start, start + ROWS)
        uniform = np.broadcast_to(1 / arms, (len(arm[part]), arms))
        chunk = recorded(contexts[part], arm[part], reward[part], uniform, first=start + 1)._replace(names=names)
        if propensity is not None:
            chunk = clean(chunk._replace(propensity=propensity[part], probabilities=None), refuse)
        yield chunk


def _refuse_uneven(path: Path, column: str, arms: np.ndarray, codes: np.ndarray) -> None:
    """Refuse arms that cannot have been shown uniformly, by Pearson's χ² test of how often each was."""
    from scipy.special import chdtrc  # scipy.stats takes a second to import

    counts = np.bincount(codes)
    distance = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    if chdtrc(len(counts) - 1, distance) < CHANCE:
        most, least = counts.argmax(), counts.argmin()
        raise InputError(
            f"arm {column} of {path.name} must have been shown uniformly at random, but {arms[most]} was shown "
            f"{counts[most]} times and {arms[least]} {counts[least]} times; give the column of probabilities with "
            "--propensity (in Python, propensity=…)."
        )
