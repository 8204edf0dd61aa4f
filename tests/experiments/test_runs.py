"""Running many lanes: one compilation for a grid, the same numbers in any company, statistics that hold."""

import json
import math

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import compare, run, run_grid
from neuralucb.display.progress import Pace, fit_end
from neuralucb.experiments import lanes, runs
from neuralucb.experiments.results import interval

TINY = {"rounds": 40, "schedule": "10", "dim": 4, "width": 4, "steps": 3, "batch_size": 4}
OPTIONS = {"rounds": 40, "schedule": "10"}
GRID = {"dim": [4], "width": [4], "steps": [3], "batch_size": [4]}


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


@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_a_seed_gives_the_same_run_in_any_company(monkeypatch, group):
    monkeypatch.setattr(lanes, "group_lanes", lambda *_: lanes.Grouping(group, 2))
    result = run("lin-ucb", "h3", rounds=40, seeds=5, dim=4)
    alone = run("lin-ucb", "h3", rounds=40, seeds=[3], dim=4)
    assert_allclose(result.regret[3], alone.regret[0], rtol=1e-5)
    assert len({tuple(row) for row in result.regret}) == 5


def test_lanes_that_do_not_fit_go_one_after_the_other(monkeypatch):
    expected = run("lin-ucb", "h1", rounds=20, seeds=4, dim=4).regret
    monkeypatch.setattr(lanes, "group_lanes", lambda count, *_: lanes.Grouping(count, 1))
    monkeypatch.setattr(lanes, "available_bytes", lambda: 1)
    groups, compile_loops = [], lanes.compile_loops

    def spy(lowered):
        (_, seeds, *_), _ = lowered.args_info
        groups.append(seeds.shape[0])
        return compile_loops(lowered)

    monkeypatch.setattr(lanes, "compile_loops", spy)
    assert_allclose(run("lin-ucb", "h1", rounds=20, seeds=4, dim=4).regret, expected, rtol=1e-5, atol=1e-6)
    assert groups == [4, 2, 1]


@pytest.mark.parametrize("options", [lanes.GRAPH_OPTIONS, {"xla_has_never_heard_of": 1}])
def test_a_gpu_is_asked_for_graphs_and_need_not_know_them(monkeypatch, options):
    lowered = jax.jit(lambda x: x + 1).lower(np.float32(1))
    monkeypatch.setattr(lanes, "GRAPH_OPTIONS", options)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert lanes.compile_loops(lowered)(np.float32(1)) == 2


def test_xla_knows_the_options_for_graphs():
    jax.jit(lambda x: x + 1).lower(np.float32(1)).compile(compiler_options=lanes.GRAPH_OPTIONS)


def test_progress_counts_up_to_the_end():
    seen = []
    run("neural-ucb", "h1", seeds=3, progress=lambda done, whole: seen.append((done, whole)), **TINY)
    assert seen[-1] == (120, 120)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_comparing_gives_each_algorithm_the_settings_it_has():
    results = compare("h1", ["neural-ucb", "neural-epsilon-greedy", "lin-ucb"], seeds=2, epsilon=0.5, **TINY)
    assert [result.algorithm for result in results] == ["neural-ucb", "neural-epsilon-greedy", "lin-ucb"]
    assert results[1].settings["epsilon"] == 0.5
    assert "epsilon" not in results[2].settings
    with pytest.raises(ValueError, match="epsilom .* is not a setting of any of these"):
        compare("h1", ["lin-ucb"], seeds=2, rounds=10, epsilom=0.5)


def test_divergence_is_counted_in_the_result():
    result = run("neural-ucb", "h2", seeds=2, **TINY | {"step_size": 100.0, "steps": 30})
    assert result.diverged == 2
    assert result.as_json()["diverged"] == 2
    assert result.as_json()["diverged_at"] == {"0": 10, "1": 10}


