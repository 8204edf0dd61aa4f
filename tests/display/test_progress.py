"""Progress: the time left of a run that slows down, and what is shown without a terminal."""

import io

import numpy as np
from numpy.testing import assert_allclose
from rich.console import Console

from neuralucb.display.progress import Pace, download_bar, fit_end, meters
from neuralucb.experiments import plan


def test_time_left_follows_a_run_that_slows_down():
    share = np.linspace(0, 0.5, 20)
    assert_allclose(fit_end(share, 2 * share + 30 * share**2, 1.0), 32, rtol=1e-6)
    assert_allclose(fit_end(share, 7 * share, 1.0), 7, rtol=1e-6)
    assert Pace().left(10, 10) == "done"


def test_an_estimate_needs_a_few_points_and_keeps_few():
    pace = Pace()
    words = [pace.left(done, 2000) for done in range(1, 1001)]
    assert words[:3] == ["estimating"] * 3
    assert all(word.endswith(" left") for word in words[3:])
    assert len(pace.seen) <= 400


def test_meters_print_a_line_without_a_terminal_and_a_bar_with_one():
    planned = plan("h1", ["lin-ucb"], {}, rounds=10, seeds=2)
    for terminal, shown in ((False, "lin-ucb on h1: 10 rounds × 2 seeds"), (True, "20/20")):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        with meters(planned, console, quiet=False) as meter:
            report = meter("lin-ucb")
            if terminal:
                report(20, 20)
        assert shown in console.file.getvalue()
    with meters(planned, console, quiet=True) as meter:
        assert meter("lin-ucb") is None


def test_a_download_is_shown_in_bytes():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with download_bar("magic", console) as report:
        report(2_000_000)
    assert "downloading magic" in console.file.getvalue()
