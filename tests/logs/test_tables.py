"""Tables as logs: arms that were shown uniformly, or with propensities, and tables that are no log."""

from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import InputError, build, read_schedule
from neuralucb.evaluation import replay
from neuralucb.logs import open_log, open_table, write_log
from neuralucb.logs.batches import shape_of

X = np.random.default_rng(0).normal(size=(5000, 2))
ARMS = np.random.default_rng(1).choice(["left", "middle", "right"], 5000)
PAID = np.stack([X[:, 0], np.full(5000, 0.2), X[:, 1]], axis=1)
REWARDS = PAID[np.arange(5000), np.unique(ARMS, return_inverse=True)[1]]


def save(path, **arrays):
    np.savez(path, **{"X": X, "arm": ARMS, "reward": REWARDS} | arrays)
    return path


def test_every_row_is_a_decision_over_all_arms(tmp_path):
    log = open_table(save(tmp_path / "a.npz"), reward="reward", arm="arm")
    assert (log.arms, log.decisions, log.names.shared) == (3, 5000, ("0", "1"))
    chunks = list(log.chunks())
    assert len(chunks) == 2
    assert_allclose(np.concatenate([chunk.propensity for chunk in chunks]), 1 / 3)
    assert_array_equal(np.concatenate([chunk.reward for chunk in chunks]), REWARDS)
    assert_array_equal(np.array(["left", "middle", "right"])[np.concatenate([chunk.arm for chunk in chunks])], ARMS)
    assert_array_equal(np.concatenate([chunk.line for chunk in chunks]), np.arange(1, 5001))
    write_log(tmp_path / "log.parquet", log.chunks())
    assert open_log(tmp_path / "log.parquet").names == log.names


def test_replay_on_uniformly_logged_arms_finds_what_the_policy_earns(tmp_path):
    """Li et al. 2011: of K arms logged uniformly, a Kth of the decisions agrees, and these are unbiased."""
    log = open_table(save(tmp_path / "a.npz"), reward="reward", arm="arm")
    policy = build("uniform", **shape_of(log))
    played = replay(jax.random.key(0), policy, log, schedule=read_schedule("100"))
    assert abs(played.accepted - 5000 / 3) < 5 * np.sqrt(5000 * 2 / 9)
    assert abs(played.estimate.value - PAID.mean()) < 5 * played.estimate.error


def test_arms_shown_unevenly_need_propensities(tmp_path):
    uneven = np.random.default_rng(2).choice(["a", "b"], 5000, p=[0.6, 0.4])
    path = save(tmp_path / "a.npz", arm=uneven, p=np.where(uneven == "a", 0.6, 0.4))
    with pytest.raises(InputError, match=r"must have been shown uniformly at random, but a was shown .* --propensity"):
        open_table(path, reward="reward", arm="arm")
    (first, _) = open_table(path, reward="reward", arm="arm", propensity="p").chunks()
    assert set(first.propensity) == {0.6, 0.4}
    assert first.probabilities is None


def test_contexts_may_be_scaled_and_have_words(tmp_path):
    (tmp_path / "a.csv").write_text("age,city,arm,r\n" + "20,Oslo,a,1\n40,Rome,b,0\n60,Rome,a,1\n80,Oslo,b,2\n" * 3)
    plain = open_table(tmp_path / "a.csv", reward="r", arm="arm")
    assert plain.names.shared == ("age", "city=Oslo", "city=Rome")
    (chunk,) = plain.chunks()
    assert_array_equal(chunk.shared[0], [20, 1, 0])
    (scaled,) = open_table(tmp_path / "a.csv", reward="r", arm="arm", drop="city", input_scaling="standard").chunks()
    assert_allclose(np.abs(scaled.shared), 1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"arm": np.arange(5000)},
            "arm arm of a.npz must have from 2 to half as many different values as rows, got 5000",
        ),
        ({"arm": np.zeros(5000)}, "got 1 in 5000 rows"),
        ({"arm": np.where(ARMS == "left", "", ARMS)}, "arm arm of a.npz has a missing value in row"),
        ({"reward": np.where(ARMS == "left", np.nan, 1)}, "reward reward of a.npz has a missing value in row"),
        ({"reward": ARMS}, "reward in .*a.npz must be numbers, got <U6"),
        (
            {"reward": REWARDS[:9]},
            r"reward in .*a.npz must have one reward for each of the 5000 rows, got shape \(9,\)",
        ),
        ({"p": np.zeros(5000)}, "a.npz row 1: propensity must be above 0 and at most 1, got 0"),
        ({"X": np.ones((5000, 3, 2))}, r"X in .*a.npz must be \(n, d\) for a log"),
        ({"X": X * np.inf}, "column 0 of a.npz must be finite"),
    ],
)
def test_tables_that_are_no_log_are_refused(tmp_path, arrays, message):
    path = Path(save(tmp_path / "a.npz", **arrays))
    with pytest.raises(InputError, match=message):
        list(open_table(path, reward="reward", arm="arm", propensity="p" if "p" in arrays else None).chunks())
