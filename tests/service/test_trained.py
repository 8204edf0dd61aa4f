"""What learned from a log serves at once, with the features of the log."""

import json
import random

import numpy as np
import pytest

from neuralucb import InputError, OnlineBandit, build
from neuralucb.logs import encoded, open_log
from neuralucb.logs.batches import shape_of
from neuralucb.service.embedded import EmbeddedStore
from tests.service.direct import CONFIG, play


def write_log(path, decisions=300):
    """Uniform choices among three items of which one is good."""
    generator = random.Random(0)
    with path.open("w") as file:
        for _ in range(decisions):
            arm = generator.randrange(3)
            reward = float(arm == 1) + generator.gauss(0, 0.1)
            multi = [{"Item": {"kind": kind}} for kind in ("tea", "coffee", "water")]
            line = {
                "_label_cost": -reward, "_label_probability": 1 / 3, "_label_Action": arm + 1, "_labelIndex": arm,
                "a": [arm + 1, *(each + 1 for each in range(3) if each != arm)], "p": [1 / 3] * 3,
                "c": {"User": {"age": generator.randrange(20, 60)}, "_multi": multi},
            }  # fmt: skip
            file.write(json.dumps(line) + "\n")


def trained(tmp_path, slots):
    path = tmp_path / "log.dsjson"
    write_log(path)
    log = open_log(path) if slots is None else encoded(open_log(path), slots)
    bandit = OnlineBandit(build("lin-ucb", **shape_of(log)))
    bandit.fit(log)
    return bandit.save(tmp_path / "model")


def test_the_first_live_decision_of_a_trained_model_is_good(tmp_path):
    folder = trained(tmp_path, CONFIG.plan.slots)
    arms = [{"id": name, "features": {"Item": {"kind": name}}} for name in ("water", "tea", "coffee", "cocoa")]

    async def scenario(client):
        made = (await client("POST", "/v1/decide", {"context": {"User": {"age": 33}}, "arms": arms[:3]})).json
        best = max(made["arms"], key=lambda arm: arm["score"])
        assert best["id"] == "coffee"
        assert {arm["propensity"] > 0 for arm in made["arms"]} == {True}  # the service explores
        new = (await client("POST", "/v1/decide", {"context": {"Weather": "rain"}, "arms": arms})).json
        return new["arm"]

    for _ in range(2):  # and again after a restart
        play(scenario, folder)
    store = EmbeddedStore(folder, CONFIG.plan, arms=4)
    try:
        names = store.vocabulary()
    finally:
        store.close()
    assert names[:2] == ["context/User/age", "arm/Item/kind=tea"]
    assert {"arm/Item/kind=cocoa", "context/Weather=rain"} <= set(names)


def test_a_model_of_another_size_is_refused(tmp_path):
    with pytest.raises(InputError, match="train it with .neuralucb train LOG --slots 16"):
        EmbeddedStore(trained(tmp_path, None), CONFIG.plan)


def test_an_encoded_log_has_one_row_per_arm(tmp_path):
    path = tmp_path / "log.dsjson"
    write_log(path, 10)
    log = encoded(open_log(path), 16)
    assert shape_of(log) == {"dim": 16, "shared_by": None}
    rows = np.concatenate([chunk.own for chunk in log.chunks()])
    assert rows.shape == (30, 16)
