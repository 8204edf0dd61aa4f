"""The page of the peers' benchmark: tables with ratios to ours, and regret against seconds. Reads results only."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from arena import SYSTEMS
from streams import Stream, read_stream

__all__ = ["Played", "read_results", "write_page"]

OURS = ("neural-ucb", "neural-mix", "neural-ucb adam", "neural-mix online")
COMPARED = (
    ("plain-torch", "neural-ucb"), ("calvera", "neural-ucb adam"), ("vw linear", "neural-mix"),
    ("vw quadratic", "neural-mix"), ("mabwiser", "neural-mix"), ("contextualbandits", "neural-mix"),
    ("river", "neural-mix"),
)  # fmt: skip
"""Peers, and the one of ours that is most like each, or else the default."""

WHOLE = ("plain-torch", "neural-ucb", "neural-ucb adam", "neural-mix")
"""Systems whose whole runs are compared, the first with the others."""

INSTANTS = (3.0, 30.0)
"""Seconds at which systems are compared."""

COLOURS = (
    "#d62728", "#ff9896", "#000000", "#7f7f7f", "#1f77b4", "#17becf", "#2ca02c", "#98df8a", "#9467bd", "#bcbd22",
    "#e377c2",
)  # fmt: skip

HEAD = Path(__file__).parent / "head.md"
READING = Path(__file__).parent / "reading.md"
NOTES = Path(__file__).parent / "notes.md"


class Played(NamedTuple):
    """One system's run on one stream."""

    facts: dict[str, Any]
    seconds: np.ndarray
    """[n] when each round ended"""
    compiling: np.ndarray
    """[n] seconds of compiling until then"""
    regret: np.ndarray
    """[n] cumulative"""

    @property
    def rounds(self) -> int:
        """How many rounds it played."""
        return len(self.seconds)

    def playing(self, rounds: int | None = None) -> float:
        """Seconds of the first rounds, or of all, without compiling."""
        last = (rounds or self.rounds) - 1
        return float(self.seconds[last] - self.compiling[last])


def read_results(about: Mapping[str, Any]) -> dict[str, dict[str, Played]]:
    """Runs by stream and system; those that met another stream than the one on file are left out."""
    found: dict[str, dict[str, Played]] = {}
    streams: dict[str, Stream] = {stream.name: stream for stream in map(read_stream, map(Path, about["streams"]))}
    for path in about["results"]:
        with np.load(path) as file:
            facts, arms = json.loads(str(file["facts"])), file["arms"]
            seconds, compiling = file["seconds"], file["compiling"]
        stream = streams[facts["stream"]]
        if facts["digest"] == stream.digest:
            regret = np.cumsum(stream.regret[np.arange(len(arms)), arms], dtype=np.float64)
            found.setdefault(stream.name, {})[facts["system"]] = Played(facts, seconds, compiling, regret)
    return found


