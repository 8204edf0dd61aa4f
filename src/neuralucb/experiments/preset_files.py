"""Presets in TOML files: what tuning ends in, and what every command takes where it takes a preset's name."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuralucb.algorithms import find_algorithm
from neuralucb.experiments.presets import DATA_SETTINGS, Bundle, Preset
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.files import write_text
from neuralucb.schedules import default_schedule, read_schedule
from neuralucb.settings import read_settings

__all__ = ["read_preset", "write_preset"]

KEYS = ("algorithm", "summary", "schedule", "settings")


def read_preset(path: Path | str) -> Preset:
    """Read a preset from a TOML file, which names an algorithm and has its settings in a table.

    Args:
        path: The file.

    Returns:
        The preset, named after the file.

    Raises:
        InputError: The file cannot be read, or has a key, an algorithm or a setting that is not known.

    Example:
        >>> preset = read_preset("mine.toml")  # doctest: +SKIP
    """
    file = Path(path)
    try:
        record = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"preset {file} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"preset {file} is not valid TOML: {problem}.") from None
    for key in record:
        if key not in KEYS:
            raise InputError(f"preset {file}: {key} is not known; known: {', '.join(KEYS)}.")
    algorithm, settings = record.get("algorithm"), record.get("settings", {})
    if not isinstance(algorithm, str) or not isinstance(settings, dict):
        raise InputError(f"preset {file}: algorithm must be a name and settings a table; `neuralucb tune` writes one.")
    schedules = [str(record.get("schedule", default_schedule(shared=shared))) for shared in (False, True)]
    try:
        recipe = find_algorithm(algorithm)
        read_schedule(schedules[0])
        known = {setting.name for setting in recipe.settings}
        unknown = sorted(set(settings) - known - DATA_SETTINGS)
        if unknown:
            raise InputError(
                f"{unknown[0]} = {settings[unknown[0]]!r} is not a setting of {algorithm}, which has: "
                f"{', '.join(sorted(known | DATA_SETTINGS))}."
            )
        read_settings(recipe.settings, {key: settings[key] for key in settings if key in known}, of=algorithm)
    except InputError as problem:
        raise InputError(f"preset {file}: {problem}") from None
    separate, shared = (Bundle(schedule, settings, algorithm) for schedule in schedules)
    return Preset(file.stem, str(record.get("summary", f"for {algorithm}")), separate, shared)


def write_preset(
    path: Path | str, *, algorithm: str, schedule: str | None, settings: Mapping[str, Any], summary: str = ""
) -> Path:
    """Write a preset that `read_preset` reads, completely or not at all; without a schedule it has the default one.

    Raises:
        InputError: The name does not end in .toml.
    """
    if Path(path).suffix != ".toml":
        raise InputError(f"path must end in .toml, got {str(path)!r}: presets are known by it.")
    lines = [f"algorithm = {json.dumps(algorithm)}"]
    lines += [f"summary = {json.dumps(summary, ensure_ascii=False)}"] * bool(summary)
    lines += [f"schedule = {json.dumps(schedule)}"] * (schedule is not None)
    lines += ["", "[settings]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return write_text(Path(path), "\n".join(lines) + "\n")
