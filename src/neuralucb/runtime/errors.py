"""The errors a caller can act on. Any other error that leaves the library is a fault of the library."""

__all__ = ["InputError", "StorageError"]


class InputError(ValueError):
    """An argument cannot be used: the message names the argument, its value and the cure.

    Example:
        >>> import neuralucb
        >>> neuralucb.build("lin-ucb", dim=0)
        Traceback (most recent call last):
            ...
        neuralucb.runtime.errors.InputError: dim must be a whole number of at least 1, got 0.
    """


class StorageError(Exception):
    """A bandit's file is damaged, has a newer format, is in use or cannot be written; the message says why."""
