"""A table of named things, such as algorithms, to which a user's modules may add."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from neuralucb.runtime.errors import InputError, meant
from neuralucb.runtime.extensions import import_modules, installed, searched

__all__ = ["Registry", "check_call", "first_line"]

Thing = TypeVar("Thing")


class Registry(dict[str, Thing]):
    """Things by name. A name given twice is refused; `find` imports what the user named first.

    The same function of the same file may register again, as a cell of a notebook does that is run a second time.

    Args:
        kind: What they are, in a word, for messages.
        record: Their type.
        check: Raises InputError for a thing of that name that could not work.
        function: The function that makes what the thing stands for.
    """

    def __init__(
        self,
        kind: str,
        record: type[Thing],
        check: Callable[[str, Thing], None],
        function: Callable[[Thing], Callable[..., Any]],
    ) -> None:
        super().__init__()
        self.kind: str = kind
        self.record: type[Thing] = record
        self.check: Callable[[str, Thing], None] = check
        self.function: Callable[[Thing], Callable[..., Any]] = function
        self.group: str = f"neuralucb.{kind}s"

    def __setitem__(self, name: str, thing: Thing) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[^\W_][\w.+-]*", name) or name == "all":
            raise InputError(
                f"{self.kind} {name!r} cannot be registered: a name is letters, digits and - . + _, without spaces, "
                "and not all."
            )
        if not isinstance(thing, self.record):
            raise InputError(
                f"{self.kind} {name!r} must be registered as {self.record.__name__}, got "
                f"{type(thing).__name__}; register_{self.kind}({name!r}, …)(function) makes one."
            )
        if name in self and self[name] is not thing and not self._is_again(self[name], thing):
            where = _bare(self.function(self[name])).__module__
            raise InputError(f"{self.kind} {name!r} is registered already, by {where}; choose another name.")
        self.check(name, thing)
        super().__setitem__(name, thing)

    def find(self, name: str) -> Thing:
        """The thing of that name; an unknown name lists the known ones, and where they were looked for."""
        self.load()
        if not isinstance(name, str) or name not in self:
            known = ", ".join(self)
            raise InputError(
                f"{self.kind} {name!r} is not known; known: {known} ({searched(self.group)}).{meant(name, self)}"
            )
        return self[name]

    def load(self) -> None:
        """Import the modules that the user named, and what is installed."""
        import_modules()
        for name, thing in installed(self.group):
            # a module, and what a decorator of ours has seen, registered by being imported
            if isinstance(thing, self.record) or (name not in self and not isinstance(thing, ModuleType)):
                self[name] = thing

    def _is_again(self, old: Thing, new: Thing) -> bool:
        """Whether both come from one function in one place, executed twice."""
        before, now = (_bare(self.function(each)) for each in (old, new))
        if before is now:
            return True
        named = "<" not in getattr(now, "__name__", "<")
        same_name = getattr(before, "__qualname__", "") == getattr(now, "__qualname__", None)
        return named and same_name and (before.__module__ == now.__module__ or _file(before) == _file(now) != "")


def check_call(
    what: str, function: Any, wanted: str, positional: Sequence[str] = (), keywords: Iterable[str] = ()
) -> None:
    """Raise InputError unless a function can be called with these arguments.

    Args:
        what: Which function, for the message.
        function: It.
        wanted: Its signature in words, such as "(task, settings)".
        positional: Names of the positional arguments, for the message alone.
        keywords: Names of the keyword arguments.
    """
    if not callable(function):
        raise InputError(f"{what} must be a function {wanted}, got {function!r}.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError as problem:
        name = getattr(function, "__name__", "it")
        raise InputError(f"{what} must be a function {wanted}, got {name}{signature}: {problem}.") from None


def first_line(function: Callable[..., Any]) -> str:
    """The first line of a function's docstring, without its full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].strip().removesuffix(".")


def _bare(function: Any) -> Any:
    """The function itself, without wrappers and `partial`."""
    function = inspect.unwrap(function)
    return _bare(function.func) if isinstance(function, partial) else function


def _file(function: Any) -> str:
    return str(getattr(getattr(function, "__code__", None), "co_filename", ""))
