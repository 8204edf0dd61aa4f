"""Results as people read them: runs that diverged are marked in red, not with the name of the colour."""

import io

import numpy as np
import pytest
from rich.console import Console

from neuralucb import run
from neuralucb.display.results import result_rows, show_results
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
    what = "neural-ucb on h2 diverged for seeds 0, 1"
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


def test_rows_have_no_interval_with_one_seed(diverged):
    one = diverged._replace(
        seeds=(0,), regret=np.array([[1.0, 1234.5]]), diverged_at=np.zeros(1, int), algorithm="lin-ucb"
    )
    assert result_rows([one]) == [["lin-ucb", "h2", "1234", "–", "–", "1234", "0 of 1"]]
