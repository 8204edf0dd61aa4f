"""Work in threads: order, errors, and how many JAX has."""

import os
from functools import partial

import pytest

from neuralucb.runtime.threads import in_order
from tests.processes import run_python


def test_results_come_in_the_order_of_the_works():
    assert list(in_order([partial(int, number) for number in range(20)])) == list(range(20))
    assert list(in_order([])) == []


def test_an_error_is_raised_where_its_result_would_have_come():
    made = in_order([partial(int, "1"), partial(int, "two"), partial(int, "3")])
    assert next(made) == 1
    with pytest.raises(ValueError, match="two"):
        next(made)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are the system's affair here")
def test_jax_is_started_with_one_thread_on_any_core():
    code = """
import os, pathlib
from neuralucb.runtime.threads import start_jax_with
before = os.sched_getaffinity(0)
start_jax_with(1)
threads = [pathlib.Path(f"/proc/self/task/{each}") for each in os.listdir("/proc/self/task")]
assert all(os.sched_getaffinity(int(thread.name)) == before for thread in threads)
print(sum("XLAEigen" in (thread / "comm").read_text() for thread in threads))
"""
    ended = run_python("-c", code)
    assert (ended.returncode, ended.stdout.strip()) == (0, "1"), ended.stderr
