"""Progress of a sweep."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from neuralucb.display.sweep_progress import SweepProgress, sweep_progress
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.cost import estimate
from neuralucb.sweeps.engine import prepare
from neuralucb.sweeps.store import Failure
from neuralucb.sweeps.workers import Event
from tests.sweeps.helpers import tiny


def test_progress_counts_what_batches_cost_not_their_rounds(tmp_path):
    first, then = make_batches(tiny(), lanes=20)
    job = prepare(tiny(), tmp_path, device="cpu", workers=1)
    job = job._replace(cost=job.cost._replace(of_batch={first.name: 1.0, then.name: 99.0}))
    progress = SweepProgress(job)
    progress.add(Event(0, first, 90, 90, regret=1.0))
    assert (progress.done, progress.total, progress.finished) == (1.0, 100.0, 6)
    progress.add(Event(0, then, 45, 90))
    assert progress.done == 50.5
    cost = estimate([first, then], workers=2, gpu=False)
    assert cost.seconds == sum(cost.of_batch.values()) / 2


@pytest.mark.parametrize("terminal", [True, False], ids=["bars", "lines"])
def test_what_workers_do_is_shown(tmp_path, terminal):
    job = prepare(tiny(), tmp_path, device="cpu", workers=1)
    first, then = job.missing
    shown = io.StringIO()
    with sweep_progress(job, Console(file=shown, force_terminal=terminal, width=150)) as listener:
        listener(Event(0, first, 180, 180, regret=12.0))
        listener(Event(0, then, 90, 90, failure=Failure("uniform", "h1", 3, "no [luck] today", "", Path("x.json"))))
    assert ("6/9" if terminal else "6 of 9 runs") in shown.getvalue()
    assert ("no [luck] today" if terminal else "lin-ucb on h1, mean regret 12") in shown.getvalue()
