"""Regret in worlds that nobody tuned for, as a share of uniform's: the library against LinUCB and Vowpal Wabbit.

python benchmarks/worlds.py --out out                                    # uniform, LinUCB, Vowpal Wabbit; all worlds
python benchmarks/worlds.py --out out --split open --players default "wide=neural-ucb:width=300,steps=100"
python benchmarks/worlds.py --out out --worlds tree,xor --seeds 10 --processes 2

The worlds are in worlds_suite.py, and how players are written in worlds_players.py. Each run is one thread; its result
is a line of OUT/worlds.jsonl as soon as it has ended, and what is there already is not run again: give a player a new
label when its code has changed. Then prints the table, and writes OUT/worlds.md and OUT/worlds.png.
"""

import argparse
import json
import logging
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from worlds_players import PEERS, make_player, name_of
from worlds_report import write_report
from worlds_suite import WORLDS, make_world, rounds_of, split_of

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
"""The environment of a worker, where the caller's does not say otherwise."""
RUNS_PER_POOL = 120
"""After which workers are replaced, since compiled programs are never freed. `max_tasks_per_child` would do that, but
Python 3.11 waits for ever when all workers reach it at once."""


class Task(NamedTuple):
    """One run."""

    world: str
    seed: int
    rounds: int | None
    player: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("open", "held-out", "all"), default="all")
    parser.add_argument("--worlds", help="names, separated by commas; all of the split if not set")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N - 1")
    parser.add_argument("--rounds", type=int, help="at most so many; by default 1500, and 400 with 2000 arms")
    parser.add_argument("--players", "--player", nargs="+", action="extend", default=None)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()

    worlds = [name for name in WORLDS if options.split in ("all", split_of(name))]
    if options.worlds is not None:
        unknown = set(options.worlds.split(",")) - set(WORLDS)
        if unknown:
            parser.error(f"unknown worlds {', '.join(sorted(unknown))}; known are {', '.join(WORLDS)}")
        worlds = [name for name in worlds if name in options.worlds.split(",")]
    players = options.players or ["uniform", *PEERS]
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / "worlds.jsonl"
    wanted = [
        Task(world, seed, options.rounds, player)
        for world in worlds
        for player in players
        for seed in range(options.seeds)
    ]
    play_all(wanted, lines, options.processes)
    records = [
        record
        for record in read(lines).values()
        if record["world"] in worlds
        and record["seed"] < options.seeds
        and record["rounds"] == rounds_of(record["world"], options.rounds)
        and (record["player"] in ("uniform", *PEERS) or record["player"] in map(name_of, players))
    ]
    print(write_report(records, options.out))


def play_all(wanted: list[Task], lines: Path, processes: int) -> None:
    """Play what is not in the file yet, and append each result to it."""
    done = {key for key, record in read(lines).items() if record["error"] is None}
    tasks = [task for task in wanted if _key(task) not in done]
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    spawn = multiprocessing.get_context("spawn")  # a fork would share JAX's threads
    for first in range(0, len(tasks), RUNS_PER_POOL):
        with ProcessPoolExecutor(processes, mp_context=spawn, initializer=_silence_lessons) as pool:
            futures = [pool.submit(play, task) for task in tasks[first : first + RUNS_PER_POOL]]
            for count, future in enumerate(as_completed(futures), first + 1):
                record = future.result()
                with lines.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(f"[{count}/{len(tasks)}] {_line(record)}", flush=True)


def play(task: Task) -> dict[str, Any]:
    """One player in one world: its regret, and uniform's expected regret in the same rounds."""
    world = make_world(task.world, task.seed, task.rounds)
    regret = np.zeros(world.rounds)
    uniform = np.zeros(world.rounds)
    pending: dict[int, list[tuple[Any, float]]] = {}
    error, troubles, started = None, {}, time.perf_counter()
    try:
        player = make_player(task.player, world.dim, task.seed)
        for t in range(world.rounds):
            for ticket, reward in pending.pop(t, ()):
                player.observe(ticket, reward)
            drawn = world.draw(t)
            arm, ticket = player.select(drawn.contexts, drawn.available)
            regrets = drawn.regrets()
            regret[t], uniform[t] = regrets[arm], np.nanmean(regrets)
            pending.setdefault(t + 1 + drawn.delay, []).append((ticket, float(drawn.rewards[arm])))
        troubles = player.troubles()
    except Exception as problem:  # one run that fails is a result of its own; the others go on
        error = f"{type(problem).__name__}: {problem}"[:400]
    quarters = np.linspace(0, world.rounds, 5).astype(int)[1:] - 1
    return {
        "world": task.world,
        "kind": world.kind,
        "split": world.split,
        "dim": world.dim,
        "arms": world.arms,
        "seed": task.seed,
        "rounds": world.rounds,
        "player": name_of(task.player),
        "settings": task.player,
        "regret": float(regret.sum()),
        "uniform": float(uniform.sum()),
        "share": None if error else float(regret.sum() / uniform.sum()),
        "regret_by_quarter": np.cumsum(regret)[quarters].tolist(),
        "seconds": round(time.perf_counter() - started, 2),
        "troubles": troubles,
        "error": error,
    }


def read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Records by world, seed, rounds and player; the last one of each. A line that was cut off is left out."""
    records = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record["world"], record["seed"], record["rounds"], record["player"]] = record
    return records


def _key(task: Task) -> tuple[Any, ...]:
    return task.world, task.seed, rounds_of(task.world, task.rounds), name_of(task.player)


def _silence_lessons() -> None:
    """Failed lessons are counted, and the progress is easier to read without their warnings."""
    logging.getLogger("neuralucb").setLevel(logging.CRITICAL)


def _line(record: dict[str, Any]) -> str:
    outcome = record["error"] or f"{record['share']:.3f} of uniform's regret"
    diverged = record["troubles"].get("diverged")
    trouble = f", {diverged} lessons failed" if diverged else ""
    return f"{record['world']} {record['player']} seed {record['seed']}: {outcome}{trouble}, {record['seconds']:.1f} s"


if __name__ == "__main__":
    main()
