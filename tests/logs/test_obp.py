"""Open Bandit Pipeline's dictionary: kept as it was, or refused in words."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import from_obp, read_chunks, to_obp, write_log
from tests.logs.examples import decisions, feedback


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position": np.arange(50) % 3},
        {"reward": np.random.default_rng(3).normal(size=50)},
        {"action_context": ...},
        {"pi_b": ..., "expected_reward": ...},
    ],
)
@pytest.mark.parametrize("through", ["memory", "log.npz", "log.parquet"])
def test_an_obp_dictionary_keeps_its_keys_shapes_types_and_values(tmp_path, changes, through):
    given = {key: value for key, value in (feedback() | changes).items() if value is not ...}
    chunks = list(from_obp(given))
    if through != "memory":
        write_log(tmp_path / through, chunks)
        chunks = list(read_chunks(tmp_path / through))
    back = to_obp(chunks)
    assert set(back) == set(given)
    for key, value in given.items():
        assert type(back[key]) is type(value), key
        if isinstance(value, np.ndarray):
            assert (back[key].dtype, back[key].shape) == (value.dtype, value.shape), key
            assert_array_equal(back[key], value, key)
        else:
            assert back[key] == value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pscore": np.zeros(50)}, "round 1: propensity must be above 0"),
        ({"pscore": np.full(50, np.nan)}, "round 1: reward or pscore is NaN"),
        ({"action": np.full(50, 9)}, "round 1: arm 9 is not among"),
        ({"context": np.zeros((49, 4))}, "context must have shape \\(50, any\\), got \\(49, 4\\)"),
        ({"reward": None}, "reward must have shape"),
    ],
)
def test_a_bad_obp_dictionary_is_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        list(from_obp(feedback() | changes))
    with pytest.raises(ValueError, match="has no pscore"):
        list(from_obp({key: value for key, value in feedback().items() if key != "pscore"}))


def test_what_obp_cannot_say_is_not_written(tmp_path):
    for chunk, reason in (
        (decisions(masked=True), "does not have all 4 arms available"),
        (decisions(), "features that change from decision to decision"),
        (decisions(shared=True)._replace(reward=np.full(100, np.nan)), "has no reward"),
    ):
        with pytest.raises(ValueError, match=reason):
            to_obp([chunk])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action": np.full(50, 2**32)}, "round 1: arm 4294967296 is not among"),
        ({"action": np.full(50, 1e30)}, "round 1: action must be a whole number"),
        ({"action": np.full(50, 0.9)}, "round 1: action must be a whole number"),
        ({"pi_b": np.full((50, 3, 1), np.nan)}, "round 1: pi_b has NaN"),
        ({"expected_reward": np.full((50, 3), np.nan)}, "round 1: expected_reward has NaN"),
        ({"context": np.full((50, 4), "a")}, "context must have numbers, got an array of <U1"),
        ({"reward": np.full(50, "a")}, "reward must have numbers"),
        ({"position": np.full(50, 0.5)}, "position must have whole numbers"),
        ({"n_rounds": np.asarray([50, 50])}, "n_rounds must be one whole number"),
        ({"n_actions": 2.5}, "n_actions must be one whole number, got 2.5"),
        ({"n_actions": 10**9}, "n_actions must be at most 65536"),
        ({"context": [[1.0], [1.0, 2.0]]}, "context must be an array"),
    ],
)
@pytest.mark.parametrize("through", ["memory", "npz"])
def test_an_odd_obp_dictionary_is_refused_in_words(tmp_path, changes, reason, through):
    given = {name: value for name, value in (feedback() | changes).items() if value is not None}
    if through == "memory":
        with pytest.raises(ValueError, match=reason):
            list(from_obp(given))
    elif "must be an array" not in reason:
        np.savez(tmp_path / "log.npz", **given)
        with pytest.raises(ValueError, match="log.npz") as refused:
            list(read_chunks(tmp_path / "log.npz"))
        assert reason.removeprefix("round 1: ")[:30] in str(refused.value)


def test_an_obp_dictionary_may_have_lists_and_none(tmp_path):
    given = feedback() | {"expected_reward": None, "action_context": None, "pi_b": None}
    listed = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in given.items()}
    back = to_obp(from_obp(listed))
    assert set(back) == {"n_rounds", "n_actions", "context", "action", "position", "reward", "pscore"}
    assert_array_equal(back["context"], given["context"])


@pytest.mark.parametrize("through", ["memory", "log.npz", "log.parquet"])
def test_an_obp_dictionary_keeps_whole_numbers_of_32_bits(tmp_path, through):
    given = feedback() | {"position": np.arange(50, dtype=np.int32) % 3}
    given |= {name: given[name].astype(np.int32) for name in ("action", "reward")}
    chunks = list(from_obp(given))
    if through != "memory":
        write_log(tmp_path / through, chunks)
        chunks = list(read_chunks(tmp_path / through))
    back = to_obp(chunks)
    for name in ("action", "reward", "position"):
        assert back[name].dtype == np.int32, name
        assert_array_equal(back[name], given[name])


def test_an_npz_with_none_in_it_names_the_key(tmp_path):
    np.savez(tmp_path / "log.npz", **feedback())  # position is None, which only a pickle can say
    with pytest.raises(ValueError, match="log.npz cannot be read: position is not a plain array; leave out keys"):
        list(read_chunks(tmp_path / "log.npz"))
