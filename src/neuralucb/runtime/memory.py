"""How much memory is free: what does not fit is refused, with the numbers, before anything is allocated."""

import os
import sys
from pathlib import Path

import jax

from neuralucb.runtime.errors import InputError

__all__ = ["available_bytes", "host_bytes", "require_memory"]


def require_memory(needed: int, *, what: str, cure: str, host: bool = False) -> None:
    """Raise InputError if `what` needs more bytes than are free: on the device, or with `host` in the machine."""
    have = host_bytes() if host else available_bytes()
    if needed > have:
        raise InputError(f"{what} needs {needed / 1e9:.1f} GB and {have / 1e9:.1f} GB are free; {cure}.")


def available_bytes() -> int:
    """Bytes that are free on the default device: those of a GPU, or those of the machine."""
    statistics = jax.devices()[0].memory_stats() if jax.default_backend() != "cpu" else None
    if statistics:
        return int(statistics["bytes_limit"] - statistics["bytes_in_use"])
    return host_bytes()


def host_bytes() -> int:
    """Bytes that are free in the machine itself, whatever the device: what it has, or the limit of its container.

    Where the system reports neither, as Windows does, nothing is refused: the number is as large as an array can be.
    """
    return min([sys.maxsize, *_in_machine(), *_available_in_proc(), *_limit_of_container()])


def _in_machine() -> list[int]:
    if not hasattr(os, "sysconf"):
        return []
    return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]


def _available_in_proc() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    except OSError:
        return []


def _limit_of_container() -> list[int]:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        return [int(limit)] if limit.isdigit() else []
    except OSError:
        return []
