"""Which decisions are used: deterministic ones are refused, or left out and counted."""

import jax
import numpy as np
import pytest

from neuralucb.evaluation import evaluate, replay
from neuralucb.logs import recorded
from tests.evaluation.worlds import (
    ARMS,
    DIM,
    POLICY,
    in_memory,
    world,
)

DETERMINISTIC = {"null": np.nan, "one": 1.0}


@pytest.mark.parametrize("written", DETERMINISTIC.values(), ids=DETERMINISTIC)
@pytest.mark.parametrize("which", [slice(None), slice(0, -5), slice(7, 8)], ids=["all", "nearly all", "one"])
def test_a_deterministic_decision_is_not_divided_by(written, which):
    chunk = world(200, 0)._replace(probabilities=None)
    chunk.propensity[which] = written
    line = chunk.line[which][0]
    log = in_memory(chunk)
    for method in ("ips", "snips", "doubly-robust", "switch"):
        with pytest.raises(ValueError, match=f"decision {line} was deterministic"):
            evaluate(POLICY, (), log, methods=(method,))
    with pytest.raises(ValueError, match=f"decision {line} was deterministic"):
        replay(jax.random.key(0), POLICY, log, schedule="50")
    made = evaluate(POLICY, (), log, methods=("direct",))
    assert made.overlap is None
    assert (made.decisions, made.deterministic) == (200, 0)


@pytest.mark.parametrize("written", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_deterministic_decisions_are_left_out_and_counted_on_request(written):
    chunk = world(600, 0, missing=0.1)._replace(probabilities=None)
    deterministic = np.arange(600) % 3 == 0
    seen = ~np.isnan(chunk.reward)
    spoiled = in_memory(chunk._replace(propensity=np.where(deterministic, written, chunk.propensity)))
    pure = in_memory(chunk._replace(reward=np.where(deterministic, np.nan, chunk.reward)))
    made, expected_ = (evaluate(POLICY, (), log, skip_deterministic=True) for log in (spoiled, pure))
    assert made.estimates == expected_.estimates
    assert (made.decisions, made.deterministic) == ((seen & ~deterministic).sum(), (seen & deterministic).sum())
    along, as_pure = (
        replay(jax.random.key(0), POLICY, log, schedule="50", skip_deterministic=True) for log in (spoiled, pure)
    )
    assert along.estimate == as_pure.estimate
    assert along.deterministic == (seen & deterministic).sum()
    with pytest.raises(
        ValueError, match="no decision to evaluate with in this part: 69 have no reward, 531 were deterministic"
    ):
        evaluate(POLICY, (), in_memory(chunk._replace(propensity=np.ones(600))), skip_deterministic=True)


@pytest.mark.parametrize("written", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_a_decision_with_one_arm_has_a_propensity_of_1_and_can_be_used(written):
    able = np.asarray([[True, False, False], [True, True, True]] * 50)
    arm = np.asarray([0, 0, 0, 1, 0, 2] * 16 + [0, 0, 0, 1])
    chunk = recorded(
        np.ones((100, ARMS, DIM)), arm, arm.astype(float), able / able.sum(1, keepdims=True), available=able
    )
    chunk = chunk._replace(propensity=np.where(able.all(axis=1), 1 / 3, written), probabilities=None)
    assert evaluate(POLICY, (), in_memory(chunk)).deterministic == 0
    assert replay(jax.random.key(0), POLICY, in_memory(chunk), schedule="50").decisions == 100
