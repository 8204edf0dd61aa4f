"""Compiling ahead, where lessons are made by another process."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from neuralucb import OnlineBandit
from neuralucb.online.compiled import Programs
from tests.online.helpers import ARMS, linear, play
from tests.processes import started


@pytest.fixture
def bandit():
    with OnlineBandit(linear(), schedule="1000", learning="process") as made:
        yield made


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of compiled programs that is empty at first."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    before = jax.config.values["jax_compilation_cache_dir"]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    compilation_cache.reset_cache()
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()


def test_warm_up_starts_the_process_of_lessons_and_compiles_there(bandit):
    bandit.warm_up(arms=ARMS, observations=600)
    (process,) = multiprocessing.active_children()
    assert bandit.lesson_process._prepared == {256, 512, 1024}
    play(bandit, 5)
    assert bandit.learn().promoted
    assert multiprocessing.active_children() == [process]
    assert bandit.lesson_process._prepared == {256, 512, 1024}  # nothing else was needed


def test_choices_that_the_process_compiled_are_found_in_the_cache(bandit, cache):
    programs = Programs(bandit.policy, 0, 0.0371)  # a floor that no other test has
    bandit.lesson_process.compile_choices(programs, 2, 3)
    compiled = {each.name for each in cache.glob("*choose*-cache")}
    assert compiled
    contexts = bandit.state.shape.zeros(2, 3)
    programs.choose_many(0, bandit.state.belief, contexts, np.ones((2, 3), bool), capacity=3)
    assert {each.name for each in cache.glob("*choose*-cache")} == compiled


def test_what_is_compiled_ahead_is_given_up_at_the_end(bandit):
    bandit.warm_up(arms=ARMS)
    process, (lessons,) = bandit.lesson_process, multiprocessing.active_children()
    process.stop_compiling()
    process.prepare(bandit.state, [1 << 12])
    assert multiprocessing.active_children() == [lessons]
    play(bandit, 3)
    assert bandit.learn().promoted  # lessons are made all the same


ENDLESS = """
import multiprocessing, threading, time
from neuralucb import OnlineBandit, build
bandit = OnlineBandit(build("neural-ucb", dim=4, width=8), learning="process")
threading.Thread(target=bandit.warm_up, args=(2, 1, 10**9), daemon=True).start()
while not multiprocessing.active_children():
    time.sleep(0.01)
print(multiprocessing.active_children()[0].pid, flush=True)
time.sleep(60)
"""


@pytest.mark.waits
def test_a_process_that_compiles_ends_with_the_one_that_wants_it(tmp_path):
    with started([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        time.sleep(8)  # by now it compiles, one lesson after the other
        os.kill(child, 0)
        parent.kill()
        end = time.monotonic() + 10
        while is_alive(child) and time.monotonic() < end:
            time.sleep(0.05)
        assert not is_alive(child)


def is_alive(process):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_a_process_that_died_is_started_again_by_the_next_preparation(bandit):
    bandit.warm_up(arms=ARMS)
    (process,) = multiprocessing.active_children()
    process.kill()
    process.join()
    with pytest.raises(RuntimeError, match="ended"):
        bandit.lesson_process.prepare(bandit.state, [512])
    bandit.lesson_process.prepare(bandit.state, [512])
    assert bandit.lesson_process._prepared == {512}
