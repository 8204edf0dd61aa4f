"""Numbers in answers: as short as their precision allows, and exactly those that were recorded."""

import numpy as np
import pytest

from neuralucb.service.embedded import EmbeddedStore
from tests.service.direct import CONFIG, play

ARMS = [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}, {"id": "c"}]
THREE = {"context": {"hour": 9, "device": "phone"}, "arms": ARMS}


def test_numbers_in_single_precision_are_short_and_read_back_as_they_were_recorded(tmp_path):
    config = CONFIG._replace(plan=CONFIG.plan._replace(algorithm="neural-ucb", options={"width": 4}, floor=0.15))
    store = EmbeddedStore(tmp_path, config.plan, arms=4)

    async def scenario(client):
        made = await client("POST", "/v1/decide", {"event_id": "e", **THREE})
        shown = await client("GET", "/v1/decisions/e")
        row = store._book.events["e"]
        for column in ("propensity", "score", "mean", "width"):
            numbers = [arm[column] for arm in shown.json["arms"]]
            name = "propensities" if column == "propensity" else column
            assert np.array_equal(np.float32(numbers), row.numbers(name))
            assert row.row.dtype == np.float32
            assert all(len(repr(number).strip("-").lstrip("0.")) <= 13 for number in numbers)  # 0.05, 1.2345678e-05
        assert [(arm["propensity"], arm["score"]) for arm in made.json["arms"]] == [
            (arm["propensity"], arm["score"]) for arm in shown.json["arms"]
        ]
        actions = [{"id": each, "features": [{"x": 1}]} for each in "abc"]
        answer = await client("POST", "/personalizer/v1.1/rank", {"actions": actions})
        assert sum(each["probability"] for each in answer.json["ranking"]) == pytest.approx(1, abs=1e-15)

    play(scenario, tmp_path, config, store)


@pytest.mark.parametrize("plan", [{"algorithm": "neural-epsilon-greedy", "options": {"width": 4}}, {}])
def test_an_explanation_shows_exploration_and_propensities_as_people_write_them(tmp_path, plan):
    """Also of a policy in double precision, whose propensities are in single."""
    config = CONFIG._replace(plan=CONFIG.plan._replace(floor=0.15, **plan))
    store = EmbeddedStore(tmp_path, config.plan, arms=4)

    async def scenario(client):
        await client("POST", "/v1/decide", {"event_id": "e", **THREE})
        shown = await client("GET", "/v1/decisions/e")
        numbers = [shown.json["exploration"], *(arm["propensity"] for arm in shown.json["arms"])]
        assert all(len(repr(number)) <= 11 for number in numbers), numbers

    play(scenario, tmp_path, config, store)
