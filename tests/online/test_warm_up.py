"""Compiling ahead, where lessons are made by another process."""

import multiprocessing

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from neuralucb import OnlineBandit
from neuralucb.online.compiled import Programs
from tests.online.helpers import ARMS, linear, play


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


def test_a_process_that_died_is_started_again_by_the_next_preparation(bandit):
    bandit.warm_up(arms=ARMS)
    (process,) = multiprocessing.active_children()
    process.kill()
    process.join()
    with pytest.raises(RuntimeError, match="ended"):
        bandit.lesson_process.prepare(bandit.state, [512])
    bandit.lesson_process.prepare(bandit.state, [512])
    assert bandit.lesson_process._prepared == {512}
