"""The encoder: few features never collide, the size is fixed, and names alone decide where a number goes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuralucb import InputError
from neuralucb.features import Encoder, Vocabulary, hashed_slot, own_slots
from neuralucb.features.encoder import Features
from neuralucb.features.flatten import read_alike
from neuralucb.logs import encoded, open_log

WORDS = st.text("abc", min_size=1, max_size=2)
VALUES = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-1000, 1000),
    st.booleans(),
    st.none(),
    WORDS,
    st.lists(st.floats(-9, 9), max_size=3),
)
OBJECTS = st.recursive(
    st.dictionaries(WORDS, VALUES, max_size=4), lambda inner: st.dictionaries(WORDS, inner, max_size=3)
)


def slow(encoder, context, arms):
    """The rows, one feature at a time, from the vocabulary alone."""

    def walk(value, name):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, f"{name}/{key}")
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from walk(inner, name) if isinstance(inner, dict) else walk(inner, f"{name}[{index}]")
        elif isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif value is not None and value is not False:
            yield name, float(value)

    rows = np.zeros((len(arms), encoder.slots))
    for row, arm in zip(rows, arms, strict=True):
        for name, value in [*walk(context, "context"), *walk(arm, "arm")]:
            slot, sign = encoder.vocabulary.places.get(name), 1.0
            if slot is None:
                slot, sign = hashed_slot(name, encoder.slots)
            row[slot] += sign * value
    return rows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(OBJECTS, st.lists(OBJECTS, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_rows_are_those_of_a_transcription_one_feature_at_a_time(requests):
    encoder = Encoder(16)
    for context, arms in requests:
        rows = encoder.encode(context, arms)
        np.testing.assert_allclose(rows, slow(encoder, context, arms), rtol=1e-5, atol=1e-2)


LARGE = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0, 1, 3e38, 1e39, True]))
ALIKE = st.fixed_dictionaries({"a": LARGE, "b": LARGE})


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(ALIKE, OBJECTS), st.lists(st.one_of(ALIKE, OBJECTS), min_size=1, max_size=3)), max_size=6
    )
)
def test_decisions_that_are_encoded_together_are_the_same_as_one_by_one(requests):
    def one_by_one(context, arms):
        try:
            return warm.encode(context, arms).tolist()
        except InputError as problem:
            return str(problem)

    warm = Encoder(8)
    for request in requests:  # names get their slots
        one_by_one(*request)
    together = Encoder(8, warm.vocabulary.names)
    decisions = [Features(context, arms, read_alike(arms, from_json=True), None) for context, arms in requests]
    made = [str(each) if isinstance(each, InputError) else each.tolist() for each in together.encode_many(decisions)]
    assert made == [one_by_one(*request) for request in requests]


def test_numbers_that_overflow_where_names_share_a_slot_are_refused_without_a_warning():
    names = [f"k{index}" for index in range(20)]
    places = [hashed_slot(f"arm/{name}", 8) for name in names]
    one, other = next(
        (names[first], names[second])
        for first in range(20)
        for second in range(first)
        if places[first] == places[second]
    )
    with pytest.raises(InputError, match="overflow it where they add up"):
        Encoder(8, [f"n{index}" for index in range(6)]).encode(None, [{one: 3e38, other: 3e38}])


def test_few_features_never_collide_and_the_size_stays():
    encoder = Encoder(32)
    rows = encoder.encode(
        {"User": {"age": 30, "country": "de", "history": [1.5, 2.5]}, "new": True, "gone": None}, [{}]
    )
    assert rows.shape == (1, 32)
    assert sorted(rows[rows != 0].tolist()) == [1, 1, 1.5, 2.5, 30]
    assert encoder.counts == (1, 5, 0, 1)


def test_the_same_names_give_the_same_vectors_in_another_process():
    first = Encoder(16)
    request = {"a": 1.0, "b": "x"}, [{"c": 2.0}, {"d": "y"}]
    rows = first.encode(*request)
    for index in range(30):
        first.encode({f"more{index}": 1.0}, [{}])
    second = Encoder(16, first.vocabulary.names)
    assert second.encode(*request).tolist() == rows.tolist()
    assert second.encode({"more29": 3.0}, [{}]).tolist() == first.encode({"more29": 3.0}, [{}]).tolist()
    assert Vocabulary.from_slot_names(first.vocabulary.slot_names()).names == first.vocabulary.names


def test_an_identifier_does_not_take_all_slots():
    encoder = Encoder(128)
    for user in range(1000):
        encoder.encode({"user": f"u{user}"}, [{}])
    assert len(encoder.vocabulary.names) == own_slots(128) // 6
    rows = encoder.encode({"age": 3.0}, [{"price": 7.0}])
    assert {"context/age", "arm/price"} <= set(encoder.vocabulary.names)
    assert sorted(rows[rows != 0].tolist()) == [3, 7]
    assert encoder.counts.hashed == 1000 - own_slots(128) // 6


def test_a_hashed_name_lies_among_the_reserved_slots_with_a_sign():
    found = [hashed_slot(f"name{index}", 64) for index in range(2000)]
    assert {slot for slot, _ in found} == set(range(own_slots(64), 64))
    assert abs(np.mean([sign for _, sign in found])) < 5 / 2000**0.5


def test_arms_without_features_are_told_apart_by_their_ids():
    rows = Encoder(16).encode(None, [None, {}, {"price": 2.0}], ids=["a", "b", "c"])
    assert rows[:, :3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 2]]


def test_interactions_are_products_of_context_and_arm():
    encoder = Encoder(32, interactions=[("context/User", "arm")])
    rows = encoder.encode({"User": {"age": 3.0, "kind": "x"}, "hour": 5}, [{"price": 2.0}])
    names = encoder.vocabulary.names
    assert dict(zip(names, rows[0].tolist(), strict=False)) == {
        "context/User/age": 3, "context/User/kind=x": 1, "context/hour": 5, "arm/price": 2,
        "context/User/age*arm/price": 6, "context/User/kind=x*arm/price": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"x": float("nan")}, "context/x' must be finite, in float32, got nan; None, or null, where it is missing"),
        ({"x": np.datetime64("2026-01-01")}, "context/x' must be a number, a string"),
        ({"x": float("inf"), "y": 1}, "context/x' must be finite"),
        ({"x": 10**400}, "context/x' must be finite"),
        ({"x": 1e39}, "context/x' must be finite"),
        ({"x": object()}, "must be a number, a string"),
        (7, "must be an object"),
        ([1.0], "must be an object"),
        ({"x": "y" * 600}, "at most 512 characters"),
        ({1: 2}, "must be strings"),
    ],
)
def test_what_is_no_feature_is_refused_and_takes_no_slot(context, words):
    encoder = Encoder(16)
    with pytest.raises(InputError, match=words):
        encoder.encode(context, [{"price": 1.0}])
    assert encoder.vocabulary.names == []


@pytest.mark.parametrize("arms", [None, {"hat": {"price": 1}}, "hat"])
def test_arms_that_are_no_list_are_refused(arms):
    with pytest.raises(InputError, match="arms must be a list, an object per arm, got "):
        Encoder(16).encode({"x": 1}, arms)


def test_values_of_numpy_and_tuples_are_features_like_those_of_python():
    plain = {
        "age": 3.5,
        "visits": 2,
        "new": True,
        "old": False,
        "city": "Oslo",
        "last": [1, 2.5],
        "pair": [1, "x"],
        "far": 0.5,
    }
    theirs = {
        "age": np.float32(3.5), "visits": np.int64(2), "new": np.bool_(True), "old": np.bool_(False),
        "city": np.str_("Oslo"), "last": np.asarray([1, 2.5]), "pair": (1, "x"),
        "far": np.longdouble(0.5),
    }  # fmt: skip
    one, other = Encoder(16), Encoder(16)
    rows = one.encode(plain, [{"price": 2.0}, {"price": 3.0}])
    np.testing.assert_array_equal(other.encode(theirs, ({"price": np.float64(2)}, {"price": np.int32(3)})), rows)
    assert one.vocabulary.names == other.vocabulary.names


def test_deep_nesting_is_refused():
    deep = {}
    for _ in range(40):
        deep = {"a": deep}
    with pytest.raises(InputError, match="at most 16 deep"):
        Encoder(16).encode(deep, [{}])


def test_slots_that_another_process_assigned_are_adopted():
    shared = Vocabulary(16)
    first, second = (Encoder(16, assign=shared.assign) for _ in range(2))
    first.encode({"a": 1.0}, [{}])
    second.encode({"b": 1.0}, [{"c": 2.0}])
    assert (
        first.encode({"a": 1.0, "c": 4.0}, [{"c": 2.0}]).tolist()
        == second.encode({"a": 1.0, "c": 4.0}, [{"c": 2.0}]).tolist()
    )
    for index in range(40):
        first.encode({f"x{index}": 1.0}, [{}])
        assert second.encode({f"x{index}": 1.0}, [{}]).tolist() == first.encode({f"x{index}": 1.0}, [{}]).tolist()


def test_a_log_has_the_vectors_of_live_requests(tmp_path):
    lines = [
        '{"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0,"a":[1,2],"p":[0.5,0.5],'
        '"c":{"User":{"age":30,"country":"de"},"_multi":[{"Item":{"price":2}},{"Item":{"price":3,"kind":"x"}}]}}',
        '{"_label_cost":0,"_label_probability":0.5,"_label_Action":2,"_labelIndex":1,"a":[2,1],"p":[0.5,0.5],'
        '"c":{"User":{"age":40,"country":"fr"},"_multi":[{"Item":{"price":4}},{"Item":{"price":5,"kind":"y"}}]}}',
    ]
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(lines) + "\n")
    log = encoded(open_log(path), slots=16)
    encoder = Encoder(16, Vocabulary.from_slot_names(log.names.own).names)
    (chunk,) = log.chunks()
    live = [
        encoder.encode(
            {"User": {"age": 30, "country": "de"}}, [{"Item": {"price": 2}}, {"Item": {"price": 3, "kind": "x"}}]
        ),
        encoder.encode(
            {"User": {"age": 40, "country": "fr"}}, [{"Item": {"price": 4}}, {"Item": {"price": 5, "kind": "y"}}]
        ),
    ]
    np.testing.assert_array_equal(chunk.own, np.concatenate(live))
    assert encoder.counts.named == 0
