"""Sweeps that are killed: resumed, they end as if nothing had happened."""

import signal
import time
from contextlib import ExitStack

import numpy as np
import pytest

from tests.sweeps.helpers import TINY, numbers, running

pytestmark = pytest.mark.waits


def kill_and_resume(tmp_path, arguments, times, longest):
    """Kill a command at random moments, then let it end; an uninterrupted one must give the same numbers."""
    generator = np.random.default_rng(8)
    with ExitStack() as ended:  # the workers of a killed command must end by themselves; at the latest they end here
        whole = ended.enter_context(running(*arguments, "--out", "whole", cwd=tmp_path, log="whole.log"))
        for _ in range(times):
            victim = ended.enter_context(running(*arguments, "--out", "killed", cwd=tmp_path))
            time.sleep(generator.uniform(1, longest))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
        assert whole.wait(timeout=900) == 0, (tmp_path / "whole.log").read_text()
    with (  # two at once on one folder
        running(*arguments, "--out", "killed", cwd=tmp_path) as first,
        running(*arguments, "--out", "killed", cwd=tmp_path, log="second.log") as second,
    ):
        assert first.wait(timeout=900) == 0, (tmp_path / "log").read_text()
        assert second.wait(timeout=900) == 0, (tmp_path / "second.log").read_text()
    assert {path.name for path in (tmp_path / "killed" / "runs").glob("*.parquet")} == {
        path.name for path in (tmp_path / "whole" / "runs").glob("*.parquet")
    }
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    assert (tmp_path / "killed" / "report.html").exists()


def test_what_is_killed_goes_on_and_ends_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY.replace("rounds = 30", "rounds = 3000"))
    kill_and_resume(tmp_path, ["sweep", "tiny.toml", "--workers", "2"], times=4, longest=10)


@pytest.mark.slow
def test_a_race_that_is_killed_goes_on_and_ends_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY.replace("rounds = 30", "rounds = 3000").replace("seeds = 3", "seeds = 6"))
    kill_and_resume(tmp_path, ["sweep", "tiny.toml", "--search", "race", "--workers", "2"], times=6, longest=15)


@pytest.mark.slow
def test_smoke_survives_twenty_kills(tmp_path):
    kill_and_resume(tmp_path, ["reproduce", "figure1", "--scale", "smoke"], times=20, longest=60)
