"""Errors of our own, so that the command line can tell what the caller can mend from a fault of the library."""

__all__ = ["InputError", "StorageError"]


class InputError(ValueError):
    """What was given cannot be used: the message names the argument, its value and the cure.

    Any other `ValueError` that leaves the library is a fault of the library.
    """


class StorageError(Exception):
    """A file of a bandit is damaged, of a newer format, in use, or cannot be written; it says which, and why."""
