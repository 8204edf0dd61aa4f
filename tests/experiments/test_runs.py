"""Runs over seeds and grids: one compilation per shape, progress to the end, the user's configuration untouched."""

import jax
import pytest

from neuralucb import InputError, compare, run, run_grid
from neuralucb.experiments import lanes, runs
from tests.experiments.sizes import GRID, OPTIONS, TINY


@pytest.fixture
def compilations(monkeypatch):
    """Collects the programs compiled for lanes."""
    compiled = []

    def spy(*args, **options):
        compiled.append(lanes.compile_program(*args, **options))
        return compiled[-1]

    monkeypatch.setattr(runs, "compile_program", spy)
    return compiled


def test_a_grid_of_numbers_compiles_once(compilations):
    grid = GRID | {"exploration": [0.01, 0.1, 1], "step_size": [0.01, 0.1], "regularization": [0.1, 1]}
    results = run_grid("neural-ucb", "h1", grid, seeds=2, **OPTIONS)
    assert len(results) == 12
    assert len(compilations) == 1
    assert [result.settings["exploration"] for result in results[:5]] == [0.01] * 4 + [0.1]
    assert all(result.regret.shape == (2, 40) for result in results)


def test_a_grid_of_shapes_compiles_once_a_shape_and_keeps_its_order(compilations):
    grid = {"exploration": [0.1, 1], **GRID, "width": [4, 6]}
    results = run_grid("neural-ucb", "h1", grid, seeds=2, **OPTIONS)
    assert len(compilations) == 2
    assert [(r.settings["exploration"], r.settings["width"]) for r in results] == [(0.1, 4), (0.1, 6), (1, 4), (1, 6)]


def test_progress_counts_up_to_the_end():
    seen = []
    run("neural-ucb", "h1", seeds=3, progress=lambda done, whole: seen.append((done, whole)), **TINY)
    assert seen[-1] == (120, 120)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_theory_and_practice_agree_on_the_precision_of_numbers():
    """ηmλ just below 1 stays below 1 inside the program: settings travel in float64."""
    result = run("neural-ucb", "h1", confidence="theoretical", seeds=1, **TINY | {"step_size": 0.2499999999})
    assert result.diverged == 0


def test_running_leaves_the_users_configuration_alone():
    before = jax.config.jax_enable_x64
    run("lin-ucb", "h1", rounds=5, seeds=1, dim=4)
    assert jax.config.jax_enable_x64 is before is False
    assert jax.numpy.zeros(1).dtype == "float32"


def test_a_program_that_memory_refused_beside_others_is_compiled_when_its_turn_comes(monkeypatch):
    compile_program, tried = runs.compile_program, []

    def refuse_once(algorithm, *args, **more):
        tried.append(algorithm.name)
        if algorithm.name == "glm-ucb" and tried.count("glm-ucb") == 1:
            raise InputError("glm-ucb needs 9.0 GB and 1.0 GB are free; take fewer rounds.")
        return compile_program(algorithm, *args, **more)

    monkeypatch.setattr(runs, "compile_program", refuse_once)
    found = compare(["lin-ucb", "glm-ucb"], "h1", rounds=40, schedule="10", dim=4)
    assert found.algorithms == ("lin-ucb", "glm-ucb")
    assert tried.count("glm-ucb") == 2