def test_json_has_what_it_promises_and_no_nan():
    record = json.loads(json.dumps(run("lin-ucb", "h1", rounds=20, seeds=1, dim=4).as_json(), allow_nan=False))
    assert record["final_regret"]["std"] is None
    assert record["settings"]["dim"] == 4
    assert record["seeds"] == [0]
    for name in ("algorithm", "problem", "rounds", "diverged", "compile_seconds", "seconds"):
        assert name in record


def test_lists_that_are_none_are_refused():
    with pytest.raises(ValueError, match="algorithms must be a list of names, got 'lin-ucb'"):
        compare("h1", "lin-ucb")
    for values in ("12", [], 3):
        with pytest.raises(ValueError, match="list of values for exploration"):
            run_grid("lin-ucb", "h1", {"exploration": values})


def test_algorithms_may_bring_settings_of_their_own():
    results = compare(
        "h1", {"lin-ucb": {"exploration": 0.5}, "glm-ucb": {}}, rounds=20, seeds=1, dim=4, exploration=0.2
    )
    assert [result.settings["exploration"] for result in results] == [0.5, 0.2]
    with pytest.raises(ValueError, match="epsilon: not a setting of lin-ucb"):
        compare("h1", {"lin-ucb": {"epsilon": 0.5}}, rounds=20, seeds=1)


def test_theory_and_practice_agree_on_the_precision_of_numbers():
    """ηmλ just below 1 stays below 1 inside the program: settings travel in float64."""
    result = run("neural-ucb", "h1", confidence="theoretical", seeds=1, **TINY | {"step_size": 0.2499999999})
    assert result.diverged == 0


def test_the_interval_is_students():
    low, high = interval(np.array([1.0, 2.0, 3.0, 4.0]))
    half = 3.182446305284263 * np.std([1, 2, 3, 4], ddof=1) / 2  # t quantile 0.975 with 3 degrees of freedom
    assert_allclose([low, high], [2.5 - half, 2.5 + half])
    assert all(math.isnan(end) for end in interval(np.array([1.0])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1.* got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number .* got 2.5"),
        ({"rounds": 10**12}, "rounds must be .* at most"),
        ({"seeds": 0}, "seeds must be .* got 0"),
        ({"seeds": 2.5}, "seeds must be .* got 2.5"),
        ({"seeds": 10**9}, "seeds must be at most"),
        ({"seeds": [2**32]}, "seeds must be a number of runs"),
        ({"seeds": []}, "seeds must be a number of runs"),
        ({"exploration": 10**400}, "exploration"),
        ({"exploration": 1e300}, "exploration .* between 1e-30 and 1e\\+30"),
        ({"exploration": np.True_}, "exploration"),
        ({"regularization": 1e-50}, "regularization"),
        ({"dim": 200_000}, "needs .* GB and .* GB are free"),
        ({"seeds": [1, 1]}, "seeds must differ"),
        ({"preset": "fast"}, "preset 'fast' is not known; known: paper"),
        ({"schedule": "now"}, "schedule must be"),
        ({"colour": 1}, "colour: not a setting of lin-ucb .* nor of h1"),
        ({"arms": 1}, "arms"),
    ],
)
def test_bad_arguments_are_refused_before_computing(arguments, message):
    with pytest.raises(ValueError, match=message):
        run("lin-ucb", "h1", **{"rounds": 10, "seeds": 1, **arguments})


def test_running_leaves_the_users_configuration_alone():
    before = jax.config.jax_enable_x64
    run("lin-ucb", "h1", rounds=5, seeds=1, dim=4)
    assert jax.config.jax_enable_x64 is before is False
    assert jax.numpy.zeros(1).dtype == "float32"


def test_time_left_follows_a_run_that_slows_down():
    share = np.linspace(0, 0.5, 20)
    assert_allclose(fit_end(share, 2 * share + 30 * share**2, 1.0), 32, rtol=1e-6)
    assert_allclose(fit_end(share, 7 * share, 1.0), 7, rtol=1e-6)
    assert Pace().left(10, 10) == "done"
