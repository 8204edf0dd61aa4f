"""A table of named things, such as algorithms, to which modules of the user's may add."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import import_modules, installed, searched

__all__ = ["Registry"]

Thing = TypeVar("Thing")


class Registry(dict[str, Thing]):
    """Things by name. A name given twice is refused; `find` imports what the user named first.

    Args:
        kind: what they are, in a word, for messages.
        check: raises InputError for a thing of that name that could not work.
    """

    def __init__(self, kind: str, check: Callable[[str, Any], None]) -> None:
        super().__init__()
        self.kind: str = kind
        self.check: Callable[[str, Any], None] = check
        self.group: str = f"neuralucb.{kind}s"

    def __setitem__(self, name: str, thing: Thing) -> None:
        if name in self and self[name] is not thing:
            raise InputError(f"{self.kind} {name!r} is registered already; choose another name.")
        self.check(name, thing)
        super().__setitem__(name, thing)

    def find(self, name: str) -> Thing:
        """The thing of that name; an unknown name lists the known ones, and where they were looked for."""
        self.load()
        if name not in self:
            known = ", ".join(self)
            raise InputError(f"{self.kind} {name!r} is not known; known: {known} ({searched(self.group)}).")
        return self[name]

    def load(self) -> None:
        """Import the modules that the user named, and what is installed."""
        import_modules()
        for name, thing in installed(self.group):
            if not isinstance(thing, ModuleType):  # a module registers by being imported
                self[name] = thing
