"""Requests with something in them changed at random: no fault, no NaN, and the service goes on."""

import json
import random

import pytest

from tests.service.direct import play

ARMS = [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}]
ASK = {"context": {"hour": 9, "device": "phone"}, "arms": ARMS}


def mutated(generator, value):
    """A value with one thing in it changed to something else."""
    strange = [
        None, True, -1, 0, 1e308, -1e-308, 2**63, 10**30, "", "x" * 300, "\u0000", "ü", [], {}, [[]], [1, "a", None],
        {"": ""}, {"_multi": 1}, {"a": {"b": [1, {"c": "d"}]}}, [{}], "NaN", {"x": 3.4e38, "y": 3.4e38},
    ]  # fmt: skip
    kind = generator.random()
    if isinstance(value, dict) and value and kind < 0.7:
        key = generator.choice(list(value))
        if kind < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if kind < 0.2:
            return {**value, generator.choice(["x", "event_id", "id", "features", ""]): generator.choice(strange)}
        return {**value, key: mutated(generator, value[key])}
    if isinstance(value, list) and value and kind < 0.7:
        index = generator.randrange(len(value))
        if kind < 0.1:
            return value + value
        return [mutated(generator, each) if place == index else each for place, each in enumerate(value)]
    return generator.choice(strange)


def check(answer):
    """No answer is a fault, and every body is strict JSON."""
    assert answer.status != 500, answer.data
    if answer.data and answer.headers.get(b"content-type") == b"application/json":
        assert isinstance(answer.json, dict)
        assert answer.status < 400 or answer.json["error"]["message"]


def fuzzed(tmp_path, requests, seed):
    generator = random.Random(seed)
    rank = {
        "eventId": "p", "contextFeatures": [{"hour": 9}, {"user": {"age": 3}}], "deferActivation": True,
        "actions": [{"id": "a", "features": [{"x": 1}]}, {"id": "b", "features": [{"y": "z"}]}],
        "excludedActions": ["b"],
    }  # fmt: skip
    seeds = [
        ("POST", "/v1/decide", {"event_id": "e", "excluded": ["b"], "user": "u", "deferred": True, **ASK}),
        ("POST", "/v1/decide/batch", {"requests": [ASK, {"event_id": "e2", **ASK}]}),
        ("POST", "/v1/reward", {"event_id": "e", "reward": 1.0, "reward_id": "r"}),
        ("POST", "/v1/reward/batch", {"rewards": [{"event_id": "e", "reward": 1}]}),
        ("POST", "/v1/activate", {"event_id": "e"}),
        ("PUT", "/v1/arms/a", {"features": {"price": 1}}),
        ("POST", "/v1/rollback", {"snapshot": 1}),
        ("PATCH", "/v1/settings", {"mode": "online", "wait_seconds": 600, "default_reward": 0}),
        ("POST", "/personalizer/v1.0/rank", rank),
        ("POST", "/personalizer/v1.0/events/p/reward", {"value": 1}),
    ]

    async def scenario(client):
        for _ in range(requests):
            method, path, body = generator.choice(seeds)
            for _ in range(generator.randrange(3)):
                body = mutated(generator, body)
            if generator.random() < 0.1:
                data = bytearray(json.dumps(body).encode())
                for _ in range(3):
                    data[generator.randrange(len(data))] = generator.randrange(256)
                check(await client(method, path, raw=bytes(data)))
            else:
                check(await client(method, path, raw=json.dumps(body).encode()))
        check(await client("GET", "/health"))
        made = await client("POST", "/v1/decide", ASK)
        assert made.status == 200

    play(scenario, tmp_path)


def test_mutated_requests_get_no_fault_and_no_nan(tmp_path):
    fuzzed(tmp_path, 1500, 0)


@pytest.mark.slow
def test_twenty_thousand_mutated_requests_get_no_fault_and_no_nan(tmp_path):
    fuzzed(tmp_path, 20_000, 1)
