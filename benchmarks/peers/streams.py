"""The streams that every system plays: drawn once by the library, written to a file, read by all with NumPy alone.

h1 has one context per arm; a labelled data set has one that its arms share, scaled alike for everybody (columns to
mean 0 and deviation 1, a constant added, rows to norm 1).
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LABELLED", "SCALING", "Stream", "draw_stream", "read_stream", "write_stream"]

LABELLED = ("magic", "shuttle", "covertype")
SCALING: dict[str, Any] = {"input_scaling": "standard", "intercept": True}


class Stream(NamedTuple):
    """T rounds, complete: reward = expected[t, arm] + noise[t]."""

    name: str
    seed: int
    contexts: np.ndarray
    """[T, K, d], or [T, d] where arms share a context"""
    expected: np.ndarray
    """[T, K]"""
    noise: np.ndarray
    """[T]"""

    @property
    def shared(self) -> bool:
        """Whether arms share a context."""
        return self.contexts.ndim == 2

    @property
    def arms(self) -> int:
        """K."""
        return self.expected.shape[1]

    @property
    def dim(self) -> int:
        """d, with the constant."""
        return self.contexts.shape[-1]

    @property
    def regret(self) -> np.ndarray:
        """[T, K] what each arm would lose."""
        return self.expected.max(axis=1, keepdims=True) - self.expected

    @property
    def digest(self) -> str:
        """Of everything that a system can meet."""
        digest = hashlib.sha256(f"{self.name} {self.seed} {self.contexts.shape}".encode())
        for array in (self.contexts, self.expected, self.noise):
            digest.update(np.ascontiguousarray(array, "<f4").data)
        return digest.hexdigest()[:16]


def draw_stream(name: str, *, rounds: int, seed: int) -> Stream:
    """What `neuralucb.run` meets on that problem with that seed, for as many rounds as there are.

    Raises:
        InputError: If the data set is not on this machine and cannot be fetched.
    """
    import jax

    from neuralucb.problems import find_problem
    from neuralucb.settings import read_settings
    from neuralucb.simulation import draw_rounds

    definition = find_problem(name)
    given = SCALING if name in LABELLED else {}
    problem = definition.make(**read_settings(definition.settings, given, of=name))
    drawn = draw_rounds(jax.random.key(seed), problem, rounds=min(rounds, problem.limit or rounds))
    contexts = drawn.contexts.x[:, 0] if problem.shared else drawn.contexts
    return Stream(name, seed, *(np.asarray(array, np.float32) for array in (contexts, drawn.expected, drawn.noise)))


def write_stream(stream: Stream, path: Path) -> None:
    """Write a stream as a NumPy file."""
    np.savez(path, **stream._asdict())


def read_stream(path: Path) -> Stream:
    """The stream of that file."""
    with np.load(path) as file:
        values = {name: file[name] for name in Stream._fields}
    return Stream(**{**values, "name": str(values["name"]), "seed": int(values["seed"])})
