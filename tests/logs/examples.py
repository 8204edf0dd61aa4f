"""Logs, events, dictionaries and files that the tests of this room share."""

import json

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb.logs import read_chunks, recorded, write_log

BY_DECISION = ("id", "time", "counts", "shared", "arm", "reward", "propensity", "weight")

BY_ARM = ("arms", "own", "probabilities")

EVENT = {
    "_label_cost": -1.0,
    "_label_probability": 0.5,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Timestamp": "2026-02-04T16:31:29.2460000Z",
    "Version": "1",
    "EventId": "one",
    "a": [2, 1, 3],
    "c": {
        "User": {"age": 0.5, "visits": 3, "_hidden": 7},
        "_multi": [
            {"_tag": "first", "Item": {"price": 0.1, "new": True}},
            {"Item": {"new": False, "price": 0.2}},
            {"Item": {"price": 0.3}},
        ],
    },
    "p": [0.5, 0.25, 0.25],
    "VWState": {"m": "N/A"},
}

NUMBERED = EVENT | {"c": {"_multi": [{"arm": {str(arm): 1}} for arm in range(3)]}}

OPEN_BANDIT = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,{}
0,2019-11-24 00:00:34.831996+00:00,2,1,0,0.25,aa,x,0.0,1.0,0.5
1,2019-11-24 01:00:00+01:00,0,3,1,0.5,bb,x,0.0,0.0,2.0
""".format(",".join(f"user-item_affinity_{item}" for item in range(3)))


def decisions(count=100, arms=4, dim=3, *, shared=False, masked=False, seed=0, dtype=np.float32):
    """A chunk as a policy would leave it."""
    random = np.random.default_rng(seed)
    able = np.ones((count, arms), dtype=bool)
    if masked:
        able[:, 1:] = random.random((count, arms - 1)) < 0.6
    p = np.where(able, random.dirichlet(np.full(arms, 2.0), size=count) + 0.01, 0)
    p /= p.sum(axis=1, keepdims=True)
    arm = (p.cumsum(axis=1) > random.random((count, 1))).argmax(axis=1)
    contexts = random.normal(size=(count, dim) if shared else (count, arms, dim)).astype(dtype)
    chunk = recorded(contexts, arm, random.normal(size=count).round(3), p, available=able)
    return chunk._replace(time=np.datetime64("2026-01-01T00:00:00.123456", "us") + np.arange(count))


def feedback(rounds=50, actions=3, seed=0):
    """A dictionary with every key that Open Bandit Pipeline knows."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(actions), size=rounds) + 0.01
    p /= p.sum(axis=1, keepdims=True)
    action = (p.cumsum(axis=1) > random.random((rounds, 1))).argmax(axis=1)
    return {
        "n_rounds": rounds,
        "n_actions": actions,
        "context": random.normal(size=(rounds, 4)),
        "action_context": random.normal(size=(actions, 2)),
        "action": action,
        "position": None,
        "reward": random.integers(0, 2, rounds),
        "pscore": p[np.arange(rounds), action],
        "pi_b": p[:, :, None],
        "expected_reward": random.random((rounds, actions)),
    }


def chance_log(path, *, shared=False, count=300):
    """Decisions by chance, whose reward is the first feature of the arm, or of all."""
    random = np.random.default_rng(0)
    contexts = random.normal(size=(count, 4) if shared else (count, 3, 4)).astype(np.float32)
    arms = random.integers(3, size=count)
    rewards = contexts[:, 0] * (arms - 1) if shared else contexts[np.arange(count), arms, 0]
    rewards[::50] = np.nan  # never seen
    write_log(path, [recorded(contexts, arms, rewards, np.full((count, 3), 1 / 3))])
    return contexts


def with_context(**changes):
    return EVENT | {"c": EVENT["c"] | changes}


def without(key):
    return {name: value for name, value in EVENT.items() if name != key}


def numbered(*arms):
    return EVENT | {"c": {"_multi": [{"arm": {arm: 1}} for arm in arms]}}


def write_lines(path, *events):
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def other_parquet(path, **columns):
    """A log as another tool might write it: two decisions, no metadata, types as pyarrow finds them."""
    import pyarrow as pa
    from pyarrow import parquet

    least = {"arms": [[0, 1], [0, 1]], "arm": [1, 0], "reward": [1.0, 0.0], "propensity": [0.5, 0.5]}
    parquet.write_table(pa.table(least | columns), path)
    return path


def parquet_with(tmp_path, **columns):
    """A log whose columns are what somebody else made of them."""
    import pyarrow as pa
    from pyarrow import parquet

    write_log(tmp_path / "good.parquet", [decisions(3, 2, 1)])
    good = parquet.read_table(tmp_path / "good.parquet")
    for name, values in columns.items():
        good = good.set_column(good.column_names.index(name), name, pa.array(values, good.schema.field(name).type))
    parquet.write_table(good, tmp_path / "bad.parquet")
    return tmp_path / "bad.parquet"


def together(path):
    chunks = list(read_chunks(path))
    joined = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in (*BY_DECISION, *BY_ARM)}
    return chunks[-1]._replace(**joined)


def together_wide(path):
    chunks = list(read_chunks(path))
    width = chunks[-1].shared.shape[1]
    wide = [np.pad(chunk.shared, ((0, 0), (0, width - chunk.shared.shape[1]))) for chunk in chunks]
    return chunks[-1]._replace(shared=np.concatenate(wide))


def same(one, two):
    for name in (*BY_DECISION, *BY_ARM):
        if getattr(one, name).dtype.kind == "f":
            assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-7, err_msg=name)
        else:
            assert_array_equal(getattr(one, name), getattr(two, name), name)
    assert one.names == two.names


def renumbered(chunk):
    """Arms with features of their own are told apart by these: dsjson lists those available, and numbers them anew."""
    begins = np.cumsum(chunk.counts) - chunk.counts
    owner = np.repeat(np.arange(len(begins)), chunk.counts)
    place = (np.arange(len(owner)) - begins[owner]).astype(np.int32)
    return chunk._replace(arms=place, arm=place[chunk.arms == chunk.arm[owner]])


def lines_kept(path, skipped):
    return [line for chunk in read_chunks(path, skipped) for line in chunk.line.tolist()]


def repeated(chunk, times):
    names = ("line", "id", "time", "counts", "arms", "arm", "reward", "propensity", "weight", "position")
    return {name: np.tile(getattr(chunk, name), times) for name in names} | {
        "shared": np.tile(chunk.shared, (times, 1))
    }
