"""Results as people read them: runs that diverged are marked in red, not with the name of the colour."""

import io

import numpy as np
import pytest
from rich.console import Console

from neuralucb import run
from neuralucb.display.results import show_results
from tests.experiments.sizes import TINY


@pytest.fixture(scope="module")
def diverged():
    return run("neural-ucb", "h2", seeds=2, **TINY | {"step_size": 100.0, "steps": 30})


@pytest.mark.parametrize("terminal", [False, True])
def test_a_diverged_run_is_marked_in_a_terminal_and_named_everywhere(diverged, tmp_path, terminal):
    colours = "standard" if terminal else "auto"
    out, err = (
        Console(file=io.StringIO(), force_terminal=terminal, markup=False, color_system=colours, width=200)
        for _ in range(2)
    )
    show_results([[diverged]], tmp_path, "a", out=out, err=err)
    table, warning = out.file.getvalue(), err.file.getvalue()
    what = "NeuralUCB on h2 diverged for seeds 0, 1"
    assert "red]" not in table + warning
    assert (f"\x1b[31m{what}\x1b[0m: its regret" if terminal else f"{what}: its regret") in warning
    assert "a smaller step_size is the usual cure." in warning
    assert ("\x1b[31m" in table) is terminal
    assert "2 of 2" in table
    assert "| 2 of 2 |" in (tmp_path / "a.md").read_text()


def test_a_sound_run_is_not_marked(diverged, tmp_path):
    sound = diverged._replace(diverged_at=np.zeros(2, int))
    out, err = (Console(file=io.StringIO(), force_terminal=True, markup=False, width=200) for _ in range(2))
    show_results([[sound]], tmp_path, "a", out=out, err=err)
    assert "\x1b[31m" not in out.file.getvalue()
    assert err.file.getvalue() == ""


@pytest.mark.parametrize(("seeds", "remarked"), [(1, True), (4, True), (5, False)])
def test_few_seeds_are_remarked_in_the_table_and_in_the_file(diverged, tmp_path, seeds, remarked):
    few = diverged._replace(
        seeds=tuple(range(seeds)), regret=np.ones((seeds, 1)), rounds=1, diverged_at=np.zeros(seeds, int)
    )
    out, err = (Console(file=io.StringIO(), markup=False, width=200) for _ in range(2))
    show_results([[few]], tmp_path, "a", out=out, err=err, formats=("svg", "pdf"))
    count = "1 seed" if seeds == 1 else f"{seeds} seeds"
    assert out.file.getvalue().splitlines()[0].rstrip() == f"final regret after 1 round, {count}"
    for text in (out.file.getvalue(), (tmp_path / "a.md").read_text()):
        assert (f"{count}: " in text) is remarked
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "a.pdf", "a.svg"]
    assert ("too few for a band" in (tmp_path / "a.svg").read_text()) is (seeds == 4)
