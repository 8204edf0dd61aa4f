"""The first function of a child process: light to import, so that it can report an import that fails."""

import sys
import traceback
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

__all__ = ["Crash", "enter", "name_and_message"]


class Crash(NamedTuple):
    """Why a child process ended: an exception that was not caught."""

    reason: str
    traceback: str


def enter(pipe: Connection, module: str, function: str, *arguments: Any) -> None:
    """In the child: import the function and call it with the pipe and the arguments; send a `Crash` if that fails."""
    try:
        getattr(import_module(module), function)(pipe, *arguments)
    except Exception as problem:
        with suppress(OSError):  # the parent has ended too
            pipe.send(Crash(name_and_message(problem), traceback.format_exc()))
        sys.exit(1)


def name_and_message(problem: BaseException) -> str:
    """An exception as in the last line of a traceback."""
    return "".join(traceback.format_exception_only(problem)).strip()
