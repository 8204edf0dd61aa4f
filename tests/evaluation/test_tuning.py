"""Tuning on a log: chosen on one part, scored on a later one."""

import jax
import pytest

from neuralucb import InputError, UnsoundError, build
from neuralucb.evaluation import evaluate, tune_on_log
from neuralucb.logs.warm_start import learn_from
from tests.evaluation.worlds import DIM, in_memory, world

PLAIN = {"width": 8, "steps": 20, "units": "given", "retries": 0, "optimizer": "plain", "decay": "none"}
GRID = {"exploration": [0.0, 0.1, 3.0]}


def test_the_best_on_the_third_quarter_is_valued_on_the_last(key, tmp_path):
    log = in_memory(world(1200, 0))
    tuned = tune_on_log(key, "lin-ucb", log, grid=GRID)
    values = {}
    for exploration in GRID["exploration"]:
        policy = build("lin-ucb", dim=DIM, exploration=exploration)
        belief = learn_from(key, policy, log, end=600).belief
        parts = {"begin": 600, "end": 900}, {"begin": 900}
        choosing, scoring = (
            evaluate(policy, belief, log, methods=("doubly-robust",), **part).estimates[0] for part in parts
        )
        values[exploration] = choosing.value, scoring
    best = max(values, key=lambda each: values[each][0])
    assert tuned.setting == {"exploration": best}
    assert tuned.chosen.value == values[best][0]
    assert tuned.scored == values[best][1]
    assert tuned.optimism == tuned.chosen.value - tuned.scored.value
    assert tuned.chosen.value - tuned.chosen.low > tuned.chosen.high - tuned.chosen.value > 0
    assert f"exploration = {best}" in tuned.write(tmp_path / "mine.toml").read_text()
    assert "scored on later decisions" in repr(tuned)


def test_what_diverges_is_left_out_and_where_all_does_nothing_is_chosen(key):
    log = in_memory(world(400, 0))
    tuned = tune_on_log(key, "neural-epsilon-greedy", log, grid={"step_size": [0.01, 1e8]}, **PLAIN)
    assert tuned.setting == {"step_size": 0.01}
    assert tuned.diverged == ({"step_size": 1e8},)
    with pytest.raises(UnsoundError, match="every setting of neural-epsilon-greedy diverged.*first 200 decisions"):
        tune_on_log(key, "neural-epsilon-greedy", log, grid={"step_size": [1e7, 1e8]}, **PLAIN)


def test_a_log_that_is_too_short_and_a_grid_of_one_are_refused():
    with pytest.raises(InputError, match="log must have at least 200 decisions.*got 100 in memory"):
        tune_on_log(jax.random.key(0), "lin-ucb", in_memory(world(100, 0)), grid=GRID)
    with pytest.raises(InputError, match="at least two settings to choose from"):
        tune_on_log(jax.random.key(0), "lin-ucb", in_memory(world(400, 0)), grid={"exploration": [1]})
