"""The page of the peers' benchmark: tables with ratios to ours, and regret against seconds. Reads results only."""

import json
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from arena import SYSTEMS
from streams import Stream, read_stream

__all__ = ["Played", "read_results", "write_page"]

OURS = ("neural-ucb", "neural-mix", "neural-mix online")
INSTANTS = (3.0, 30.0)
"""Seconds at which systems are compared."""

HEAD = Path(__file__).parent / "page.md"
NOTES = Path(__file__).parent / "notes.md"


class Played(NamedTuple):
    """One system's run on one stream."""

    facts: dict[str, Any]
    seconds: np.ndarray
    """[n] when each round ended"""
    regret: np.ndarray
    """[n] cumulative"""

    @property
    def rounds(self) -> int:
        """How many rounds it played."""
        return len(self.seconds)

    @property
    def playing(self) -> float:
        """Seconds without compiling."""
        return float(self.seconds[-1]) - self.facts["compile_seconds"]


def read_results(about: dict[str, Any]) -> dict[str, dict[str, Played]]:
    """Runs by stream and system.

    Raises:
        ValueError: If a system met another stream than the one on file.
    """
    found: dict[str, dict[str, Played]] = {}
    streams: dict[str, Stream] = {stream.name: stream for stream in map(read_stream, map(Path, about["streams"]))}
    for path in about["results"]:
        with np.load(path) as file:
            facts, arms, seconds = json.loads(str(file["facts"])), file["arms"], file["seconds"]
        stream = streams[facts["stream"]]
        if facts["digest"] != stream.digest:
            raise ValueError(f"{facts['system']} met another stream than {stream.name}; run the benchmark again.")
        regret = np.cumsum(stream.regret[np.arange(len(arms)), arms], dtype=np.float64)
        found.setdefault(stream.name, {})[facts["system"]] = Played(facts, seconds, regret)
    return found


def write_page(about: dict[str, Any], folder: Path) -> None:
    """Write results/peers.md and figures/peers.png below a folder."""
    found = read_results(about)
    for name in ("results", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [_head(about)]
    for stream, runs in found.items():
        parts.append(f"## {stream}\n\n{_table(runs)}")
    if about["skipped"]:
        parts.append("## Not played\n\n" + "\n".join(f"- {line}" for line in about["skipped"]))
    if NOTES.exists():
        parts.append(NOTES.read_text().strip())
    (folder / "results" / "peers.md").write_text("\n\n".join(parts) + "\n")
    _draw(found, folder / "figures" / "peers.png")
    print(f"{folder / 'results' / 'peers.md'} written.")


def _head(about: dict[str, Any]) -> str:
    low, high = about["load"]
    return Template(HEAD.read_text().rstrip()).substitute(
        about,
        command="make bench QUICK=1" if about["quick"] else "make bench",
        limit=f"{about['limit']:.0f}",
        seconds=f"{about['seconds']:.0f}",
        low=f"{low:.1f}",
        high=f"{high:.1f}",
        systems="\n".join(f"| {name} | {each.package} | {each.meaning} |" for name, each in SYSTEMS.items()),
    )


def _table(runs: dict[str, Played]) -> str:
    common, longest = (pick(run.rounds for run in runs.values()) for pick in (min, max))
    horizons = sorted({common, longest})
    titles = [
        "system", "version", "rounds per second", "whole run", "compiling", "times ours (ucb / mix)", "peak memory",
        *(f"regret at {n}" for n in horizons), *(f"at {instant:.0f} s" for instant in INSTANTS),
    ]  # fmt: skip
    rows = [titles, ["---"] * len(titles)]
    for name, run in runs.items():
        ratios = [_ratio(run, runs.get(ours)) for ours in OURS[:2]]
        stopped = "" if run.rounds == longest else f", stopped after {run.rounds} rounds"
        rows.append([
            f"**{name}**" if name in OURS else name,
            run.facts["version"],
            f"{run.rounds / run.playing:,.0f}".replace(",", " "),
            f"{run.seconds[-1]:.1f} s{stopped}",
            f"{run.facts['compile_seconds']:.1f} s" if run.facts["compile_seconds"] else "–",
            " / ".join(ratios),
            f"{run.facts['memory_mb']:.0f} MB",
            *(f"{run.regret[n - 1]:.0f}" if run.rounds >= n else "not reached" for n in horizons),
            *(_at(run, instant) for instant in INSTANTS),
        ])  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _ratio(run: Played, ours: Played | None) -> str:
    return "–" if ours is None else f"{(run.playing / run.rounds) / (ours.playing / ours.rounds):.2g}"


def _at(run: Played, instant: float) -> str:
    played = int(np.searchsorted(run.seconds, instant, side="right"))
    if played == 0:
        return "nothing yet"
    return f"{run.regret[played - 1] / played:.3f} ({'all' if played == run.rounds else played})"


def _draw(found: dict[str, dict[str, Played]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4 * len(found), 3.8), squeeze=False, layout="constrained")
    colours = dict(zip(SYSTEMS, plt.get_cmap("tab10").colors, strict=False))
    for axis, (stream, runs) in zip(axes[0], found.items(), strict=True):
        for name, run in runs.items():
            kept = np.unique(np.geomspace(min(20, run.rounds), run.rounds, 300).astype(int)) - 1
            mean = run.regret[kept] / (kept + 1)
            width = 2.2 if name in OURS else 1.2
            axis.plot(run.seconds[kept], mean, label=name, color=colours[name], linewidth=width)
            axis.plot(run.seconds[-1], mean[-1], "o", color=colours[name], markersize=4)
        axis.set(xscale="log", title=stream, xlabel="seconds, one core, compiling included")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("regret per round so far")
    handles = {
        label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
