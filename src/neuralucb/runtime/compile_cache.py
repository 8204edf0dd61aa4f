"""Compiled programs, kept between commands."""

import os
from pathlib import Path

import jax

__all__ = ["keep_compiled"]


def keep_compiled() -> None:
    """Keep compiled programs in the user's cache folder; only for processes that we configure, such as commands."""
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neuralucb" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # only slower without a cache
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
