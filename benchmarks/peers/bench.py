"""Ours and its peers on the same streams, each in its own process and environment, one after the other on one core.

    make bench            10 000 rounds, at most 20 minutes per system and stream
    make bench QUICK=1    2000 rounds, at most 40 seconds per system and stream: ten minutes in all

Writes a table of what was measured below --out, and with --page the page and figure in docs/results.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from arena import SYSTEMS, System
from page import write_page
from streams import LABELLED, draw_stream, write_stream

from neuralucb import InputError

__all__ = ["main"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STREAMS = ("h1", *LABELLED)


def main() -> None:
    """Draw the streams, play all systems, write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, help="T; 10000, with --quick 2000")
    parser.add_argument("--limit", type=float, help="seconds per system and stream; 1200, with --quick 40")
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=STREAMS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=tuple(SYSTEMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "peers")
    parser.add_argument("--page", action="store_true", help="write docs/results/peers.md and its figure")
    given = parser.parse_args()
    rounds = given.rounds or (2000 if given.quick else 10_000)
    limit = given.limit or (40.0 if given.quick else 1200.0)
    given.out.mkdir(parents=True, exist_ok=True)
    began, load, skipped, results = time.perf_counter(), [os.getloadavg()[0]], [], []
    for name in given.streams:
        try:
            stream = draw_stream(name, rounds=rounds, seed=given.seed)
        except InputError as problem:
            skipped.append(f"{name}: {problem}")
            continue
        path = given.out / f"{name}.npz"
        write_stream(stream, path)
        for label in given.systems:
            reason = _why_not(SYSTEMS[label], shared=stream.shared)
            result = given.out / f"{name}-{label.replace(' ', '-')}.npz"
            result.unlink(missing_ok=True)
            if reason is None:
                reason = _play(label, path, result, limit)
                load.append(os.getloadavg()[0])
            if reason is None:
                results.append(result)
            else:
                skipped.append(f"{label} on {name}: {reason}")
            print(f"{name}, {label}: {reason or 'played'}; {time.perf_counter() - began:.0f} s so far", flush=True)
    about: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": [min(load), max(load)],
        "rounds": rounds,
        "limit": limit,
        "seed": given.seed,
        "quick": given.quick,
        "seconds": time.perf_counter() - began,
        "skipped": skipped,
        "streams": [str(given.out / f"{name}.npz") for name in given.streams if (given.out / f"{name}.npz").exists()],
        "results": [str(result) for result in results],
    }
    (given.out / "about.json").write_text(json.dumps(about, indent=1))
    write_page(about, (ROOT / "docs") if given.page else given.out)


def _why_not(system: System, *, shared: bool) -> str | None:
    """Why a system cannot play; None if it can."""
    if system.environment and not (ROOT / ".bench" / system.environment / "installed").exists():
        return "not installed"
    return "one context per arm is not what it is made for" if system.only_shared and not shared else None


def _play(label: str, stream: Path, result: Path, limit: float) -> str | None:
    """Play in a process of its own, on the last core, with one thread; why it failed, or None."""
    environment = SYSTEMS[label].environment
    python = str(ROOT / ".bench" / environment / "bin" / "python") if environment else sys.executable
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    core = max(os.sched_getaffinity(0))
    done = subprocess.run(
        ["taskset", "-c", str(core), python, HERE / "arena.py", label, stream, result, "--limit", str(limit)],
        env={**os.environ, **one, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"},
        capture_output=True,
        text=True,
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
