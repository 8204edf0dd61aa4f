"""Modules that add algorithms, problems and networks: named by `--import`, by NEURALUCB_IMPORT, or installed.

The names are kept in the environment, so that worker processes import the same modules.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any

from neuralucb.runtime.errors import InputError

__all__ = ["VARIABLE", "add_modules", "import_modules", "installed", "searched"]

VARIABLE = "NEURALUCB_IMPORT"
"""Names of modules, with commas between; they are imported before the first lookup of a name."""

_imported: set[str] = set()
_installed: dict[str, list[str]] = {}


def add_modules(names: Sequence[str]) -> None:
    """Import these modules now, here and in every process that is started from here."""
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise InputError(f"import must be the name of a module, such as my_module, got {name!r}.")
    known = _named()
    os.environ[VARIABLE] = ",".join([*known, *(name for name in names if name not in known)])
    import_modules()


def import_modules() -> None:
    """Import what NEURALUCB_IMPORT names, once; a module in the current folder is found too."""
    for name in _named():
        if name in _imported:
            continue
        if "" not in sys.path and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # a console script does not look where it was started
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as problem:
            if problem.name != name.split(".")[0]:
                raise _failed(name) from None
            raise InputError(
                f"module {name!r} was not found; put {name.replace('.', '/')}.py into the current folder, install it, "
                "or add its folder to PYTHONPATH."
            ) from None
        except Exception:
            raise _failed(name) from None
        _imported.add(name)


def installed(group: str) -> Iterator[tuple[str, Any]]:
    """Names and things that installed packages declare as entry points of a group."""
    if group in _installed:
        return
    _installed[group] = []
    for point in entry_points(group=group):
        _installed[group].append(point.value)
        try:
            yield point.name, point.load()
        except Exception:
            raise _failed(point.value) from None


def searched(group: str) -> str:
    """Which modules were looked into, for an error about a name that none of them has."""
    modules = ["neuralucb", *sorted(_imported), *_installed.get(group, [])]
    return f"looked into: {', '.join(modules)}; others are added by --import MODULE or {VARIABLE}"


def _named() -> list[str]:
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _failed(name: str) -> InputError:
    return InputError(f"module {name!r} could not be imported:\n{traceback.format_exc().rstrip()}")
