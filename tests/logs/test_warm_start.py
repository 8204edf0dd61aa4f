"""Bandits that learn from a log before their first decision."""

import numpy as np
import pytest

from neuralucb import OnlineBandit, build
from neuralucb.logs import convert, open_log, recorded, write_log
from tests.logs.examples import chance_log


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "dsjson"])
def test_a_bandit_is_trained_from_a_log_and_decides_well_at_once(tmp_path, command, shared, ending):
    contexts = chance_log(tmp_path / "log.parquet", shared=shared)
    if ending != "parquet":
        convert(tmp_path / "log.parquet", tmp_path / f"log.{ending}")
    settings = ["--set", "regularization=0.1", "--floor", "0.05"]
    log, model = str(tmp_path / f"log.{ending}"), str(tmp_path / "model")
    code, out, err = command("train", log, "--policy", "lin-ucb", *settings, "--out", model)
    assert code == 0, err
    assert "294 rewards" in out
    bandit = OnlineBandit.load(model)
    assert bandit.names == {"shared": [], "own": []} | {
        "shared" if shared else "own": [f"{'shared' if shared else 'own'}[{column}]" for column in range(4)]
    }
    decisions = bandit.select_many(contexts)
    best = np.where(contexts[:, 0] > 0, 2, 0) if shared else contexts[:, :, 0].argmax(axis=1)
    assert np.mean([decision.arm for decision in decisions] == best) > 0.9
    assert decisions[0].propensity > 0.01


def test_training_refuses_what_it_cannot_use(tmp_path, command):
    chance_log(tmp_path / "log.parquet")
    good = str(tmp_path / "log.parquet")
    for arguments, reason in (
        ([str(tmp_path / "none.parquet"), "--out", str(tmp_path / "m")], "none.parquet"),
        ([good, "--policy", "nothing", "--out", str(tmp_path / "m")], "not known"),
        ([good, "--policy", "oracle", "--out", str(tmp_path / "m")], "expected rewards"),
        ([good, "--policy", "lin-ucb", "--floor", "2", "--out", str(tmp_path / "m")], "floor must be"),
        (
            [good, "--set", "step_size=1e9", "--set", "width=8", "--set", "steps=20", "--out", str(tmp_path / "m")],
            "diverged",
        ),
    ):
        code, _, err = command("train", *arguments)
        assert code == (3 if reason == "diverged" else 2), err
        assert reason in err
    empty = recorded(np.ones((3, 2, 2)), np.zeros(3, int), np.full(3, np.nan), np.full((3, 2), 0.5))
    write_log(tmp_path / "empty.parquet", [empty])
    with pytest.raises(ValueError, match="no reward to learn from"):
        OnlineBandit(build("lin-ucb", dim=2)).fit(open_log(tmp_path / "empty.parquet"))
    with pytest.raises(ValueError, match="3.*4|4.*3"):
        OnlineBandit(build("lin-ucb", dim=3)).fit(open_log(tmp_path / "log.parquet"))


def test_a_log_with_a_bad_row_teaches_nothing(tmp_path):
    import pyarrow.parquet as pq

    chance_log(tmp_path / "log.parquet", count=20_000)
    table = pq.read_table(tmp_path / "log.parquet")
    bad = table["propensity"].to_pylist()
    bad[-1] = 7.0
    index = table.schema.get_field_index("propensity")
    pq.write_table(table.set_column(index, "propensity", [bad]), tmp_path / "bad.parquet")
    bandit = OnlineBandit(build("lin-ucb", dim=4))
    with pytest.raises(ValueError, match="bad.parquet.*20000"):
        bandit.fit(open_log(tmp_path / "bad.parquet"))
    assert bandit.health().observed == 0
