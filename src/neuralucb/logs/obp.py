"""Open Bandit Pipeline's `bandit_feedback` dictionary, to and from chunks, and as a file: .npz without pickles."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.logs.chunk import MOST_ARMS, Bad, Chunk, Names, as_integers, blank_times, clean, spans, take, unnamed
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.expansion import npz_bytes
from neuralucb.runtime.memory import require_memory

__all__ = ["from_obp", "read_npz", "to_obp", "write_npz"]

BATCH = 8192
REQUIRED = ("n_rounds", "n_actions", "context", "action", "reward", "pscore")
OPTIONAL = ("position", "action_context", "pi_b", "expected_reward")


def from_obp(feedback: Mapping[str, Any], bad: Bad | None = None) -> Iterator[Chunk]:
    """The decisions of Open Bandit Pipeline's dictionary, in chunks.

    Args:
        feedback: `bandit_feedback`, as `obp.dataset` makes it; keys that may be None may also be missing.
        bad: Called with the number of each unusable round, from 1, and the reason; by default such a round raises.

    Returns:
        An iterator over chunks.

    Raises:
        InputError: A key is missing or has another shape or type, or a round is unusable and `bad` is None.

    Example:
        >>> from neuralucb.logs import recorded
        >>> chunk = recorded(np.ones((2, 3)), np.array([0, 2]), np.array([1.0, 0.5]), np.full((2, 4), 1 / 4))
        >>> sum(len(part.line) for part in from_obp(to_obp([chunk])))
        2
    """
    report = bad or _raise
    rounds, actions, arrays = _check(feedback)
    position, action_context, pi_b, expected = (arrays.get(name) for name in OPTIONAL)
    names = unnamed(arrays["context"].shape[1], 0 if action_context is None else action_context.shape[1])
    for first in range(0, rounds, BATCH):
        rows = slice(first, min(first + BATCH, rounds))
        n = rows.stop - rows.start
        line = np.arange(rows.start + 1, rows.stop + 1)
        own = np.zeros((n * actions, 0)) if action_context is None else np.tile(action_context, (n, 1))
        reward, pscore = arrays["reward"][rows], arrays["pscore"][rows].astype(np.float64)
        arm, odd = as_integers(arrays["action"][rows], _kind(arrays["action"]))
        no_round = np.zeros(n, dtype=bool)
        wrong = np.zeros(n, dtype=bool)
        for mask, reason in (
            (np.isnan(reward) | np.isnan(pscore), "reward or pscore is NaN"),
            (odd, "action must be a whole number"),
            (no_round if pi_b is None else np.isnan(pi_b[rows]).any(axis=(1, 2)), "pi_b has NaN"),
            (no_round if expected is None else np.isnan(expected[rows]).any(axis=1), "expected_reward has NaN"),
        ):
            for row in np.flatnonzero(mask & ~wrong):
                report(int(line[row]), reason)
            wrong |= mask
        chunk = Chunk(
            names,
            line,
            np.full(n, None, dtype=object),
            blank_times(n),
            np.full(n, actions, np.int64),
            np.tile(np.arange(actions, dtype=np.int32), n),
            arrays["context"][rows],
            own,
            arm,
            reward,
            pscore,
            np.ones(n),
            None if pi_b is None else pi_b[rows, :, 0].reshape(-1),
            None if position is None else position[rows],
            None if expected is None else expected[rows].reshape(-1),
        )
        yield clean(take(chunk, ~wrong), report)


def to_obp(chunks: Iterable[Chunk]) -> dict[str, Any]:
    """The dictionary that Open Bandit Pipeline's estimators take; it holds the log in memory, as they do.

    Args:
        chunks: The decisions, each with all arms available, a propensity, a reward and a weight of 1.

    Returns:
        `bandit_feedback`; keys that are not known are left out, but for `position`, which is None then.

    Raises:
        InputError: There is no decision, or one that the dictionary cannot express.

    Example:
        >>> from neuralucb.logs import recorded
        >>> chunk = recorded(np.ones((2, 3)), np.array([0, 2]), np.array([1.0, 0.5]), np.full((2, 4), 1 / 4))
        >>> feedback = to_obp([chunk])
        >>> feedback["n_rounds"], feedback["n_actions"]
        (2, 4)
    """
    parts = list(chunks)
    if not parts:
        raise InputError("the log has no decision; the dictionary must have at least one.")
    names, actions = parts[-1].names, max(int(part.arms.max(initial=-1)) + 1 for part in parts)
    for part in parts:
        _fits(part, actions)
    action_context = _action_context(parts, names, actions)
    feedback: dict[str, Any] = {
        "n_rounds": sum(len(part.line) for part in parts),
        "n_actions": actions,
        "context": np.concatenate([_wide(part.shared, len(names.shared)) for part in parts]).astype(np.float64),
        "action_context": action_context,
        "action": np.concatenate([part.arm for part in parts]),
        "position": _joined([part.position for part in parts]),
        "reward": np.concatenate([part.reward for part in parts]),
        "pscore": np.concatenate([part.propensity for part in parts]),
        "pi_b": _joined([_by_arm(part.probabilities, actions) for part in parts]),
        "expected_reward": _joined([_by_arm(part.expected, actions) for part in parts]),
    }
    if feedback["pi_b"] is not None:
        feedback["pi_b"] = feedback["pi_b"][:, :, None]
    return {name: value for name, value in feedback.items() if value is not None or name == "position"}


def read_npz(path: Path, bad: Bad) -> Iterator[Chunk]:
    """A dictionary stored as .npz: every key is an array, and keys that are None are left out."""
    feedback, name = {}, ""
    require_memory(2 * npz_bytes(path), what=f"reading {path}", cure="split it, or convert it to Parquet", host=True)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                feedback[name] = arrays[name]
    except Exception as problem:  # NumPy lets through whatever its ZIP, its headers and its arrays raise
        raise InputError(f"{path} cannot be read: {_why_not_loaded(problem, name)}.") from None
    try:
        yield from from_obp(feedback, bad)
    except ValueError as problem:
        raise InputError(str(problem) if str(path) in str(problem) else f"{path}: {problem}") from None


def write_npz(path: Path, chunks: Iterable[Chunk]) -> int:
    """The dictionary as .npz, which `dict(numpy.load(path))` gives back; a `position` of None is left out."""
    feedback = {name: value for name, value in to_obp(chunks).items() if value is not None}
    with path.open("wb") as file:
        np.savez(file, **feedback)
    return int(feedback["n_rounds"])


def _check(feedback: Mapping[str, Any]) -> tuple[int, int, dict[str, np.ndarray]]:
    """Rounds, actions, and every other key that is there as an array of numbers of the right shape."""
    missing = [name for name in REQUIRED if name not in feedback]
    if missing:
        raise InputError(f"the dictionary has no {', '.join(missing)}; it has: {', '.join(feedback) or 'nothing'}.")
    rounds, actions = _size(feedback, "n_rounds"), _size(feedback, "n_actions")
    if actions > MOST_ARMS:
        raise InputError(f"n_actions must be at most {MOST_ARMS}, got {actions}; number actions from 0.")
    arrays: dict[str, np.ndarray] = {}
    shapes: dict[str, tuple[Any, ...]] = {
        "context": (rounds, None),
        "action_context": (actions, None),
        "action": (rounds,),
        "position": (rounds,),
        "reward": (rounds,),
        "pscore": (rounds,),
        "pi_b": (rounds, actions, 1),
        "expected_reward": (rounds, actions),
    }
    for name, shape in shapes.items():
        if feedback.get(name) is None and name in OPTIONAL:
            continue
        try:
            arrays[name] = np.asarray(feedback[name])
        except ValueError:
            raise InputError(f"{name} must be an array, got rows of different lengths.") from None
        got = arrays[name].shape
        if len(got) != len(shape) or any(want not in (None, is_) for want, is_ in zip(shape, got, strict=True)):
            words = ", ".join("any" if want is None else str(want) for want in shape)
            raise InputError(f"{name} must have shape ({words}), got {got}.")
        kinds = "iu" if name == "position" else "biuf"
        if arrays[name].dtype.kind not in kinds:
            wanted = "whole numbers" if name == "position" else "numbers"
            raise InputError(f"{name} must have {wanted}, got an array of {arrays[name].dtype}.")
        if arrays[name].dtype.kind == "b":
            arrays[name] = arrays[name].astype(np.int64)
    return rounds, actions, arrays


def _why_not_loaded(problem: Exception, name: str) -> str:
    """Why a file was not loaded, with the name of the array that was being read."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    if isinstance(problem, MemoryError):
        return f"{name or 'an array'} does not fit into memory, or the file is truncated"
    if name and isinstance(problem, ValueError):
        return f"{name} is not a plain array; leave out keys that are None, and save numbers"
    return "not an .npz file, or truncated"


