"""The engine reads and decides requests piece by piece: one that fails harms no other, and all that is begun ends."""

import numpy as np
import pytest

from neuralucb import StorageError
from neuralucb.service import engine
from neuralucb.service.bodies import read_decide, with_numbers
from neuralucb.service.config import Config, Limits
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.engine import PIECE, Engine
from neuralucb.service.requests import read_asks
from neuralucb.service.shown import in_json
from neuralucb.service.store import Plan


@pytest.fixture
def made(tmp_path):
    store = EmbeddedStore(tmp_path / "store", Plan("lin-ucb", slots=8), arms=2)
    made = Engine(store, Config())
    yield made
    made.deciding.close()
    made.rewarding.close()
    store.close()


def ask(number, **features):
    arms = [{"id": name, "features": {"size": number + 0.5, **features}} for name in "ab"]
    return with_numbers(read_decide({"event_id": f"e{number}", "context": {"hour": 3}, "arms": arms}, Limits()))


def test_many_requests_are_decided_in_order_and_shown_as_they_came(made):
    results = made._decide([ask(number) for number in range(2 * PIECE + 3)])
    assert [each.answer.event_id for each in results] == [f"e{number}" for number in range(2 * PIECE + 3)]
    shown = made.store.explain("e5").features
    assert shown == b'{"context":{"hour":3},"arms":{"a":{"size":5.5},"b":{"size":5.5}}}'


def test_a_piece_that_cannot_be_decided_leaves_the_others_as_they_are(made, monkeypatch):
    begin, calls = made.store.begin, []

    def broken():
        raise StorageError("no more writes")

    def fail_first(requests):
        calls.append(len(requests))
        return broken if len(calls) == 1 else begin(requests)

    monkeypatch.setattr(made.store, "begin", fail_first)
    results = made._decide([ask(number) for number in range(PIECE + 2)])
    assert [isinstance(each, StorageError) for each in results] == [True] * PIECE + [False] * 2
    monkeypatch.setattr(engine, "read_asks", lambda *_: broken())
    assert isinstance(made._decide([ask(1)])[0], StorageError)


def test_alike_features_are_kept_as_numbers_and_give_the_same_vectors_and_digest(made):
    body = {"arms": [{"id": name, "features": {"x": 0.5, "y": 3}} for name in "ab"]}
    as_objects = read_decide(body, Limits())
    as_numbers = with_numbers(as_objects)
    assert as_numbers.features == ()
    (one,), (other,) = (read_asks([each], made.encoder, made.store) for each in (as_objects, as_numbers))
    assert np.array_equal(one.contexts, other.contexts)
    assert one.digest == other.digest
    assert in_json(one.features) == in_json(other.features)
    mixed = read_decide({"arms": [{"id": "a", "features": {"x": True}}, "b"]}, Limits())
    assert with_numbers(mixed) is mixed
