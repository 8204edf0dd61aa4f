"""Ours and its peers on the same streams, each system in its own process and environment, with one thread on one core.

    make bench                       what was played already is kept: break it off, and the next call goes on
    make bench QUICK=1               five minutes, every system
    make bench BENCH="--streams h1 --again"

Two systems play at a time where there are two cores, each pinned to its own. Results are kept below --out, one file per
stream and system: a second call plays only what is missing, or met another stream, version, code or limit. Writes a
page below --out, and with --page the one in docs/results.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import numpy as np
from arena import SYSTEMS, System
from page import write_page
from streams import STREAMS, Stream, draw_stream, read_stream, write_stream

import neuralucb
from neuralucb import InputError

__all__ = ["main"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class Size(NamedTuple):
    """How much is played."""

    rounds: dict[str, int]
    """by stream"""
    limit: float
    """seconds per system and stream"""


FULL = Size({**dict.fromkeys(STREAMS, 2000), "h1": 10_000}, 12.0)
QUICK = Size(dict.fromkeys(STREAMS, 300), 5.0)
PATIENT = {(stream, "plain-torch"): 3600.0 for stream in ("h1", "covertype", "mnist")}
"""Longer limits, where the whole run is what is compared: long enough for its end."""


class Task(NamedTuple):
    """One system on one stream."""

    label: str
    stream: Path
    result: Path
    limit: float


def main() -> None:
    """Draw the streams, play what is missing, write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, help="T of every stream")
    parser.add_argument("--limit", type=float, help="seconds per system and stream; 12, with --quick 5")
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=STREAMS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=tuple(SYSTEMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="systems at a time")
    parser.add_argument("--stop-after", type=float, default=np.inf, help="seconds; begin nothing after that")
    parser.add_argument("--again", action="store_true", help="play again what was played already")
    parser.add_argument("--out", type=Path, help="out/peers, with --quick out/peers-quick")
    parser.add_argument("--page", action="store_true", help="write docs/results/peers.md and its figure")
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    out = given.out or ROOT / "out" / ("peers-quick" if given.quick else "peers")
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    began, tasks, skipped = time.perf_counter(), [], []
    for name in given.streams:
        path = out / f"{name}.npz"
        rounds = given.rounds or size.rounds[name]
        try:
            stream = _stream(name, rounds, given.seed, path)
        except InputError as problem:
            skipped.append(f"{name}: {problem}")
            continue
        for label in given.systems:
            reason = _why_not(SYSTEMS[label], shared=stream.shared)
            if reason is not None:
                skipped.append(f"{label} on {name}: {reason}")
                continue
            limit = given.limit or (size.limit if given.quick else PATIENT.get((name, label), size.limit))
            task = Task(label, path, out / f"{name}-{label.replace(' ', '-')}.npz", limit)
            if given.again or not _is_played(task, stream):
                task.result.unlink(missing_ok=True)
                task.result.with_suffix(".txt").unlink(missing_ok=True)
                tasks.append(task)
    print(f"{len(tasks)} to play; streams ready after {time.perf_counter() - began:.0f} s", flush=True)
    _play_all(tasks, given.jobs, began, given.stop_after)
    about: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "jobs": given.jobs,
        "python": platform.python_version(),
        "seed": given.seed,
        "quick": given.quick,
        "seconds": time.perf_counter() - began,
        "skipped": skipped + [f"{path.stem}: {path.read_text()}" for path in sorted(out.glob("*.txt"))],
        "streams": [str(out / f"{name}.npz") for name in STREAMS if (out / f"{name}.npz").exists()],
        "results": [
            str(path)
            for name in STREAMS
            for label in SYSTEMS
            if (path := out / f"{name}-{label.replace(' ', '-')}.npz").exists()
        ],
    }
    (out / "about.json").write_text(json.dumps(about, indent=1))
    if about["results"]:
        write_page(about, (ROOT / "docs") if given.page else out)
    print(f"{time.perf_counter() - began:.0f} s in all")


def _stream(name: str, rounds: int, seed: int, path: Path) -> Stream:
    """The stream of that file, drawn if it is missing or another one."""
    if path.exists():
        stream = read_stream(path)
        if stream.seed == seed and stream.rounds in (rounds, min(rounds, 1500)):  # a world has at most 1500 rounds
            return stream
    stream = draw_stream(name, rounds=rounds, seed=seed)
    write_stream(stream, path)
    return stream


def _why_not(system: System, *, shared: bool) -> str | None:
    """Why a system cannot play; None if it can."""
    folder = ROOT / ".bench" / system.environment
    if system.environment and not (folder / "installed").exists():
        log = folder.with_suffix(".log")
        last = [line for line in log.read_text().splitlines() if "rror" in line][-1:] if log.exists() else []
        return "could not be installed" + "".join(f": {line.strip()}" for line in last)
    return "it is made for one context that all arms share" if system.only_shared and not shared else None


def _is_played(task: Task, stream: Stream) -> bool:
    """Whether the same version played the same stream with the same limit, and by the same code."""
    if not task.result.exists():
        return False
    with np.load(task.result) as file:
        facts = json.loads(str(file["facts"]))
    system = SYSTEMS[task.label]
    if system.environment:
        pinned = (HERE / "versions.txt").read_text().partition(f"\n{system.environment}: ")[2].splitlines()[0]
        same = f"{system.package}=={facts['version'].partition('+')[0]}" in pinned
    else:
        same = facts["version"] == importlib.metadata.version(system.package)
    wanted = stream.digest, task.limit, _code(system)
    return same and (facts["digest"], facts["limit"], facts.get("code")) == wanted


def _code(system: System) -> str:
    """A digest of the files that decide how a system plays; of the library all, of a peer those of this folder."""
    files = [HERE / "arena.py", HERE / f"{system.module}.py"]
    if not system.environment:
        files += sorted(Path(neuralucb.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _play_all(tasks: list[Task], jobs: int, began: float, stop_after: float) -> None:
    cores: Queue[int] = Queue()
    for core in sorted(os.sched_getaffinity(0))[-jobs:]:
        cores.put(core)

    def work(task: Task) -> None:
        if time.perf_counter() - began > stop_after:
            print(f"{task.stream.stem}, {task.label}: left for the next call")
            return
        core = cores.get()
        try:
            reason = _play(task, core)
        finally:
            cores.put(core)
        if reason is not None:
            task.result.with_suffix(".txt").write_text(reason)
        so_far = time.perf_counter() - began
        print(f"{task.stream.stem}, {task.label}: {reason or 'played'}; {so_far:.0f} s so far", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, tasks))


def _play(task: Task, core: int) -> str | None:
    """Play in a process of its own, on that core, with one thread; why it failed, or None."""
    system = SYSTEMS[task.label]
    environment = system.environment
    python = str(ROOT / ".bench" / environment / "bin" / "python") if environment else sys.executable
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    given = ["--limit", str(task.limit), "--code", _code(system)]
    command = [python, HERE / "arena.py", task.label, task.stream, task.result, *given]
    done = subprocess.run(
        ["taskset", "-c", str(core), *command],
        env={**os.environ, **one, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"},
        cwd=task.result.parent,
        capture_output=True,
        text=True,
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
