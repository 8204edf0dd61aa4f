"""Files written completely or not at all: a file that has its name is complete, even after a kill."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["write_text", "write_whole"]


def write_whole(path: Path, write: Callable[[Path], Any]) -> Path:
    """Write through a temporary file in the same folder, make it durable, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        write(temporary)
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text file in UTF-8, completely or not at all."""
    return write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
