"""Every algorithm on the paper's synthetic problems and three of its data sets, with the settings users get unasked.

python benchmarks/family.py play --out out/family --rounds 10000 --seeds 10 --processes 2
python benchmarks/family.py page --out out/family      # docs/results/family.md

Each run is a process of its own, so that its memory can be told; its result is a file as soon as it has ended, and
what is there already, with as many rounds and seeds, is not run again. `--algorithms` and `--problems` name some of
them, separated by commas.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template
from typing import Any

from neuralucb import Comparison, Result, run
from neuralucb.algorithms import ALGORITHMS, FAMILIES
from neuralucb.experiments.tables import title_of

PROBLEMS = ("h1", "h2", "h3", "magic", "shuttle", "covertype")
PAGE = Path(__file__).parent.parent / "docs" / "results" / "family.md"
HEAD = Path(__file__).parent / "family_page.md"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("play", "one", "page"))
    parser.add_argument("--out", type=Path, default=Path("out/family"))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=list(ALGORITHMS))
    parser.add_argument("--problems", type=lambda text: text.split(","), default=list(PROBLEMS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so many seconds")
    options = parser.parse_args()
    {"play": play_all, "one": play_one, "page": write_page}[options.do](options)


def play_all(options: argparse.Namespace) -> None:
    """Play what is missing, side by side, the cheapest algorithms first."""
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    tasks = [(problem, algorithm) for algorithm in options.algorithms for problem in options.problems]
    missing = [task for task in tasks if not _is_played(files(options.out, *task)[1], options)]
    missing.sort(key=lambda task: "steps" in {setting.name for setting in ALGORITHMS[task[1]].settings})

    def play(task: tuple[str, str]) -> None:
        if time.monotonic() - began > options.seconds:
            return
        problem, algorithm = task
        given = ["--out", options.out, "--rounds", options.rounds, "--seeds", options.seeds]
        command = [sys.executable, __file__, "one", "--algorithms", algorithm, "--problems", problem, *map(str, given)]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True)
        said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or ["failed"]
        print(f"{time.monotonic() - began:5.0f} s  {algorithm} on {problem}: {said[-1]}", flush=True)

    with ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(play, missing))


def play_one(options: argparse.Namespace) -> None:
    """One algorithm on one problem, all seeds."""
    (algorithm,), (problem,) = options.algorithms, options.problems
    result = run(algorithm, problem, rounds=options.rounds, seeds=options.seeds, preset="default")
    saved, facts = files(options.out, problem, algorithm)
    result.save(saved)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    about = {"rounds": options.rounds, "seeds": options.seeds}
    facts.write_text(json.dumps({**about, "seconds": result.seconds / options.seeds, "megabytes": megabytes}))
    print(f"{result.summary()}; {result.seconds:.0f} s, and {result.compile_seconds:.0f} s of compiling")


def write_page(options: argparse.Namespace) -> None:
    """Write docs/results/family.md."""
    results: dict[tuple[str, str], tuple[Result, dict[str, float]]] = {}
    for problem in options.problems:
        for algorithm in options.algorithms:
            saved, facts = files(options.out, problem, algorithm)
            if facts.exists():
                results[algorithm, problem] = Result.load(saved), json.loads(facts.read_text())
    sizes = {(result.rounds, len(result.seeds)) for result, _ in results.values()}
    if len(sizes) != 1:
        raise SystemExit(
            f"{options.out} must have runs of one length, got (rounds, seeds) {sorted(sizes)}; play again."
        )
    complete = [name for name in options.algorithms if all((name, problem) in results for problem in options.problems)]
    ranked = [name for name in complete if name != "oracle"]
    comparison = Comparison(tuple(results[name, problem][0] for name in ranked for problem in options.problems))
    shares = {each.algorithm: each.share for each in comparison.aggregates()}
    any_result = next(iter(results.values()))[0]
    PAGE.write_text(
        Template(HEAD.read_text()).substitute(
            plain=any_result.rounds,
            rounds=f"{any_result.rounds:_}".replace("_", " "),
            seeds=len(any_result.seeds),
            ranking=_ranking(comparison, shares),
            table=_table(options, results),
            costs=_costs(options, results),
        )
    )
    print(f"{PAGE} written; complete: {len(complete)} of {len(options.algorithms)}")


def _is_played(facts: Path, options: argparse.Namespace) -> bool:
    """Whether there is a result with as many rounds and seeds."""
    if not facts.exists():
        return False
    found = json.loads(facts.read_text())
    return (found.get("rounds"), found.get("seeds")) == (options.rounds, options.seeds)


def files(folder: Path, problem: str, algorithm: str) -> tuple[Path, Path]:
    """Where a result is, and what it took."""
    return folder / f"{problem}-{algorithm}.parquet", folder / f"{problem}-{algorithm}.json"


def _ranking(comparison: Comparison, shares: dict[str, Any]) -> str:
    best = next(iter(shares))
    chances = {each.algorithm: each for each in comparison.improvements(over=best)}
    rows = [["", "algorithm", "share of uniform's regret", f"chance to beat {title_of(best)} in a run"], ["---"] * 4]
    for place, (name, share) in enumerate(shares.items(), 1):
        chance = chances.get(name)
        told = "–" if chance is None else f"{chance.probability:.2f} [{chance.low:.2f}, {chance.high:.2f}]"
        rows.append([str(place), title_of(name), f"{share.mean:.3f} [{share.low:.3f}, {share.high:.3f}]", told])
    return _markdown(rows)


def _table(options: argparse.Namespace, results: dict[tuple[str, str], Any]) -> str:
    parts = []
    for family, title in FAMILIES.items():
        names = [name for name in options.algorithms if ALGORITHMS[name].family == family and name != "oracle"]
        rows = [["", *options.problems], ["---"] * (1 + len(options.problems))]
        rows += [[title_of(name), *(_cell(results.get((name, each))) for each in options.problems)] for name in names]
        if names:
            parts.append(f"### {title[0].upper()}{title[1:]}\n\n{_markdown(rows)}")
    return "\n\n".join(parts)


def _cell(found: tuple[Result, dict[str, float]] | None) -> str:
    if found is None:
        return "not run"
    result = found[0]
    summary, values = result.summary(), result.final_regret
    trouble = f", {result.diverged} diverged" if result.diverged else ""
    return f"{summary.mean:.0f} [{summary.low:.0f}, {summary.high:.0f}], worst {values.max():.0f}{trouble}"


def _costs(options: argparse.Namespace, results: dict[tuple[str, str], Any]) -> str:
    rows = [["seconds per run / MB", *options.problems], ["---"] * (1 + len(options.problems))]
    for name in options.algorithms:
        facts = [results.get((name, problem)) for problem in options.problems]
        told = ["–" if each is None else f"{each[1]['seconds']:.1f} / {each[1]['megabytes']:.0f}" for each in facts]
        rows.append([title_of(name), *told])
    return _markdown(rows)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
