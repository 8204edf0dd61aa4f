"""A bandit belongs to one process: forks are refused at once, and never hang."""

import sys

import pytest

from tests.processes import run_python

FORK = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore")  # of Python and JAX: forking beside threads
from neuralucb import OnlineBandit, StorageError, build
one = OnlineBandit(build("lin-ucb", dim=2), journal=sys.argv[1], learning="background")
decision = one.select([[0.0, 1.0], [1.0, 0.0]])
held, over = threading.Event(), threading.Event()
def hold():
    with one._lock:  # as another request does at the moment of the fork
        held.set()
        over.wait()
other = threading.Thread(target=hold)
other.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends it, should it hang
    calls = [
        lambda: one.select([[0.0, 1.0], [1.0, 0.0]]), lambda: one.select_many([[[0.0, 1.0]]]),
        lambda: one.observe(decision.id, 1.0), lambda: one.expire(0), lambda: one.learn(), lambda: one.health(),
        lambda: one.fit([[0.0, 1.0]], None, [1.0]), lambda: one.add_arm("a", [1.0]), lambda: one.warm_up(2),
        lambda: one.explain(decision.id), lambda: one.save("nowhere"), lambda: one.snapshot(), lambda: one.rollback(),
    ]
    for call in calls:
        try:
            call()
        except StorageError as problem:
            assert "is a fork; make the bandit after the fork" in str(problem), problem
        else:
            os._exit(7)
    one.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
over.set()
other.join()
assert status == 0, status
one.observe(decision.id, 1.0)
one.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_fork_is_refused_at_once_while_its_parent_goes_on(tmp_path):
    done = run_python("-c", FORK, tmp_path / "journal", timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
