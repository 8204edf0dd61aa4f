"""The errors a caller can act on. Any other error that leaves the library is a fault of the library."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["InputError", "StorageError", "UnsoundError", "meant"]


class InputError(ValueError):
    """An argument cannot be used: the message names the argument, its value and the cure.

    Example:
        >>> import neuralucb
        >>> neuralucb.build("lin-ucb", dim=0)
        Traceback (most recent call last):
            ...
        neuralucb.runtime.errors.InputError: dim must be a whole number of at least 1, got 0.
    """


class UnsoundError(InputError):
    """What was computed is not sound, so that no number of it is given: training diverged, or scores are not finite.

    It is an `InputError`, since other settings or data are the cure; the command line has an exit code for it.

    Example:
        >>> issubclass(UnsoundError, InputError)
        True
    """


class StorageError(Exception):
    """A bandit's file is damaged, has a newer format, is in use or cannot be written; the message says why.

    So does a fork of the process that a bandit belongs to.

    Example:
        >>> from neuralucb import OnlineBandit, build
        >>> bandit = OnlineBandit(build("lin-ucb", dim=2), journal="one-writer")
        >>> try:
        ...     OnlineBandit(build("lin-ucb", dim=2), journal="one-writer")
        ... except StorageError:
        ...     print("in use")
        in use
    """


def meant(name: object, known: Iterable[str]) -> str:
    """What a misspelt name may have meant, as a sentence after a message; nothing where none is close."""
    named = {each.replace("_", "-"): each for each in known}
    close = get_close_matches(str(name).lower().replace("_", "-"), named, n=1)
    return f" Did you mean {named[close[0]]}?" if close else ""
