"""What version 0.1 wrote, journals, saves, sweeps and logs, is read by this one."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet

from neuralucb import InputError, OnlineBandit, build
from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.logs import open_log

OLD = Path(__file__).parent / "data" / "v0_1"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def old(tmp_path):
    """A copy that may be written to."""
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def opened(folder, kind):
    if kind == "saved":
        return OnlineBandit.load(folder / "saved")
    then = {**PAPER, "width": 4, "steps": 4, "batch_size": 4, "design": "diagonal", "start": "warm"}
    policy = build("neural-ucb", dim=3, **then)  # the defaults of 0.1 were the paper's
    return OnlineBandit(policy, seed=2, schedule="5", snapshot_every=25, journal=folder / "journal", normalize=True)


@pytest.mark.parametrize("kind", ["journal", "saved"])
def test_a_bandit_goes_on_as_it_would_have(old, kind):
    with opened(old, kind) as bandit:
        health = bandit.health()
        for name in ("decisions", "pending", "observed", "learned"):
            assert getattr(health, name) == EXPECTED[name]
        rows = np.random.default_rng(9).normal(size=(5, 2))
        decisions = [bandit.select(row) for row in rows]
        assert [decision.arm for decision in decisions] == [arm for arm, _ in EXPECTED["next"]]
        assert_allclose([decision.score for decision in decisions], [score for _, score in EXPECTED["next"]], rtol=1e-4)
        for decision_id in EXPECTED["pending_ids"]:
            bandit.explain(decision_id)
            bandit.observe(decision_id, 1.0)
        assert bandit.health().failure is None
        assert bandit.health().learning.startswith("last good lesson at observation ")


def test_a_journal_is_loaded_as_it_was_and_new_defaults_are_told_apart(old):
    with pytest.raises(InputError, match=r"was made with policy \{.*'depth': 2.*\}, but .*'depth': 3.*load\(folder\)"):
        OnlineBandit(build("neural-ucb", dim=3, width=4), seed=2, normalize=True, journal=old / "journal")
    with OnlineBandit.load(old / "journal") as bandit:
        assert bandit.health().learned == EXPECTED["learned"]
        assert bandit.settings["schedule"] == "5"


@pytest.mark.parametrize("name", ["log.parquet", "log.dsjson"])
def test_logs_are_read(old, name):
    chunks = list(open_log(old / name).chunks())
    rewards = np.concatenate([chunk.reward for chunk in chunks])
    assert_allclose(rewards, [np.nan if value is None else value for value in EXPECTED["log_reward"]])
    assert_array_equal(np.concatenate([chunk.arm for chunk in chunks]), EXPECTED["log_arm"])


def test_a_sweep_goes_on_and_keeps_its_runs(old, command):
    gone = next((old / "sweep" / "runs").glob("uniform-*.parquet"))
    was = parquet.read_table(gone)
    kept = next((old / "sweep" / "runs").glob("lin-ucb-*.parquet"))
    before = kept.read_bytes()
    gone.unlink()
    code, _, _ = command("resume", old / "sweep", "--workers", 1)
    assert code == 0
    assert kept.read_bytes() == before
    now = parquet.read_table(gone)
    assert now.column("seed").equals(was.column("seed"))
    assert_allclose(now.column("final_regret").to_pylist(), was.column("final_regret").to_pylist(), rtol=1e-5)
    assert (old / "sweep" / "report.html").exists()
