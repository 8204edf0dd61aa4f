"""Digests: the same for the same request in any order of keys, another for any other."""

import itertools

from neuralucb.features.flatten import read_alike
from neuralucb.service.bodies import read_decide
from neuralucb.service.config import Limits
from neuralucb.service.sameness import digest_of


def digest(body):
    ask = read_decide(body, Limits())
    both = {digest_of(ask, None), digest_of(ask, read_alike(ask.features, from_json=True))}
    assert len(both) == 1  # however its arms were read
    return both.pop()


def arms(*features):
    return [{"id": f"a{index}", "features": each} for index, each in enumerate(features)]


def test_the_order_of_keys_and_whether_a_number_has_a_point_make_no_difference():
    first = {"context": {"x": 1, "y": "z"}, "arms": arms({"a": 1, "b": 2.5}, {"a": 3, "b": 4})}
    again = {"arms": arms({"b": 2.5, "a": 1.0}, {"a": 3, "b": 4.0}), "context": {"y": "z", "x": 1}}
    assert digest(first) == digest(again)


def test_any_other_request_has_another_digest():
    features = [
        {"a": 1, "b": 2},
        {"a": 2, "b": 1},
        {"a": 1},
        {"a": "1", "b": 2},
        {"a": True, "b": 2},
        {},
        None,
        {"c": 1},
    ]
    bodies = [{"arms": arms(*pair)} for pair in itertools.product(features, repeat=2)]
    bodies += [{"arms": arms({"a": 1, "b": 2}), **more} for more in (
        {}, {"excluded": ["a1"]}, {"deferred": True}, {"user": "u"}, {"context": {"a": 1}}, {"context": {"a": 2}}
    )]  # fmt: skip
    bodies.append({})
    assert len({digest(body) for body in bodies}) == len(bodies)
