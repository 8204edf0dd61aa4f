"""Features of JSON objects as columns: events read at once are read as each alone."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import convert, dsjson_read as dsjson, json_features as features, read_chunks
from neuralucb.logs.dsjson_read import Events
from tests.logs.examples import EVENT, numbered, same, together, together_wide, with_context, write_lines


def test_words_and_lists_get_columns_of_their_own_that_stay(tmp_path):
    actions = [{"i": {"constant": 1, "id": "tea"}, "j": [{"hot": "yes"}, {"tags": [0.5, 0.25]}]}, {"i": {"id": "cola"}}]
    first = EVENT | {"a": [2, 1], "p": [0.5, 0.5], "c": {"weather": "sunny", "_multi": actions}}
    later = EVENT | {"c": {"weather": "snow", "mood": None, "_multi": EVENT["c"]["_multi"]}}
    path = write_lines(tmp_path / "log.dsjson", first, later)
    chunk = together(path)
    assert chunk.names.shared == ("weather=sunny", "weather=snow")
    assert chunk.names.own[:4] == ("i/constant", "i/id=tea", "j/hot=yes", "j/tags[0]")
    assert_array_equal(chunk.shared, np.eye(2))
    assert_array_equal(chunk.own[0, :5], [1, 1, 1, 0.5, 0.25])
    convert(path, tmp_path / "again.dsjson")
    again = json.loads((tmp_path / "again.dsjson").read_text().splitlines()[0])["c"]
    assert again["weather"] == "sunny"  # a word is a word again, and 0 is left out
    assert again["_multi"][1] == {"i": {"id": "cola"}}
    same(together(tmp_path / "again.dsjson"), chunk)


def test_other_digits_are_features_and_not_arms(tmp_path):
    (chunk,) = read_chunks(write_lines(tmp_path / "log.dsjson", numbered("0", "²", "2")))
    assert chunk.names.own == ("arm/0", "arm/²", "arm/2")
    assert_array_equal(chunk.arms, [0, 1, 2])


def test_events_read_at_once_are_read_as_each_alone(tmp_path):
    random = np.random.default_rng(0)

    def shuffled(space):
        return {name: space[name] for name in random.permutation(list(space)).tolist()}

    def event(n):
        user = shuffled({"age": float(n), "hour": n % 24, "new": n == 70})
        return with_context(User=user, One={"x": -n}, None_={}, List=[n, 0.5, n + 1])

    events = [event(n) for n in range(200)]
    path = write_lines(tmp_path / "log.dsjson", *events)
    chunk, alone = together_wide(path), Events()
    for line, one in enumerate(events, 1):
        alone.add(line, one)
    same(chunk, alone.chunk(None))
    place = {name: column for column, name in enumerate(chunk.names.shared)}
    wanted = {
        "User/age": range(200),
        "User/hour": np.arange(200) % 24,
        "List[2]": range(1, 201),
        "One/x": range(0, -200, -1),
    }
    for name, values in wanted.items():
        assert_array_equal(chunk.shared[:, place[name]], values)
    assert_array_equal(np.flatnonzero(chunk.shared[:, place["User/new"]]), [70])


@pytest.mark.parametrize(
    "odd", [[1.0, "2", 3.0], [1.0, None, 3.0], {"a": 1, "b": 2, "c": 3}, "abc", [1.0, 2.0], [[1, 2, 3]]]
)
def test_a_list_may_hold_anything_among_lists_of_numbers(tmp_path, odd):
    plain, other = with_context(User=[1.0, 2.0, 3.0]), with_context(User=odd)
    chunk = together_wide(write_lines(tmp_path / "log.dsjson", *[plain] * 30, other, *[plain] * 30))
    alone = Events()
    for line, one in enumerate([*[plain] * 30, other, *[plain] * 30], 1):
        alone.add(line, one)
    same(chunk, alone.chunk(None))


ODD = (
    {"x": 5}, {"x": None}, {"x": False}, {"x": True}, {"x": "a"}, {"x": "b"}, {"x": "5"}, {"x": []}, {"x": {}},
    {"k": {"a": 1}}, {"k": [["a", 1]]}, {"k": {"": {"a": 2}}}, {"k": [{"a": 3}]}, {"k": ["a", {"a": "a"}, 7]},
    {"k": {"a": None, "b": 2}}, {"k": {"a": 2, "b": None}}, {"k": {"_a": 9, "b": 2}}, {"_k": "w", "x": "a"}, {},
    {"x": 1, "k": {"w": "a", "n": 2.5}}, {"k": {"n": 2.5, "w": "a"}, "x": 1}, {"0": 1}, {"k": [0, None, "0"]},
)  # fmt: skip


def test_what_was_read_once_is_read_the_same_again():
    remembers, forgets = features.Features(), features.Features()
    for item in (*ODD, *ODD, *reversed(ODD)):
        remembers.add(item)
        forgets.forget_layouts()
        forgets.add(item)
    assert remembers.names == forgets.names
    assert_array_equal(remembers.rows(), forgets.rows())
    assert_array_equal(remembers.rows()[len(ODD) : 2 * len(ODD)], remembers.rows()[: len(ODD)])


def test_chunks_are_small_where_there_are_many_columns(tmp_path):
    events = [with_context(User={"country": f"c{n % 2000}"}) for n in range(6000)]
    sizes = [chunk.shared.size + chunk.own.size for chunk in read_chunks(write_lines(tmp_path / "log.dsjson", *events))]
    assert max(sizes) < 1.1 * dsjson.NUMBERS
    events = [with_context(User={"id": f"c{n}"}) for n in range(5000)]
    with pytest.raises(ValueError, match="line 4097: feature 'User/id=c4096' is one of more than 4096; drop identif"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", *events)))


def test_layouts_of_words_are_forgotten_and_columns_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "LAYOUTS", 3)
    words = [{"country": f"c{n % 7}", "hour": f"h{n % 5}", "x": float(n)} for n in range(9000)]
    path = write_lines(tmp_path / "log.dsjson", *(with_context(User=user) for user in words))
    chunk = together_wide(path)
    place = {name: column for column, name in enumerate(chunk.names.shared)}
    rows = np.arange(9000)
    assert_array_equal(chunk.shared[rows, [place[f"User/country=c{n % 7}"] for n in rows]], 1)
    assert_array_equal(chunk.shared[:, place["User/x"]], rows)
    assert_array_equal(chunk.shared.sum(axis=1), 2 + rows)
