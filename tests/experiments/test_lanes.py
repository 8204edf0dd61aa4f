"""Lanes: the same numbers in any group, in groups that fit the memory, and loops compiled for a GPU."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import run
from neuralucb.experiments import lanes


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
    monkeypatch.setattr(lanes, "SHORT", 0)
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


@pytest.mark.parametrize("options", [lanes.GRAPH_OPTIONS, lanes.SOON_OPTIONS])
def test_xla_knows_the_options(options):
    jax.jit(lambda x: x + 1).lower(np.float32(1)).compile(compiler_options=options)


def test_a_short_run_is_compiled_sooner_where_xla_knows_how(monkeypatch):
    soon, compile_soon = [], lanes.compile_soon
    monkeypatch.setattr(lanes, "compile_soon", lambda lowered: soon.append(lowered) or compile_soon(lowered))
    monkeypatch.setattr(lanes, "SOON_OPTIONS", {"xla_has_never_heard_of": 1})
    monkeypatch.setattr(lanes, "SHORT", 40)
    longer = run("lin-ucb", "h3", rounds=21, seeds=2, dim=4).regret
    assert not soon
    assert_allclose(run("lin-ucb", "h3", rounds=20, seeds=2, dim=4).regret, longer[:, :20], rtol=1e-5, atol=1e-6)
    assert len(soon) == 2  # both functions of a program
