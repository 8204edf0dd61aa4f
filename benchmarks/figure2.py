"""Figure 2 at the paper's size, put together from pieces that were played at different times.

neuralucb reproduce figure2 --scale paper --search race --device gpu --problems magic --out piece
python benchmarks/figure2.py collect piece   # every algorithm's best setting, seed by seed: docs/results/figure2.csv
python benchmarks/figure2.py draw            # docs/figures/figure2.png, and the tables of docs/results/figure2.md

A piece that is collected again replaces what was collected before.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas

from neuralucb.display.figures import draw_regret
from neuralucb.experiments.results import Curve
from neuralucb.experiments.statistics import Estimate, band, estimate_mean
from neuralucb.experiments.tables import title_of
from neuralucb.sweeps.paper import ALGORITHMS, FIGURES, REFERENCES
from neuralucb.sweeps.selection import contests, read_grids
from neuralucb.sweeps.store import Store

TABLE = Path("docs/results/figure2.csv")
FIGURE = Path("docs/figures/figure2.png")
POINTS = np.arange(500, 15_001, 500)
KEYS = ["reading", "problem", "algorithm"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("collect", "draw"))
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args()
    collect(options.folder) if options.do == "collect" else draw(pandas.read_csv(TABLE))


def collect(folder: Path) -> None:
    """Add the best setting of every algorithm of a piece: one row per seed, regret every 500 rounds."""
    store = Store(folder)
    readings = {(part.algorithm, part.problem): part.preset for part in store.sweep().parts}
    frame = pandas.concat([pandas.read_parquet(file) for file in sorted((folder / "runs").glob("*.parquet"))])
    rows = []
    for contest in contests(read_grids(store)):
        algorithm, problem = contest.grid.algorithm, contest.grid.problem
        setting = contest.grid.settings[contest.best]
        runs = frame[(frame.algorithm == algorithm) & (frame.problem == problem)]
        for run in runs[[json.loads(swept) == setting for swept in runs.swept]].itertuples():
            ends = np.minimum(np.arange(1, len(run.curve) + 1) * run.curve_every, run.rounds)
            curve = np.interp(POINTS, ends, run.curve).round(1)
            words = ", ".join(f"{name} {value:g}" for name, value in setting.items())
            key = readings[algorithm, problem], problem, algorithm
            honest = shown(contest.held_out, ".0f")
            rows.append([*key, words, contest.grid.tried, honest, run.seed, run.diverged_at, *curve])
    columns = [*KEYS, "setting", "settings", "held_out", "seed", "diverged_at", *(str(point) for point in POINTS)]
    new = pandas.DataFrame(rows, columns=columns)
    if TABLE.exists():
        old = pandas.read_csv(TABLE)
        again = pandas.MultiIndex.from_frame(old[KEYS]).isin(pandas.MultiIndex.from_frame(new[KEYS]))
        new = pandas.concat([old[~again], new])
    new.sort_values([*KEYS, "seed"]).to_csv(TABLE, index=False)
    print(f"{len(rows)} runs of {folder} are in {TABLE}")


def draw(table: pandas.DataFrame) -> None:
    """The figure, a panel per data set and reading, and a Markdown table per data set.

    Uniform choices stand in the table alone, as in the paper: beside them all others would be one line.
    """
    panels, untrained = [], ~table.algorithm.isin(set(table[table.reading == "released"].algorithm))
    for problem in FIGURES["figure2"]:
        for reading in ("paper", "released"):
            found = table[(table.problem == problem) & ((table.reading == reading) | untrained)]
            if len(found[found.reading == reading]):
                drawn = [name for name in names(found) if name not in REFERENCES]
                panels.append([curve(found, name, f"{problem}, {reading}") for name in drawn])
    draw_regret(panels, [FIGURE], columns=2)
    for problem in FIGURES["figure2"]:
        if (table.problem == problem).any():
            print(f"\n{markdown(table[table.problem == problem])}")


def names(table: pandas.DataFrame) -> list[str]:
    return [name for name in (*ALGORITHMS, *REFERENCES) if (table.algorithm == name).any()]


def curve(table: pandas.DataFrame, algorithm: str, panel: str) -> Curve:
    own = table[table.algorithm == algorithm]
    regret = own[[str(point) for point in POINTS]].to_numpy()
    return Curve(algorithm, panel, POINTS, regret, band(regret), int((own.diverged_at > 0).sum()))


def markdown(table: pandas.DataFrame) -> str:
    last = str(POINTS[-1])
    heads = "algorithm", "reading", "T = 10 000", "T = 15 000", "worst seed", "chosen on half, scored on the other"
    lines = [f"| {' | '.join((*heads, 'minus NeuralUCB', 'setting', 'of'))} |", "| --- " * (len(heads) + 3) + "|"]
    for name in names(table):
        for reading in ("paper", "released"):
            own = table[(table.algorithm == name) & (table.reading == reading)].sort_values("seed")
            if own.empty:
                continue
            first = table[(table.algorithm == "neural-ucb") & (table.reading == reading)].sort_values("seed")
            paired = estimate_mean(own[last].to_numpy() - first[last].to_numpy())
            cells = [
                title_of(name), reading, f"{own['10000'].mean():.0f}",
                shown(estimate_mean(own[last].to_numpy()), ".0f"), f"{own[last].max():.0f}", own.held_out.iloc[0],
                "–" if name == "neural-ucb" else shown(paired, "+.0f"),
                own.setting.fillna("–").iloc[0], str(own.settings.iloc[0]),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(estimate: Estimate, form: str) -> str:
    return f"{estimate.mean:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


if __name__ == "__main__":
    main()
