"""Settings as data: a name in words, the paper's symbol, a default, a grid, and how to read a value safely."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from neuralucb.runtime.errors import InputError, meant
from neuralucb.runtime.records import brief

__all__ = [
    "Setting",
    "check_deviation",
    "check_integer",
    "check_settings",
    "choice",
    "flag",
    "integer",
    "number",
    "read_integer",
    "read_settings",
    "read_value",
    "steps",
]

SMALLEST, LARGEST = 1e-30, 1e30
"""What float32 holds, with room for a square root or a product; beyond it a number would become 0 or infinity."""

LARGEST_INTEGER = 2**31 - 1


@brief
class Setting(NamedTuple):
    """One hyperparameter. A traced one is a number that a compiled run takes as input; others shape the program.

    Example:
        >>> exploration = number("exploration", "γ", 0.1, "scale of the width", least=0)
        >>> exploration.default, exploration.read("0.3")
        (0.1, 0.3)
    """

    name: str
    symbol: str
    default: Any
    meaning: str
    allowed: str
    """What values it takes, in words."""
    read: Callable[[Any], Any]
    """A value, or the text of one, checked; raises InputError without naming the setting."""
    traced: bool
    grid: tuple[Any, ...] = ()
    """The values the paper searched; ours where it gives none."""


def number(
    name: str,
    symbol: str,
    default: float,
    meaning: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    grid: Sequence[float] = (),
) -> Setting:
    """A real number above `above`, at least `least` and at most `most`; traced, so that a grid compiles once."""
    bounds = (
        [f"> {above:g}"] * (above > -math.inf)
        + [f"≥ {least:g}"] * (least > -math.inf)
        + [f"≤ {most:g}"] * (most < math.inf)
    )
    allowed = " ".join(["a number", " and ".join(bounds)]).strip()

    def read(value: Any) -> float:
        try:
            real = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"must be {allowed}") from None
        if str(value) in ("True", "False") or not math.isfinite(real) or real <= above or real < least or real > most:
            raise InputError(f"must be {allowed}")
        if real != 0 and not SMALLEST <= abs(real) <= LARGEST:
            raise InputError(f"must be {allowed}, and between {SMALLEST:g} and {LARGEST:g} in size")
        return real

    return Setting(name, symbol, default, meaning, allowed, read, True, tuple(grid))


def integer(name: str, symbol: str, default: int, meaning: str, *, least: int = 1) -> Setting:
    """A whole number, at least `least`."""
    allowed = f"a whole number ≥ {least}"
    return Setting(name, symbol, default, meaning, allowed, lambda value: read_integer(value, least, allowed), False)


def steps(default: int | str) -> Setting:
    """J: a whole number, or "t" for as many steps as rounds observed."""
    allowed = 'a whole number ≥ 1, or "t"'

    def read(value: Any) -> int | str:
        return "t" if value == "t" else read_integer(value, 1, allowed)

    return Setting("steps", "J", default, "training steps per call", allowed, read, False)


def choice(name: str, symbol: str, default: str, meaning: str, *, options: Sequence[str]) -> Setting:
    """One of a few words."""
    allowed = "one of " + ", ".join(options)

    def read(value: Any) -> str:
        if value not in options:
            raise InputError(f"must be {allowed}")
        return str(value)

    return Setting(name, symbol, default, meaning, allowed, read, False)


def flag(name: str, symbol: str, default: bool, meaning: str) -> Setting:
    """True or false."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

    def read(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() not in words:
            raise InputError("must be true or false")
        return words[str(value).lower()]

    return Setting(name, symbol, default, meaning, "true or false", read, False)


def read_settings(settings: Sequence[Setting], given: Mapping[str, Any], *, of: str) -> dict[str, Any]:
    """Every setting with its value: the given one, checked, or the default."""
    known = {setting.name: setting for setting in settings}
    for name, value in given.items():
        if name not in known:
            raise InputError(
                f"{name} (given as {value!r}) is not a setting of {of}; it has: {', '.join(known) or 'none'}."
                + meant(name, known)
            )
    return {
        name: read_value(setting, given[name]) if name in given else setting.default for name, setting in known.items()
    }


def check_settings(what: str, settings: Any, *, reserved: Sequence[str] = ()) -> None:
    """Refuse, for an algorithm or a problem that is registered, settings that could not be set."""
    if not isinstance(settings, tuple) or not all(isinstance(setting, Setting) for setting in settings):
        raise InputError(
            f"settings of {what} must be made by number, integer, choice or flag of neuralucb.settings, got "
            f"{settings!r:.80}."
        )
    seen: set[str] = set()
    for setting in settings:
        if not setting.name.isidentifier() or setting.name in reserved:
            raise InputError(
                f"setting {setting.name!r} of {what} must have another name: one word, and not one of "
                f"{', '.join(reserved)}."
            )
        if setting.name in seen:
            raise InputError(f"setting {setting.name!r} of {what} is given twice; keep one.")
        seen.add(setting.name)
        read_value(setting, setting.default)


def read_value(setting: Setting, value: Any) -> Any:
    """One checked value; the error names the setting, its value and what is allowed."""
    try:
        return setting.read(value)
    except ValueError as problem:
        symbol = f" ({setting.symbol})" if setting.symbol else ""
        raise InputError(f"{setting.name}{symbol} {problem}, got {value!r}.") from None


def read_integer(value: Any, least: int, allowed: str) -> int:
    """A whole number from a value or its text; raises InputError without naming what it is for."""
    try:
        parsed = int(str(value))
    except ValueError:
        raise InputError(f"must be {allowed}") from None
    if parsed < least:
        raise InputError(f"must be {allowed}")
    if parsed > LARGEST_INTEGER:
        raise InputError(f"must be {allowed} and at most {LARGEST_INTEGER}")
    return parsed


def check_integer(name: str, value: Any, least: int) -> int:
    """An argument that is a whole number of at least `least`; the error names it, and its value."""
    try:
        return read_integer(value, least, f"a whole number of at least {least}")
    except ValueError as problem:
        raise InputError(f"{name} {problem}, got {value!r}.") from None


def check_deviation(name: str, value: Any) -> float:
    """An argument that is a standard deviation: a finite number, at least 0."""
    wrong = isinstance(value, bool | str) or not hasattr(value, "__float__")
    if wrong or not 0 <= float(value) <= LARGEST:
        raise InputError(f"{name} must be a standard deviation, at least 0 and finite, got {value!r}.")
    return float(value)
