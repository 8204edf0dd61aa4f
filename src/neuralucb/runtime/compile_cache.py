"""Compiled programs, kept between commands."""

import os
from contextlib import suppress
from pathlib import Path

import jax

__all__ = ["forget_oldest", "keep_compiled"]

LIMIT_BYTES = 2**30
"""How large the folder may grow; `compare --algorithms all` on one problem takes about a twentieth."""

LEAST_SECONDS = 0.1
"""Programs that compile faster are not kept."""


def keep_compiled() -> None:
    """Keep compiled programs in the user's cache folder; only for processes that we configure, such as commands.

    Nothing is changed where JAX was told of a folder already. JAX_ENABLE_COMPILATION_CACHE=false turns it off.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuralucb" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # only slower without a cache
    if os.access(folder, os.W_OK):
        forget_oldest(folder, LIMIT_BYTES)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)


def forget_oldest(folder: Path, limit: int) -> None:
    """Delete the files that were used longest ago, if there are more bytes than the limit, until half of it is left."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process may forget the same file
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat()
                    found.append((max(status.st_atime, status.st_mtime), status.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit // 2:
            return
        with suppress(OSError):
            os.unlink(path)
            total -= size
