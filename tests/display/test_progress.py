"""Progress: the time left of a run that slows down, and what is shown without a terminal."""

import io
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from neuralucb.display import progress
from neuralucb.display.progress import Lines, Pace, download_bar, fit_end, meters, reading
from neuralucb.experiments import plan
from neuralucb.logs import open_log, recorded, write_log


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
    for terminal, shown in ((False, "lin-ucb on h1: 10 rounds × 2 seeds\n"), (True, "20/20")):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        with meters(planned, console, quiet=False) as meter:
            meter("lin-ucb")(20, 20)
        assert shown in console.file.getvalue()
    console = Console(file=io.StringIO(), force_terminal=False)
    with meters(planned, console, quiet=True) as meter:
        assert meter("lin-ucb") is None
    one = plan("h1", ["lin-ucb"], {}, rounds=1, seeds=1)
    with meters(one, console, quiet=False) as meter:
        meter("lin-ucb")
    assert console.file.getvalue() == "lin-ucb on h1: 1 round × 1 seed\n"


@pytest.fixture
def often(monkeypatch):
    """A line every few milliseconds."""
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(progress, "MOST_SECONDS", 0.02)
    monkeypatch.setattr(progress, "SELDOM", 0.0)


def wait_for(console, words):
    """Until a log has these words; returns its lines."""
    for _ in range(1000):
        if words in console.file.getvalue():
            return console.file.getvalue().splitlines()
        time.sleep(0.01)
    raise AssertionError(console.file.getvalue())


@pytest.mark.usefixtures("often")
def test_a_log_has_a_line_now_and_then_whether_or_not_progress_is_reported():
    console = Console(file=io.StringIO(), force_terminal=False, width=40)
    with Lines(console).running() as lines:
        report = lines.begin("lin-ucb on [h1]", what="10 rounds × 2 seeds", unit="rounds")
        assert wait_for(console, "lin-ucb on [h1]: 0:00 so far")[0] == "lin-ucb on [h1]: 10 rounds × 2 seeds"
        for done in range(1, 11):
            report(done, 20)
        wait_for(console, "lin-ucb on [h1]: 10 of 20 rounds, 0:00 left, 0:00 so far")
        lines.begin("kernel")(3, 4)
        wait_for(console, "kernel …\nkernel: 75%, estimating, 0:00 so far")
    ended = console.file.getvalue()
    time.sleep(0.1)
    assert console.file.getvalue() == ended
    assert not [thread for thread in threading.enumerate() if "_watch" in thread.name]


def test_a_short_run_has_one_line():
    console = Console(file=io.StringIO(), force_terminal=False)
    with Lines(console).running() as lines:
        lines.begin("kernel")(1, 1)
    assert console.file.getvalue() == "kernel …\n"


@pytest.mark.usefixtures("often")
def test_reading_a_log_is_shown_pass_by_pass(tmp_path):
    contexts = np.ones((50, 3, 2), np.float32)
    write_log(tmp_path / "log.parquet", [recorded(contexts, np.zeros(50, int), np.ones(50), np.full((50, 3), 1 / 3))])
    log = open_log(tmp_path / "log.parquet")
    console = Console(file=io.StringIO(), force_terminal=False)
    with reading(log, "lin-ucb on", console, quiet=False) as read:
        for _ in range(2):
            assert sum(len(chunk.line) for chunk in read.chunks()) == 50
        wait_for(console, "log.parquet, computing: 0:00 so far")
        chunks = read.chunks()
        next(chunks)
        next(chunks, None)
    first = console.file.getvalue().splitlines()[0]
    assert first == f"lin-ucb on {log.path}: 50 decisions"
    with reading(log, "lin-ucb on", Console(file=io.StringIO(), force_terminal=False), quiet=True) as read:
        assert read is log
    terminal = Console(file=io.StringIO(), force_terminal=True, width=300)
    with reading(log, "lin-ucb on", terminal, quiet=True) as read:
        assert read is log
    assert "lin-ucb on" in terminal.file.getvalue()


def test_a_download_is_shown_in_bytes():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with download_bar("magic", console) as report:
        report(2_000_000)
    assert "downloading magic" in console.file.getvalue()