def write_page(about: Mapping[str, Any], folder: Path) -> None:
    """Write results/peers.md and figures/peers.png below a folder."""
    found = read_results(about)
    for name in ("results", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    parts = [_head(about, found)]
    if NOTES.exists() and folder.name == "docs":
        parts.append(NOTES.read_text().strip())
    parts.append("## Speed\n\nHow many times the time per round of ours a peer takes, by stream.\n\n" + _speed(found))
    parts.append(
        "## Whole runs\n\nWhere `plain-torch` came to the end of a stream, or past its middle: seconds, and how many "
        "times as long `plain-torch` took, without compiling and with it. Regret is **bold** where it is no higher.\n\n"
        + _whole_runs(found)
    )
    parts.append("## Who is best\n\n" + _best(found))
    parts.append(
        "## Regret against seconds\n\n![regret per round against seconds, every stream](../figures/peers.png)\n\n"
        + READING.read_text().strip()
    )
    for stream, runs in found.items():
        parts.append(f"## {stream}\n\n{_table(runs)}")
    if about["skipped"]:
        parts.append("## Not played\n\n" + "\n".join(f"- {line}" for line in _merged(about["skipped"])))
    (folder / "results" / "peers.md").write_text("\n\n".join(parts) + "\n")
    _draw(found, folder / "figures" / "peers.png")
    print(f"{folder / 'results' / 'peers.md'} written.")


def _head(about: Mapping[str, Any], found: Mapping[str, Mapping[str, Played]]) -> str:
    limits = sorted({run.facts["limit"] for runs in found.values() for run in runs.values()})
    versions = {name: run.facts["version"] for runs in found.values() for name, run in runs.items()}
    systems = [
        f"| {name} | {each.package} {versions.get(name, '')} | {each.meaning} |" for name, each in SYSTEMS.items()
    ]
    loads = [run.facts["load"] for runs in found.values() for run in runs.values()]
    return Template(HEAD.read_text().rstrip()).substitute(
        about,
        command="make bench QUICK=1" if about["quick"] else "make bench",
        limits=" or ".join(f"{limit:g}" for limit in limits),
        systems="\n".join(systems),
        load=f"{np.median(loads):.1f}",
        high=f"{max(loads):.1f}",
    )


def _speed(found: Mapping[str, Mapping[str, Played]]) -> str:
    rows = [["a peer", "over ours", *found]]
    for name, ours in COMPARED:
        cells = [_ratio(runs[name], runs.get(ours)) if name in runs else "–" for runs in found.values()]
        rows.append([name, ours, *cells])
    return _markdown(rows)


def _whole_runs(found: Mapping[str, Mapping[str, Played]]) -> str:
    rows = [["stream", "rounds", "system", "seconds", "with compiling", "regret", "times", "with compiling"]]
    for stream, runs in found.items():
        peer, longest = runs.get(WHOLE[0]), max(run.rounds for run in runs.values())
        if peer is None or 2 * peer.rounds < longest:
            continue
        n = peer.rounds
        compared = {name: runs[name] for name in WHOLE if name in runs and runs[name].rounds >= n}
        for name, run in compared.items():
            regret, is_peer = f"{run.regret[n - 1]:.4g}", run is peer
            is_lower = not is_peer and run.regret[n - 1] <= peer.regret[n - 1]
            rows.append([
                stream if is_peer else "",
                (f"{n:,}" + (f" of {longest:,}" if n < longest else "")).replace(",", " ") if is_peer else "",
                name,
                f"{run.playing(n):.1f}",
                f"{run.seconds[n - 1]:.1f}",
                f"**{regret}**" if is_lower else regret,
                "" if is_peer else f"{peer.playing(n) / run.playing(n):.2g}",
                "" if is_peer else f"{peer.seconds[n - 1] / run.seconds[n - 1]:.2g}",
            ])  # fmt: skip
    return _markdown(rows)


def _ratios(runs: Mapping[str, Played], name: str) -> str:
    if name not in runs:
        return "–"
    return " / ".join(_ratio(runs[name], runs.get(ours)) for ours in OURS[:2])


def _best(found: Mapping[str, Mapping[str, Played]]) -> str:
    """The winner of each stream, whoever it is."""

    def winner(runs: Mapping[str, Played], value: Callable[[Played], float], text: str) -> str:
        name = min(runs, key=lambda each: value(runs[each]))
        return f"{f'**{name}**' if name in OURS else name} ({text.format(abs(value(runs[name])))})"

    rows = [["stream", "lowest regret at equal rounds", "lowest regret per round after 30 s", "most rounds per second",
             "least memory"]]  # fmt: skip
    for stream, runs in found.items():
        common = min(run.rounds for run in runs.values())
        rows.append([
            stream,
            winner(runs, lambda run, n=common: run.regret[n - 1], f"{{:.4g}} in {common} rounds"),
            winner(runs, lambda run: _regret_at(run, INSTANTS[-1]), "{:.3f}"),
            winner(runs, lambda run: -run.rounds / run.playing(), "{:,.0f}"),
            winner(runs, lambda run: run.facts["memory_mb"], "{:.0f} MB"),
        ])  # fmt: skip
    return _markdown(rows)


def _table(runs: Mapping[str, Played]) -> str:
    longest = max(run.rounds for run in runs.values())
    horizons = sorted({min(run.rounds for run in runs.values()), longest, *_reached(runs, "plain-torch")})
    titles = [
        "system", "rounds per second", "decisions", "updates", "whole run", "compiling", "times ours (ucb / mix)",
        "memory",         *(f"regret at {n}" for n in horizons), *(f"at {instant:.0f} s" for instant in INSTANTS),
    ]  # fmt: skip
    rows = [titles]
    for name, run in runs.items():
        stopped = "" if run.rounds == longest else f", stopped after {run.rounds} rounds"
        selecting = run.facts["select_seconds"]
        rows.append([
            f"**{name}**" if name in OURS else name,
            _number(run.rounds / run.playing()),
            _number(run.rounds / selecting) if selecting else "",
            _number(run.rounds / (run.playing() - selecting)) if selecting else "",
            f"{run.seconds[-1]:.1f} s{stopped}",
            f"{run.compiling[-1]:.1f} s" if run.compiling[-1] else "",
            _ratios(runs, name),
            f"{run.facts['memory_mb']:.0f} MB",
            *(f"{run.regret[n - 1]:.4g}" if run.rounds >= n else "not reached" for n in horizons),
            *(_at(run, instant) for instant in INSTANTS),
        ])  # fmt: skip
    return _markdown(rows)


def _reached(runs: Mapping[str, Played], name: str) -> list[int]:
    return [runs[name].rounds] if name in runs else []


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.2g}"


