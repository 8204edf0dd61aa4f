"""What several commands take: settings as NAME=VALUE, and a folder to write to."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["prepare_folder", "read_set"]


def read_set(items: Sequence[str] | None) -> dict[str, str]:
    """The settings given with --set, by name."""
    given = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"--set must be NAME=VALUE, got {item!r}; for example --set step_size=0.1.")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def prepare_folder(folder: Path) -> None:
    """Fail before computing, not after, if nothing can be written."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise ValueError(f"--out {folder} cannot be written ({problem.strerror}); name another folder.") from None