def _kind(action: np.ndarray) -> type[np.signedinteger]:
    return np.int32 if action.dtype == np.int32 else np.int64


def _size(feedback: Mapping[str, Any], name: str) -> int:
    value = np.asarray(feedback[name])
    if value.ndim or value.dtype.kind not in "iu" or value < 0:
        raise InputError(f"{name} must be one whole number, got {feedback[name]!r:.60}.")
    return int(value)


def _fits(part: Chunk, actions: int) -> None:
    """Refuse what the dictionary cannot express."""
    _, owner = spans(part)
    short = np.flatnonzero(part.counts != actions)
    for rows, reason in (
        (short, f"does not have all {actions} arms available, and the dictionary has no mask"),
        (np.flatnonzero(np.isnan(part.propensity)), "was deterministic, which the dictionary cannot express"),
        (np.flatnonzero(np.isnan(part.reward)), "has no reward, and the dictionary must have one"),
        (np.flatnonzero(part.weight != 1), "has a weight, and the dictionary has none"),
        (owner[part.arms != np.arange(len(part.arms)) % actions][:1], "does not list its arms in order"),
    ):
        if len(rows):
            raise InputError(f"decision {part.line[rows[0]]} {reason}; keep the log as Parquet.")


def _action_context(parts: list[Chunk], names: Names, actions: int) -> np.ndarray | None:
    if not names.own:
        return None
    first = _wide(parts[0].own, len(names.own))[:actions]
    for part in parts:
        own = _wide(part.own, len(names.own)).reshape(-1, actions, len(names.own))
        if not (own == first).all():
            raise InputError(
                "arms have features that change from decision to decision, and the dictionary has one "
                "action_context for all; keep the log as Parquet."
            )
    return first.astype(np.float64)


def _wide(values: np.ndarray, width: int) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])))


def _joined(parts: list[np.ndarray | None]) -> np.ndarray | None:
    kept = [part for part in parts if part is not None]
    return np.concatenate(kept) if len(kept) == len(parts) else None


def _by_arm(values: np.ndarray | None, actions: int) -> np.ndarray | None:
    return None if values is None or np.isnan(values).any() else values.reshape(-1, actions)


def _raise(line: int, reason: str) -> None:
    raise InputError(f"round {line}: {reason}.")
