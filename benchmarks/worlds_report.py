"""What was played in the worlds, as a table for the terminal, as Markdown and as a figure. Reads records only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from worlds_players import PEERS
from worlds_suite import WORLDS

from neuralucb.display.figures import COLOURS, new_figure, save, tidy
from neuralucb.display.tables import markdown_table

__all__ = ["write_report"]

ERRORS = 2.0
"""Standard errors of the mean difference over seeds, beyond which a player is above another."""
NO_SIGNAL = "no signal"
"""The kind of world in which uniform is the best there is, and the best of three peers is luck."""
MARKS = "osDv^P*XhdpH"

Record = dict[str, Any]


class Cell(NamedTuple):
    """A player in a world: its shares of uniform's regret by seed, as far as its runs did not end in an error."""

    shares: dict[int, float]
    runs: int

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.shares.values()))) if self.shares else float("nan")

    @property
    def error(self) -> float:
        return standard_error(list(self.shares.values()))

    def __str__(self) -> str:
        if not self.shares:
            return "failed"
        error = f" ± {self.error:.2f}" if len(self.shares) > 1 else ""
        failed = f" ({self.runs - len(self.shares)} of {self.runs} failed)" if len(self.shares) < self.runs else ""
        return f"{self.mean:.3f}{error}{failed}"


def write_report(records: Sequence[Record], out: Path) -> str:
    """Write worlds.md and worlds.png, and return the Markdown."""
    if not records:
        return "nothing was played"
    text = report(records)
    (out / "worlds.md").write_text(text)
    draw(records, out / "worlds.png")
    return text


def report(records: Sequence[Record]) -> str:
    """The tables: all worlds in one line per player, then each world."""
    worlds, players, cells = _arrange(records)
    seeds = len({record["seed"] for record in records})
    rounds = max(record["rounds"] for record in records)
    parts = [
        f"Regret as a share of uniform's, T = {rounds}, mean over {seeds} seeds ± standard error.\n",
        markdown_table(_players_table(records, worlds, players, cells)),
        f"↑: above the best peer ({', '.join(PEERS)}; uniform where there is no signal) by more than {ERRORS:g} "
        "standard errors of the difference over seeds. The best of a row is bold.\n",
        markdown_table(_worlds_table(records, worlds, players, cells)),
    ]
    failed = [record for record in records if record["error"]]
    if failed:
        parts.append("Runs that failed:\n")
        parts.append(
            "".join(f"- {each['world']}, {each['player']}, seed {each['seed']}: {each['error']}\n" for each in failed)
        )
    return "\n".join(parts)


def draw(records: Sequence[Record], path: Path) -> None:
    """A dot per player and world, a panel per split; worlds in the order of their best peer."""
    worlds, players, cells = _arrange(records)
    players = [player for player in players if player != "uniform"]
    splits = [split for split in ("open", "held-out") if any(_of(records, world)["split"] == split for world in worlds)]
    rows = {split: _by_best_peer([w for w in worlds if _of(records, w)["split"] == split], cells) for split in splits}
    most = max(map(len, rows.values()))
    figure, axes = new_figure(len(splits), len(splits), width=6.0, height=1.4 + 0.3 * most, margin=0.2)
    means = [cells[world, player].mean for world in worlds for player in players if (world, player) in cells]
    low, high = (
        min([0.02, *(0.8 * mean for mean in means if mean > 0)]),
        max([1.3, *(1.15 * m for m in means if m > 0)]),
    )
    for axis, split in zip(axes, splits, strict=True):
        _draw_panel(axis, rows[split], players, cells)
        axis.set_xlim(low, high)
        axis.set_ylim(len(rows[split]) - 0.4, -0.6)
        axis.set_title(f"{len(rows[split])} {split} worlds", fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(6, len(labels)), frameon=False, fontsize=9)
    save(figure, [path])


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def above_best_peer(cell: Cell, world: str, kind: str, cells: dict[tuple[str, str], Cell]) -> bool:
    """Whether a player's share exceeds the best peer's by more than the seeds explain; seeds are compared in pairs."""
    bar = dict.fromkeys(cell.shares, 1.0)
    peers = [cells[world, peer] for peer in PEERS if (world, peer) in cells and cells[world, peer].shares]
    if kind != NO_SIGNAL and peers:
        bar = min(peers, key=lambda peer: peer.mean).shares
    differences = [share - bar[seed] for seed, share in cell.shares.items() if seed in bar]
    if len(differences) < 2:
        return False
    return bool(np.mean(differences) > ERRORS * standard_error(differences))


