"""Results: statistics over seeds, divergence, JSON without NaN, frames, figures and files."""

import json

import numpy as np
import pandas
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, build, run, synthetic
from neuralucb.experiments import Comparison, Result
from tests.experiments.results import made_up
from tests.experiments.sizes import TINY


@pytest.fixture(scope="module")
def traced():
    return run("neural-epsilon-greedy", "h1", seeds=2, epsilon=0.5, trace=True, **TINY)


def test_divergence_is_counted_in_the_result():
    result = run("neural-ucb", "h2", seeds=2, **TINY | {"step_size": 100.0, "steps": 30})
    assert result.diverged == 2
    assert result.as_json()["diverged"] == 2
    assert result.as_json()["diverged_at"] == {"0": 10, "1": 10}
    assert "2 of 2 diverged" in str(result)


def test_json_has_what_it_promises_and_no_nan():
    record = json.loads(json.dumps(made_up("lin-ucb", final=[3.0]).as_json(), allow_nan=False))
    assert record["final_regret"]["std"] is record["final_regret"]["interval95"] is None
    assert record["final_regret"]["remark"].startswith("1 seed: no interval")
    assert record["settings"]["width"] == 20
    assert record["seeds"] == [0]
    for name in ("algorithm", "problem", "rounds", "diverged", "compile_seconds", "seconds", "version", "jax"):
        assert name in record


def test_a_result_is_printed_in_few_words_with_the_paper_s_name():
    ten = made_up("neural-ucb", final=np.linspace(90, 130, 10), rounds=2000)
    assert str(ten) == "NeuralUCB on h1, 2000 rounds, 10 seeds: final regret 110 (95 % interval 100 to 120)"
    assert repr(ten) == "Result(NeuralUCB on h1, 2000 rounds, 10 seeds: regret 110 (95 % interval 100 to 120))"
    assert str(ten.summary()) == "110 (95 % interval 100 to 120), standard deviation 13.5, 10 seeds"
    one = made_up("mine", final=[0.00123], rounds=1)
    assert str(one).splitlines()[0] == "mine on h1, 1 round, 1 seed: final regret 0.00123"
    assert "1 seed: no interval" in str(one)
    assert "1 seed: no interval" in str(one.summary())
    assert len(repr(made_up("mine", traced=True, rounds=10_000).trace)) < 100


def test_few_seeds_are_remarked_in_the_summary_and_the_page():
    assert "4 seeds: too few" in made_up("lin-ucb", final=range(4))._repr_html_()
    assert made_up("lin-ucb", final=range(5)).summary().remark == ""


def test_a_page_escapes_the_names_it_is_given():
    page = made_up("lin-ucb", problem="<script>")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "LinUCB" in page


def test_a_trace_is_what_happened(traced):
    trace = traced.trace
    assert_allclose(np.cumsum(trace.regret, axis=1, dtype=np.float64), traced.regret)
    assert trace.arm.shape == trace.loss.shape == (2, 40)
    assert set(np.unique(trace.arm)) <= {0, 1, 2, 3}
    assert_allclose(np.unique(trace.propensity), [0.125, 0.625], rtol=1e-6)  # ε/K, and 1 - ε + ε/K
    assert_array_equal(np.flatnonzero(np.isfinite(trace.loss[0])) + 1, [10, 20, 30, 40])
    assert trace.reward.std() > 0


def test_a_trace_changes_nothing_of_the_run(traced):
    plain = run("neural-epsilon-greedy", "h1", seeds=2, epsilon=0.5, **TINY)
    assert plain.trace is None
    assert_allclose(plain.regret, traced.regret, rtol=1e-5, atol=1e-5)


