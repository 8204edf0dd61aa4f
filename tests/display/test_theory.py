"""Tables and progress of the theory and of coverage."""

import io

import numpy as np
import pytest
from rich.console import Console

from neuralucb.display.theory import coverage_rows, show_coverage, stages, theory_rows
from neuralucb.experiments import Result
from neuralucb.theory import Coverage, Horizon, Report
from neuralucb.theory.coverage import Mode


def measured(rounds, seeds):
    regret = np.ones((seeds, rounds))
    return Result(
        "neural-ucb", "h1", rounds, "1", {}, tuple(range(seeds)), regret, np.zeros(seeds), 0.0, 0.0, "cpu"
    )  # fmt: skip


def report(rounds):
    return Report(
        problem="h1",
        seed=0,
        over=Horizon(rounds, 4, 2, 1.0),
        dim=3,
        width=20,
        initialization="gaussian",
        largest_reward=1.0,
        effective_dimension=12.345,
    )


def found(rounds, seeds):
    numbers = np.ones((seeds, rounds, 2))
    return {Mode("constant", "full"): Coverage(numbers, numbers, numbers, np.zeros(seeds, bool))}


@pytest.mark.parametrize(
    ("rounds", "seeds", "size", "played"),
    [
        (1, 1, "1 round of 4 arms, seed 0", "NeuralUCB, m = 20, 1 seed"),
        (2, 3, "2 rounds of 4 arms, seed 0", "NeuralUCB, m = 20, 3 seeds"),
    ],
)
def test_one_is_singular_and_more_are_plural(rounds, seeds, size, played):
    rows = {row[0]: row for row in theory_rows(report(rounds), measured(rounds, seeds))}
    assert (rows["contexts"][-1], rows["measured regret"][-1]) == (size, played)


def test_what_cannot_be_computed_is_a_dash():
    rows = {row[0]: row[2] for row in theory_rows(report(5), measured(5, 1))}
    assert (rows["effective dimension"], rows["bound"], rows["norm of the rewards"]) == ("12.3", "–", "–")


def test_coverage_is_written_as_a_table_beside_its_figure(tmp_path):
    console = Console(file=io.StringIO(), width=80)
    show_coverage(found(1, 1), tmp_path, problem="h1", rounds=1, seeds=1, console=console)
    assert "intervals that hold, h1: 1 round, 1 seed" in console.file.getvalue()
    assert (tmp_path / "coverage-h1.png").exists()
    assert "| constant | full | 100.0 % | 100.0 % | 1 | 1 | 1 | 0 of 1 |" in (tmp_path / "coverage-h1.md").read_text()
    assert len(coverage_rows(found(3, 2))) == 2


@pytest.mark.parametrize("terminal", [True, False])
def test_stages_are_bars_on_a_terminal_and_lines_elsewhere(terminal):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
    with stages(console) as stage:
        progress = stage("kernel")
        progress(1, 2)
        progress(2, 2)
    shown = console.file.getvalue()
    assert ("━" in shown) == terminal
    assert terminal or shown == "kernel …\n"
    with stages(Console(file=io.StringIO(), force_terminal=False), quiet=True) as stage:
        assert stage("kernel") is None