def _arrange(records: Sequence[Record]) -> tuple[list[str], list[str], dict[tuple[str, str], Cell]]:
    worlds = [name for name in WORLDS if any(record["world"] == name for record in records)]
    found = dict.fromkeys(record["player"] for record in records)
    known = [player for player in ("uniform", *PEERS) if player in found]
    players = [*known, *(player for player in found if player not in known)]
    cells = {}
    for world in worlds:
        for player in players:
            mine = [record for record in records if (record["world"], record["player"]) == (world, player)]
            shares = {record["seed"]: record["share"] for record in mine if record["error"] is None}
            if mine:
                cells[world, player] = Cell(shares, len(mine))
    return worlds, players, cells


def _players_table(records, worlds, players, cells) -> list[list[str]]:
    head = [
        "",
        "median",
        "open",
        "held-out",
        "worst",
        "worlds above the best peer",
        "failed lessons",
        "refused",
        "failed runs",
        "s per run",
    ]
    rows = [head]
    for player in players:
        mine = [record for record in records if record["player"] == player]
        here = [world for world in worlds if (world, player) in cells]
        means = {world: cells[world, player].mean for world in here if cells[world, player].shares}
        if not means:
            rows.append([player, *["failed"] * (len(head) - 1)])
            continue
        worst = max(means, key=lambda world: means[world])
        above = sum(_is_above(records, world, player, cells) for world in means)
        judged = player not in ("uniform", *PEERS)
        rows.append(
            [
                player,
                f"{np.median(list(means.values())):.3f}",
                *(_median(records, means, split) for split in ("open", "held-out")),
                f"{means[worst]:.2f} ({worst})",
                f"{above} of {len(means)}" if judged else "",
                _total(mine, "diverged"),
                _total(mine, "refused"),
                str(sum(record["error"] is not None for record in mine)),
                f"{np.mean([record['seconds'] for record in mine]):.1f}",
            ]
        )
    return rows


def _worlds_table(records, worlds, players, cells) -> list[list[str]]:
    players = [player for player in players if player != "uniform"]
    rows = [["world", "split", "kind", "d", "K", *players]]
    for world in worlds:
        record = _of(records, world)
        present = [cells[world, player] for player in players if (world, player) in cells]
        best = min((cell.mean for cell in present if cell.shares), default=float("nan"))
        row = [world, record["split"], record["kind"], str(record["dim"]), str(record["arms"])]
        for player in players:
            cell = cells.get((world, player))
            text = "" if cell is None else str(cell)
            if cell is not None and cell.mean == best and record["kind"] != NO_SIGNAL:
                text = f"**{text}**"
            if cell is not None and player not in PEERS and _is_above(records, world, player, cells):
                text += " ↑"
            row.append(text)
        rows.append(row)
    return rows


def _is_above(records, world, player, cells) -> bool:
    return above_best_peer(cells[world, player], world, _of(records, world)["kind"], cells)


def _of(records: Sequence[Record], world: str) -> Record:
    return next(record for record in records if record["world"] == world)


def _median(records: Sequence[Record], means: dict[str, float], split: str) -> str:
    mine = [mean for world, mean in means.items() if _of(records, world)["split"] == split]
    return f"{np.median(mine):.3f}" if mine else ""


def _total(records: Sequence[Record], name: str) -> str:
    counts = [record["troubles"][name] for record in records if name in record["troubles"]]
    return str(sum(counts)) if counts else ""


def _by_best_peer(worlds: Sequence[str], cells: dict[tuple[str, str], Cell]) -> list[str]:
    def best(world: str) -> float:
        means = [cells[world, peer].mean for peer in PEERS if (world, peer) in cells]
        return min((mean for mean in means if mean == mean), default=float("inf"))

    return sorted(worlds, key=best)


def _draw_panel(axis: Any, worlds: Sequence[str], players: Sequence[str], cells: dict[tuple[str, str], Cell]) -> None:
    axis.axvline(1.0, color="#777777", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for index, player in enumerate(players):
        here = [(row, cells[world, player]) for row, world in enumerate(worlds) if (world, player) in cells]
        here = [(row, cell) for row, cell in here if cell.shares]
        peer = player in PEERS
        lane = 0.36 * ((index + 0.5) / len(players) - 0.5)  # a little apart, where players do equally well
        axis.errorbar(
            [cell.mean for _, cell in here],
            [row + lane for row, _ in here],
            xerr=np.nan_to_num([cell.error for _, cell in here]),
            fmt=MARKS[index % len(MARKS)],
            color=COLOURS[index % len(COLOURS)],
            markersize=5 if peer else 7,
            markerfacecolor="none" if peer else COLOURS[index % len(COLOURS)],
            elinewidth=0.8,
            linestyle="none",
            label=player,
            zorder=2 if peer else 3,
        )
    axis.set_xscale("log")
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_yticks(range(len(worlds)), worlds, fontsize=9)
    axis.set_xlabel("share of uniform's regret (logarithmic); dashed: uniform")
    tidy(axis)
