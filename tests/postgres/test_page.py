"""The queries of docs/postgresql.md, on a store with something in it."""

import re
from pathlib import Path

import pytest

from neuralucb.service.store import Reward
from tests.postgres.helpers import learning, opened, request, rows

PAGE = Path(__file__).parents[2] / "docs" / "postgresql.md"


@pytest.fixture
def filled(address):
    features = {"context": {"city": "Oslo"}}
    with opened(address) as store, learning(address) as learner:
        store.decide([request("order-4711", features=features), *(request(f"e{number}") for number in range(11))])
        given = [Reward("order-4711", 2.0), *(Reward(f"e{number}", 1.0) for number in range(10)), Reward("e0", 5.0)]
        store.reward(given)
        learner.step()
    return address


def test_every_query_of_the_page_runs(filled):
    queries = [
        query
        for block in re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
        for query in block.split(";")
        if query.strip()
    ]
    found = {query.strip(): rows(filled, query) for query in queries}
    assert len(found) >= 11
    assert not [query for query, result in found.items() if not result]
    explained, context, by_arm = list(found.values())[:3]
    assert len(explained) == 3
    assert context == [({"city": "Oslo"},)]
    assert sum(count for _, count, *_ in by_arm) == 12


def test_estimated_rewards_of_uniform_are_those_of_the_formula(filled):
    (query,) = (each for each in re.findall(r"```sql\n(.*?);", PAGE.read_text(), flags=re.DOTALL) if "uniform" in each)
    ((uniform, ours, count),) = rows(filled, query)
    logged = rows(filled, "SELECT propensity, reward FROM events WHERE status = 'observed'")
    weights = [1 / (3 * propensity) for propensity, _ in logged]
    expected = sum(w * r for w, (_, r) in zip(weights, logged, strict=True)) / sum(weights)
    assert uniform == pytest.approx(expected)
    assert (ours, count) == (pytest.approx(12 / 11), 11)