def test_a_frame_is_in_long_form(traced):
    frame = traced.to_frame()
    assert list(frame) == [
        *("algorithm", "problem", "seed", "round", "regret"),
        *("arm", "reward", "instantaneous_regret", "propensity", "loss"),
    ]  # fmt: skip
    assert len(frame) == 80
    last = frame[frame["round"] == 40].sort_values("seed")
    assert_allclose(last.regret, traced.final_regret)
    summed = frame.groupby("seed").instantaneous_regret.sum()
    assert_allclose(summed, traced.final_regret, rtol=1e-5)
    assert set(frame.algorithm) == {"neural-epsilon-greedy"}


def test_a_frame_may_keep_every_few_rounds_and_the_last():
    result = made_up("lin-ucb", final=[7.0], rounds=7)
    assert list(result.to_frame()) == ["algorithm", "problem", "seed", "round", "regret"]
    assert list(result.to_frame(every=3)["round"]) == [3, 6, 7]
    assert list(result.to_frame(every=100)["round"]) == [7]
    for every in (0, -1, 2.5, None):
        with pytest.raises(InputError, match="every must be a whole number"):
            result.to_frame(every=every)


def test_a_plot_gives_its_axes_and_draws_into_given_ones():
    result = made_up("neural-ucb0", final=range(6))
    axes = result.plot()
    assert axes.get_title() == "h1 (6 seeds)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["NeuralUCB₀"]
    _, (left, right) = pyplot.subplots(1, 2)
    assert result.plot(right) is right
    assert not left.lines
    assert len(right.lines) == 1
    pyplot.close("all")


@pytest.mark.parametrize("with_trace", [False, True])
def test_a_file_gives_back_all_of_the_result(tmp_path, with_trace):
    result = made_up(
        "lin-ucb", traced=with_trace, seeds=(2**32 - 1, 7), diverged_at=np.array([0, 3]), version="0.0.9", device="H200"
    )
    path = result.save(tmp_path / "new" / "a.parquet")
    found = Result.load(str(path))
    assert found.as_json() == result.as_json()
    assert_array_equal(found.regret, result.regret)
    assert (found.trace is None) is not with_trace
    for ours, theirs in zip(found.trace or (), result.trace or (), strict=True):
        assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert found.jax_version == result.jax_version
    frame = pandas.read_parquet(path)
    assert list(frame.final_regret) == [1.0, 2.0]


def test_files_that_are_none_of_ours_are_refused(tmp_path):
    foreign, text = tmp_path / "foreign.parquet", tmp_path / "text.parquet"
    pandas.DataFrame({"a": [1]}).to_parquet(foreign)
    text.write_text("regret")
    for path, message in (
        (foreign, "was not written by Result.save"),
        (text, "cannot be read as Parquet"),
        (tmp_path / "none.parquet", "was not found"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InputError, match=message):
            Result.load(path)
    with pytest.raises(InputError, match="cannot be written"):
        made_up("lin-ucb").save(text / "below" / "a.parquet")
    two = Comparison((made_up("lin-ucb"), made_up("glm-ucb"))).save(tmp_path / "two.parquet")
    with pytest.raises(InputError, match="holds 2 results; Comparison.load reads them"):
        Result.load(two)


def test_a_detailed_simulation_keeps_rewards_and_losses():
    import jax

    from neuralucb import read_schedule, simulate

    policy, problem = build("neural-ucb", dim=4, width=4, steps=3, batch_size=4), synthetic("h1", dim=4, arms=3)
    options = {"rounds": 25, "schedule": read_schedule("10")}
    plain, _ = simulate(jax.random.key(2), policy, problem, **options)
    trace, _ = simulate(jax.random.key(2), policy, problem, **options, detailed=True)
    assert plain.detail is None
    assert_array_equal(trace.arm, plain.arm)
    assert np.asarray(trace.detail.reward).shape == (25,)
    assert trace.detail.loss[19] == trace.loss
    # all arms tie until the first lesson, which tells the units
    assert_allclose(trace.detail.propensity, np.repeat([1 / 3, 1], [10, 15]), rtol=1e-6)
