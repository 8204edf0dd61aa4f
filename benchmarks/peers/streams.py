"""The streams that every system plays: drawn once by the library, written to a file, read by all with NumPy alone.

h1 and two worlds have one context per arm; labelled data sets and the world "arm-codes" have one that arms share. All
systems meet the same numbers: columns of data sets have mean 0 and deviation 1, a constant is added, and rows have norm
1; contexts of worlds are divided by √d, so that their norm is about 1.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LABELLED", "STREAMS", "WORLDS", "Stream", "draw_stream", "read_stream", "write_stream"]

LABELLED = ("magic", "shuttle", "covertype", "mnist")
WORLDS = ("linear-noisy", "xor", "arm-codes")
"""Of worlds_suite.py; in "linear-noisy" the library is known to fall short."""
STREAMS = ("h1", *LABELLED, *WORLDS)
SCALING: dict[str, Any] = {"input_scaling": "standard", "intercept": True}


class Stream(NamedTuple):
    """T rounds, complete."""

    name: str
    seed: int
    contexts: np.ndarray
    """[T, K, d], or [T, d] where arms share a context"""
    expected: np.ndarray
    """[T, K], for the regret"""
    rewards: np.ndarray
    """[T, K] what each arm would bring, noise included"""

    @property
    def shared(self) -> bool:
        """Whether arms share a context."""
        return self.contexts.ndim == 2

    @property
    def rounds(self) -> int:
        """T."""
        return self.expected.shape[0]

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
        for array in (self.contexts, self.expected, self.rewards):
            digest.update(np.ascontiguousarray(array, "<f4").data)
        return digest.hexdigest()[:16]


def draw_stream(name: str, *, rounds: int, seed: int) -> Stream:
    """That stream with that seed, for as many rounds as there are.

    Raises:
        InputError: If the data set is not on this machine and cannot be fetched.
    """
    contexts, expected, rewards = (_from_world if name in WORLDS else _from_problem)(name, rounds, seed)
    return Stream(name, seed, *(np.asarray(array, np.float32) for array in (contexts, expected, rewards)))


def write_stream(stream: Stream, path: Path) -> None:
    """Write a stream as a NumPy file."""
    np.savez(path, **stream._asdict())


def read_stream(path: Path) -> Stream:
    """The stream of that file."""
    with np.load(path) as file:
        values = {name: file[name] for name in Stream._fields}
    return Stream(**{**values, "name": str(values["name"]), "seed": int(values["seed"])})


def _from_problem(name: str, rounds: int, seed: int) -> tuple[Any, Any, Any]:
    """What `neuralucb.run` meets on that problem with that seed."""
    import jax

    from neuralucb.problems import find_problem
    from neuralucb.settings import read_settings
    from neuralucb.simulation import draw_rounds

    definition = find_problem(name)
    given = SCALING if name in LABELLED else {}
    problem = definition.make(**read_settings(definition.settings, given, of=name))
    drawn = draw_rounds(jax.random.key(seed), problem, rounds=min(rounds, problem.limit or rounds))
    contexts = drawn.contexts.x[:, 0] if problem.shared else drawn.contexts
    return contexts, drawn.expected, drawn.expected + drawn.noise[:, None]


def _from_world(name: str, rounds: int, seed: int) -> tuple[Any, Any, Any]:
    import sys

    sys.path.insert(0, str(Path(__file__).parent.parent))
    from worlds_suite import make_world

    world = make_world(name, seed, rounds)
    drawn = [world.draw(t) for t in range(world.rounds)]
    contexts, expected, rewards = (np.asarray([getattr(each, of) for each in drawn]) for of in Stream._fields[2:])
    if name == "arm-codes":
        contexts = contexts[:, 0, : -world.arms]  # what is left of an arm without its one-hot code is shared by all
        contexts = np.concatenate([contexts, np.ones((len(contexts), 1))], axis=1)
    return contexts / np.sqrt(contexts.shape[-1]), expected, rewards
