"""Modules that add algorithms, problems and networks: named by `--import`, by NEURALUCB_IMPORT, or installed.

The names are kept in the environment, so that worker processes import the same modules.
"""

import importlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from neuralucb.runtime.errors import InputError

__all__ = ["VARIABLE", "add_modules", "check_modules", "folders", "import_modules", "imported", "installed", "searched"]

VARIABLE = "NEURALUCB_IMPORT"
"""Names of modules, with commas between; they are imported before the first lookup of a name."""

MACHINERY = ("<frozen importlib", __file__, os.path.dirname(importlib.__file__))
"""Files whose frames say nothing about why a module cannot be imported."""

_imported: dict[str, str] = {}
"""Modules that were imported, each with the folder it was found in."""
_installed: dict[str, list[str]] = {}
"""Entry points that were loaded, by group."""


def add_modules(names: Sequence[str]) -> None:
    """Import these modules now, here and in every process that is started from here."""
    check_modules("import", names)
    _import(names)
    known = _named()
    missing = [name for name in dict.fromkeys(names) if name not in known]
    if missing:
        os.environ[VARIABLE] = ",".join([*known, *missing])


def check_modules(argument: str, names: Any) -> None:
    """Raise InputError unless these are names of modules."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(f"{argument} must be a list of modules, got {names!r}; write [{names!r}].")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*(?<!\.py)", name):
            raise InputError(
                f"{argument} must name a module as Python's `import` does, such as my_module or package.module, "
                f"without .py and without a folder, got {name!r}."
            )


def import_modules() -> None:
    """Import what NEURALUCB_IMPORT names, once; a module in the current folder is found too."""
    names = [name for name in _named() if name not in _imported]
    check_modules(VARIABLE, names)
    _import(names)


def imported() -> list[str]:
    """The modules that were imported because the user named them."""
    return list(_imported)


def folders() -> list[str]:
    """Where the modules were found: a process elsewhere must look there too."""
    return list(dict.fromkeys(folder for folder in _imported.values() if folder))


def installed(group: str) -> list[tuple[str, Any]]:
    """Names and things that installed packages declare as entry points of a group; only the first time."""
    if group in _installed:
        return []
    from importlib.metadata import entry_points  # takes a while to import

    found, modules = [], _installed.setdefault(group, [])  # from now on: what is loaded may look up names itself
    for point in entry_points(group=group):
        try:
            found.append((point.name, point.load()))
        except (Exception, SystemExit) as problem:  # whatever the package raises
            del _installed[group]
            raise _failed(point.value, problem, f"entry point {point.name!r} of {group}, ") from None
        modules.append(point.module)
    return found


def searched(group: str) -> str:
    """Which modules were looked into, for an error about a name that none of them has."""
    modules = dict.fromkeys(["neuralucb", *_imported, *_installed.get(group, [])])
    return f"looked into {', '.join(modules)}; --import MODULE or {VARIABLE} adds others"


def _import(names: Sequence[str]) -> None:
    for name in names:
        if name in _imported:
            continue
        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # a console script does not look where it was started
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
                raise _failed(name, problem) from None
            raise InputError(
                f"module {name!r} was not found; put {name.replace('.', '/')}.py into the current folder "
                f"({os.getcwd()}), install it, or add its folder to PYTHONPATH."
            ) from None
        except (Exception, SystemExit) as problem:  # whatever the user's module raises
            raise _failed(name, problem) from None
        _imported[name] = _root(module, name)


def _named() -> list[str]:
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _root(module: Any, name: str) -> str:
    """The folder that must be on the path for `import name`; "" for a module that is no file."""
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    levels = name.count(".") + os.path.basename(file).startswith("__init__.")
    folder = os.path.dirname(os.path.abspath(file))
    for _ in range(levels):
        folder = os.path.dirname(folder)
    return folder


def _failed(name: str, problem: BaseException, where: str = "") -> InputError:
    """The module's traceback, without the frames of the import itself."""
    told = traceback.TracebackException.from_exception(problem)
    frames = [frame for frame in told.stack if not frame.filename.startswith(MACHINERY)]
    told.stack = traceback.StackSummary.from_list(frames)
    return InputError(f"{where}module {name!r} could not be imported:\n{''.join(told.format()).rstrip()}")
