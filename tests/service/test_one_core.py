"""Threads that take turns are kept on the core that has most time, and only where that can be."""

import os
import threading

import pytest

from neuralucb.service import one_core
from neuralucb.service.one_core import OneCore, allowed_cores, anywhere

needs_cores = pytest.mark.skipif(len(allowed_cores()) < 2, reason="needs two cores")


NO_THREAD = 2**31 - 1
"""Above all numbers that Linux gives."""


@pytest.fixture
def ticks(tmp_path, monkeypatch):
    """Writes how many ticks each of two cores has been idle, and busy."""
    cores = sorted(allowed_cores())[:2]
    monkeypatch.setattr(one_core, "TICKS", tmp_path / "stat")

    def write(*idle_and_busy):
        rows = zip(cores, idle_and_busy, strict=True)
        lines = [f"cpu{core} {busy} 0 0 {idle} 0 0 0 0 0 0" for core, (idle, busy) in rows]
        one_core.TICKS.write_text("\n".join(["cpu 1 2 3 4", *lines, "intr 5"]))
        return cores

    return write


@pytest.fixture
def thread():
    """A thread that waits, as the system numbers it."""
    known, end = [], threading.Event()
    started = threading.Event()

    def wait():
        known.append(threading.get_native_id())
        started.set()
        end.wait()

    waiting = threading.Thread(target=wait)
    waiting.start()
    started.wait()
    yield known[0]
    end.set()
    waiting.join()


@needs_cores
def test_threads_go_to_the_core_with_most_time_and_move_only_if_another_is_clearly_better(ticks, thread):
    first, second = ticks((0, 0), (0, 0))
    together = OneCore([thread])
    assert together.core is None
    ticks((10, 90), (60, 40))
    together.look()
    assert together.core == second
    assert os.sched_getaffinity(thread) == {second}
    ticks((60, 140), (90, 110))  # 50 to 30 of 100 ticks: not worth it
    together.look()
    assert together.core == second
    ticks((150, 150), (100, 200))
    together.look()
    assert together.core == first
    assert os.sched_getaffinity(thread) == {first}
    anywhere(allowed_cores())


@needs_cores
def test_time_that_the_threads_use_themselves_does_not_count_against_their_core(ticks, thread, monkeypatch):
    first, second = ticks((0, 0), (0, 0))
    together = OneCore([thread])
    ticks((60, 40), (10, 90))
    together.look()
    assert together.core == first
    monkeypatch.setattr(together, "_ran", lambda: 100 / os.sysconf("SC_CLK_TCK"))
    ticks((60, 140), (90, 110))
    together.look()
    assert together.core == first
    ticks((60, 240), (180, 120))  # now others used it
    together.look()
    assert together.core == second


@needs_cores
def test_a_system_that_does_not_say_or_a_thread_that_has_ended_changes_nothing(tmp_path, monkeypatch, ticks):
    monkeypatch.setattr(one_core, "TICKS", tmp_path / "missing")
    together = OneCore([threading.get_native_id()])
    together.look()
    assert together.core is None
    monkeypatch.setattr(one_core, "TICKS", tmp_path / "stat")
    ticks((0, 0), (0, 0))
    together = OneCore([NO_THREAD])
    ticks((10, 0), (10, 0))
    together.look()
    together.look()
    assert together.core is None


@needs_cores
def test_a_thread_made_by_one_that_stays_can_run_anywhere(thread):
    before, found = allowed_cores(), []
    os.sched_setaffinity(0, {min(before)})
    try:
        for prepare in (lambda: None, lambda: anywhere(before)):
            made = threading.Thread(target=lambda prepare=prepare: (prepare(), found.append(allowed_cores())))
            made.start()
            made.join()
    finally:
        os.sched_setaffinity(0, before)
    assert found == [{min(before)}, before]
