"""The first function of a child process: light to import, so that it can report an import that fails.

A child does not run the script of its parent, as multiprocessing would have it do: a script without
`if __name__ == "__main__":` would begin its work anew there. It does so only when it meets a name that is not known.
"""

import io
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from neuralucb.runtime.errors import InputError

__all__ = [
    "Crash",
    "Script",
    "end_script_here",
    "enter",
    "main_script",
    "name_and_message",
    "run_script",
    "without_main_module",
]

NAME = "__mp_main__"
"""What a script is called in a child, as in multiprocessing: `if __name__ == "__main__":` is not entered."""


class Crash(NamedTuple):
    """Why a child process ended: an exception that was not caught."""

    reason: str
    traceback: str


class Script(NamedTuple):
    """The script that the parent runs, in which it may have registered algorithms."""

    path: str
    package: str | None
    """for `python -m package.module`"""


class _Ended(BaseException):
    """A script has reached the call for which this process was started; nothing after it is wanted here."""


_script: Script | None = None
_running = False
_starting = threading.Lock()


def enter(pipe: Connection, script: Script | None, module: str, function: str, *arguments: Any) -> None:
    """In the child: import the function and call it with the pipe and the arguments; send a `Crash` if that fails."""
    global _script
    _script = script
    try:
        getattr(import_module(module), function)(pipe, *arguments)
    except Exception as problem:
        with suppress(OSError):  # the parent has ended too
            pipe.send(Crash(name_and_message(problem), traceback.format_exc()))
        sys.exit(1)


def main_script() -> Script | None:
    """In the parent: the script that it runs; None in a notebook, at a prompt, and for the command line."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or Path(path).name == "__main__.py" or not Path(path).is_file():
        return None
    return Script(str(Path(path).absolute()), getattr(main, "__package__", None))


@contextmanager
def without_main_module() -> Iterator[None]:
    """In the parent: a process that is started in here by multiprocessing does not import the main module."""
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def run_script() -> bool:
    """In the child: run the parent's script up to where it starts children, for the names that it registers; once.

    Returns:
        Whether there was a script to run; False in a parent, and the second time.

    Raises:
        InputError: The script failed here.
    """
    global _script, _running
    script, _script = _script, None
    if script is None:
        return False
    module = ModuleType(NAME)
    module.__file__, module.__package__ = script.path, script.package
    sys.modules[NAME] = module
    _running = True
    try:
        code = compile(Path(script.path).read_bytes(), script.path, "exec")
        with redirect_stdout(io.StringIO()):  # the parent has printed it already
            exec(code, module.__dict__)
    except _Ended:
        pass
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{script.path} was run in a worker process, for the names that it registers, and failed there: "
            f"{name_and_message(problem)}"
        ) from problem
    finally:
        _running = False
    return True


def end_script_here() -> None:
    """Called where a script starts children: if this is a child that runs the script, it ends here."""
    if _running:
        raise _Ended


def name_and_message(problem: BaseException) -> str:
    """An exception as in the last line of a traceback."""
    return "".join(traceback.format_exception_only(problem)).strip()
