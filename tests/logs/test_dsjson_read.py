"""dsjson, read: what Vowpal Wabbit writes, and all that can be wrong with a line."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, convert, open_log, read_chunks, write_log
from neuralucb.logs.dsjson_read import Events
from tests.logs.examples import (
    EVENT,
    NUMBERED,
    lines_kept,
    numbered,
    same,
    together,
    with_context,
    without,
    write_lines,
)


def test_a_log_of_vowpal_wabbit_is_read_with_keys_in_any_order(tmp_path):
    path = write_lines(tmp_path / "log.json", EVENT, dict(reversed(EVENT.items())), without("_labelIndex"))
    chunk = together(path)
    assert chunk.names.shared == ("User/age", "User/visits")
    assert chunk.names.own == ("Item/price", "Item/new")
    for row in range(3):
        assert_array_equal(chunk.own[3 * row : 3 * row + 3], [[0.1, 1], [0.2, 0], [0.3, 0]])
        assert_array_equal(chunk.probabilities[3 * row : 3 * row + 3], [0.25, 0.5, 0.25])
    assert_array_equal(chunk.shared, [[0.5, 3]] * 3)
    assert_array_equal(chunk.arm, [1, 1, 1])
    assert_array_equal(chunk.reward, [1, 1, 1])
    assert str(chunk.time[0]) == "2026-02-04T16:31:29.246000"


def test_what_vowpal_wabbit_would_not_learn_from_is_left_out_and_thinned_logs_have_weights(tmp_path):
    unlabelled = {name: value for name, value in EVENT.items() if not name.startswith("_label")}
    path = write_lines(tmp_path / "log.dsjson", EVENT | {"_skipLearn": True}, EVENT | {"pdrop": 0.75}, unlabelled)
    chunk = together(path)
    assert_array_equal(chunk.line, [2, 3])
    assert_array_equal(chunk.weight, [4, 1])
    assert_array_equal(chunk.reward, [1, np.nan])
    assert_array_equal(chunk.propensity, [0.5, 0.5])
    convert(path, tmp_path / "again.dsjson")
    same(together(tmp_path / "again.dsjson"), chunk)


BAD = {
    "a probability of 0": (EVENT | {"_label_probability": 0.0, "p": [0, 0.5, 0.5]}, "propensity must be above 0"),
    "a probability of 1.5": (EVENT | {"_label_probability": 1.5}, "propensity must be above 0 and at most 1, got 1.5"),
    "a probability of null": (EVENT | {"_label_probability": None}, "_label_probability is missing"),
    "a probability in words": (EVENT | {"_label_probability": "half"}, "_label_probability is not a number"),
    "a cost in words": (EVENT | {"_label_cost": "-1"}, "_label_cost is not a number"),
    "a cost of NaN": (EVENT | {"_label_cost": float("nan")}, "not JSON"),
    "a negative probability": (EVENT | {"p": [0.5, 0.75, -0.25]}, "a probability is below 0"),
    "probabilities that add to more": (EVENT | {"p": [0.5, 0.5, 0.5]}, "probabilities must sum to 1, got 1.5"),
    "another probability": (EVENT | {"p": [0.25, 0.5, 0.25]}, "the propensity 0.5 is not the arm's probability"),
    "an action outside": (EVENT | {"_label_Action": 7, "_labelIndex": 6}, "_label_Action is not among"),
    "an action of true": (EVENT | {"_label_Action": True, "_labelIndex": None}, "_label_Action is not a whole number"),
    "two labels": (EVENT | {"_labelIndex": 2}, "name different actions"),
    "an index in words": (EVENT | {"_label_Action": None, "_labelIndex": "1"}, "the label's action a whole number"),
    "another action first": (EVENT | {"a": [1, 2, 3]}, "is not the first in a"),
    "a ranking with a hole": (EVENT | {"a": [2, 2, 3]}, "a must rank every action"),
    "a short ranking": (EVENT | {"a": [2, 1]}, "c has 3 actions, a ranks 2"),
    "a ranking in words": (EVENT | {"a": ["2", "1", "3"]}, "a must be a list of whole numbers"),
    "short probabilities": (EVENT | {"p": [0.5, 0.5]}, "p has 2 probabilities"),
    "no a": (without("a"), "a is missing"),
    "no c": ({key: EVENT[key] for key in ("a", "p")}, "c is missing"),
    "no actions": (EVENT | {"c": {}}, "_multi is missing"),
    "no label's action": ({k: v for k, v in without("_label_Action").items() if k != "_labelIndex"}, "_label_Action"),
    "no label's probability": (without("_label_probability"), "_label_probability is missing"),
    "a dangling reward": ({"EventId": "x", "RewardValue": 1.0}, "a reward without a decision"),
    "several decisions": (EVENT | {"c": {"_slots": []}}, "several decisions in one event"),
    "free text": (with_context(User={"_text": "hello"}), "_text is free text"),
    "everything dropped": (EVENT | {"pdrop": 1}, "pdrop must be"),
    "no time": (EVENT | {"Timestamp": "yesterday"}, "Timestamp is not a time"),
    "a list": ([1, 2], "not a JSON object"),
    "a huge feature": (with_context(User={"age": 10**400}), "an int too large"),
    "no arms": (EVENT | {"a": [], "p": [], "c": {"_multi": []}}, "no arm was available"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_is_refused_with_its_number_and_reason_or_skipped_and_counted(tmp_path, case):
    event, reason = BAD[case]
    path = write_lines(tmp_path / "log.dsjson", EVENT, event, EVENT)
    with pytest.raises(ValueError, match="log.dsjson line 2: ") as refused:
        list(read_chunks(path))
    skipped = Skipped()
    kept = list(read_chunks(path, skipped))
    assert skipped.count == 1
    assert_array_equal(np.concatenate([chunk.line for chunk in kept]), [1, 3])
    assert_array_equal(np.concatenate([chunk.own for chunk in kept])[:, 0], [0.1, 0.2, 0.3] * 2)
    if case != "a huge feature":
        assert reason in str(refused.value)
    with pytest.raises(ValueError, match="log.dsjson line 2"):
        convert(path, tmp_path / "log.parquet")
    assert not (tmp_path / "log.parquet").exists()


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(inner, (*path, key))


def test_whatever_stands_in_a_line_it_is_used_or_refused_and_never_breaks_the_reader(tmp_path):
    odd = [
        None,
        True,
        -1,
        0,
        1.5,
        10**30,
        1e308,
        "",
        "2",
        "é%s",
        [],
        [1],
        {},
        {"_x": 1},
        {"a": {"b": [None, {"c": "d"}]}},
    ]
    random, places = np.random.default_rng(5), list(paths_of(EVENT))[1:]
    events = []
    for _ in range(1500):
        event = json.loads(json.dumps(EVENT))
        *parents, last = places[random.integers(len(places))]
        inner = event
        for key in parents:
            inner = inner[key]
        if random.random() < 0.2 and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = odd[random.integers(len(odd))]
        events += [event, EVENT]
    skipped = Skipped()
    chunks = list(read_chunks(write_lines(tmp_path / "log.dsjson", *events), skipped))
    lines = np.concatenate([chunk.line for chunk in chunks])
    assert skipped.count + len(lines) == 3000
    assert set(range(2, 3001, 2)) <= set(lines.tolist())  # the good ones between are all there, and right
    for chunk in chunks:
        good = np.flatnonzero(chunk.line % 2 == 0)
        begins = np.cumsum(chunk.counts) - chunk.counts
        assert_array_equal(chunk.shared[good, :2], [[0.5, 3]] * len(good))
        assert_array_equal(chunk.own[begins[good] + 1, :2], [[0.2, 0]] * len(good))
    write_log(tmp_path / "again.dsjson", chunks)
    assert sum(len(chunk.line) for chunk in read_chunks(tmp_path / "again.dsjson")) == len(lines)


def test_a_torn_last_line_is_told_apart(tmp_path):
    path = write_lines(tmp_path / "log.dsjson", EVENT, EVENT)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="line 2: the last line is incomplete"):
        list(read_chunks(path))


def nested(depth):
    inner = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (NUMBERED, EVENT, "it does not fit the lines before it"),
        (EVENT, NUMBERED, "it does not fit the lines before it"),
        (NUMBERED, EVENT | {"c": {"_multi": [{}, {}, {}]}}, "it does not fit the lines before it"),
        (NUMBERED, numbered("0", "²", "2"), "it does not fit the lines before it"),
        (NUMBERED, numbered("0", "99999999999", "2"), "arm 99999999999 is not in 0 to 65535"),
        (NUMBERED, numbered("0", "1999999999", "2"), "arm 1999999999 is not in 0 to 65535"),
        (NUMBERED, numbered("0", "1", "1"), "an arm is listed twice"),
        (EVENT, with_context(User=nested(900)), "its features are nested too deeply"),
        (EVENT, EVENT | {"Timestamp": "0001-01-01T00:00:00+14:00"}, "Timestamp is not a time"),
    ],
)
@pytest.mark.parametrize("before", [1, 70])
def test_an_event_of_another_kind_is_refused_with_its_line_or_skipped(tmp_path, first, second, reason, before):
    path = write_lines(tmp_path / "log.dsjson", *[first] * before, second, *[first] * before)
    with pytest.raises(ValueError, match=f"log.dsjson line {before + 1}: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert len(lines_kept(path, skipped)) == 2 * before
    assert skipped.count == 1


def test_what_is_not_to_be_learned_from_is_not_checked(tmp_path):
    odd = EVENT | {"_skipLearn": True, "a": [2, 1], "c": {"_multi": [{"_text": "free"}]}}
    assert lines_kept(write_lines(tmp_path / "log.dsjson", EVENT, odd, {"_skipLearn": True}, EVENT), None) == [1, 4]


def test_reading_takes_as_long_for_events_that_are_left_out():
    """One event in two is bad: the others are not counted again for each of them."""
    import time

    def seconds(count):
        batch, start = Events(), time.process_time()
        for line in range(count):
            batch.add(line, EVENT)
            with pytest.raises(ValueError, match="neither"):
                batch.add(line, {key: EVENT[key] for key in "ac"})
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 8 * seconds(1000) + 0.1


@pytest.mark.parametrize(
    "first",
    [
        NUMBERED | {"_label_probability": 0.0},
        with_context(User={f"f{number}": 1.0 for number in range(4096)}) | {"_label_probability": 0.0},
        with_context(User={"age": 1.0, "odd": 1e39}),
        with_context(Other={"x": 1.0}) | {"a": [2, 2, 3]},
        with_context(Other={"x": 1.0}, _multi=[{"Item": {"price": 1.0}}, {"_text": "words"}, {}]),
    ],
)
def test_an_event_that_cannot_be_used_decides_nothing_about_the_others(tmp_path, first):
    good = [EVENT | {"EventId": str(number)} for number in range(20)]
    alone = open_log(write_lines(tmp_path / "alone.dsjson", *good))
    skipped = Skipped()
    log = open_log(write_lines(tmp_path / "log.dsjson", first, *good), skipped)
    assert skipped.count == 1
    assert (log.names, log.decisions) == (alone.names, 20)
    for one, other in zip(log.chunks(), alone.chunks(), strict=True):
        assert_array_equal(one.shared, other.shared)
        assert_array_equal(one.own, other.own)


@pytest.mark.parametrize("changes", [{"_label_cost": 1e39}, {"_label_cost": -1e39}])
def test_a_reward_beyond_float32_is_refused(tmp_path, changes):
    with pytest.raises(ValueError, match=r"line 1: reward must be finite, and at most 3\.4e\+38 in magnitude, got"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", EVENT | changes)))


def test_a_feature_beyond_float32_is_refused(tmp_path):
    event = with_context(User={"age": 1e39})
    with pytest.raises(ValueError, match=r"line 1: a feature is NaN or infinite, or above 3\.4e\+38 in magnitude"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", event)))