def _ratio(run: Played, ours: Played | None) -> str:
    """Times per round, over the rounds that both played: later rounds may cost more."""
    if ours is None:
        return "–"
    both = min(run.rounds, ours.rounds)
    return f"{run.playing(both) / ours.playing(both):.2g}"


def _regret_at(run: Played, instant: float) -> float:
    """Regret per round so far at that second; infinite before the first round."""
    played = int(np.searchsorted(run.seconds, instant, side="right"))
    return float(run.regret[played - 1] / played) if played else np.inf


def _at(run: Played, instant: float) -> str:
    played = int(np.searchsorted(run.seconds, instant, side="right"))
    if played == 0:
        return "nothing yet"
    return f"{_regret_at(run, instant):.3f} ({'all' if played == run.rounds else played})"


def _merged(skipped: list[str]) -> list[str]:
    """One line per system and reason, with its streams."""
    lines: dict[tuple[str, str], list[str]] = {}
    for line in skipped:
        what, _, reason = line.partition(": ")
        system, _, stream = what.partition(" on ")
        lines.setdefault((system, reason), []).append(stream)
    return [
        f"{system}{' on ' if any(streams) else ''}{', '.join(streams)}: {reason}"
        for (system, reason), streams in lines.items()
    ]


def _draw(found: Mapping[str, Mapping[str, Played]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.6 * columns, 3.1 * lines), squeeze=False, layout="constrained"
    )
    colours = dict(zip(SYSTEMS, COLOURS, strict=True))
    for axis in axes.flat[len(found) :]:
        axis.set_axis_off()
    for axis, (stream, runs) in zip(axes.flat, found.items(), strict=False):
        for name, run in runs.items():
            kept = np.unique(np.geomspace(min(20, run.rounds), run.rounds, 300).astype(int)) - 1
            mean = run.regret[kept] / (kept + 1)
            width = 2.2 if name in OURS else 1.2
            axis.plot(run.seconds[kept], mean, label=name, color=colours[name], linewidth=width)
            axis.plot(run.seconds[-1], mean[-1], "o", color=colours[name], markersize=4)
        axis.set(xscale="log", title=stream)
        axis.grid(alpha=0.3)
    figure.supxlabel("seconds on one core, compiling included", fontsize=10)
    figure.supylabel("regret per round so far", fontsize=10)
    handles = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
