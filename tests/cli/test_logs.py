"""The command `neuralucb evaluate`: what it prints and writes, and what it refuses."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from neuralucb import OnlineBandit
from neuralucb.cli.exit_codes import UNSOUND
from neuralucb.evaluation import METHODS
from neuralucb.logs import write_log
from tests.evaluation.worlds import world


def test_the_command_leaves_a_table_and_a_figure(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(1000, 0)])
    code, out, _ = command("evaluate", "log.parquet", "--policy", "lin-ucb", "--policy", "uniform", "--out", "here")
    assert code == 0
    for word in (*METHODS, "LinUCB", "uniform", "logged policy", "weights average"):
        assert word in out
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["evaluate-log.md", "evaluate-log.png"]


def test_the_command_prints_one_json_object_and_nothing_else(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(1000, 0)])
    code, out, err = command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,direct", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert [one["method"] for one in record["evaluations"][0]["estimates"]] == ["ips", "direct"]
    assert record["evaluations"][0]["decisions"] == 500
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


def test_without_replay_the_other_methods_are_shown_unless_replay_was_named(command, tmp_path):
    chunk = world(400, 0)._replace(probabilities=None)
    chunk.propensity[0] = 1e-6  # in the half that is learned from; replay would accept one decision in a million
    write_log(tmp_path / "log.parquet", [chunk])
    code, out, _ = command("evaluate", "log.parquet", "--policy", "uniform", "--out", "here")
    table = (tmp_path / "here" / "evaluate-log.md").read_text(encoding="utf-8")
    assert code == 0
    assert "uniform: no replay: log.parquet: replay accepted" in " ".join(out.split())
    assert "| doubly-robust |" in table
    assert "| replay |" not in table
    code, _, err = command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,replay", "--out", "here")
    assert code == 2
    assert "replay accepted" in err


def test_the_table_says_what_replay_is_about(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)])
    options = ["--methods", "ips,replay", "--level", "0.995"]
    code, out, _ = command("evaluate", "log.parquet", "--policy", "uniform", *options)
    text = " ".join(out.split())
    assert code == 0
    assert "99.5 % intervals; learned from the first 50 %, valued on the rest (replay: learned along all of it)" in text
    assert "replay learned along the whole log, starting from nothing, and accepted" in text
    assert "of 400 decisions" in text


def test_skip_bad_leaves_deterministic_decisions_out_and_tells_how_many(command, tmp_path):
    chunk = world(400, 0)._replace(probabilities=None)
    chunk.propensity[[7, *range(300, 310)]] = np.nan  # one in the half that only replay is about
    write_log(tmp_path / "log.parquet", [chunk])
    arguments = ("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips,replay")
    code, _, err = command(*arguments)
    assert code == 2
    assert "decision 301 was deterministic" in " ".join(err.split())
    code, out, _ = command(*arguments, "--skip-bad", "--out", "here")
    assert code == 0
    assert "10 deterministic decisions were left out" in " ".join(out.split())
    assert "of 389 decisions; 11 deterministic decisions were left out" in " ".join(out.split())


def test_the_share_to_learn_from_is_of_the_decisions_that_can_be_used(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)._replace(probabilities=None)])
    table = pq.read_table(tmp_path / "log.parquet")
    bad = [2.0] * 240 + table["propensity"].to_pylist()[240:]
    place = table.schema.get_field_index("propensity")
    pq.write_table(table.set_column(place, "propensity", [bad]), tmp_path / "log.parquet")
    arguments = ("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips", "--skip-bad", "--json")
    code, out, _ = command(*arguments)
    record = json.loads(out)
    assert code == 0
    assert (record["skipped"], record["evaluations"][0]["decisions"]) == (240, 80)


DIVERGES = [
    "--set", "step_size=1e8", "--set", "units=given", "--set", "retries=0", "--set", "optimizer=plain",
    "--set", "decay=none", "--set", "width=8", "--set", "steps=20",
]  # fmt: skip


def test_neural_mix_is_valued_if_no_policy_is_named(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(300, 0)])
    small = ("--set", "width=4", "--set", "steps=3", "--set", "batch_size=4")
    code, out, err = command("evaluate", "log.parquet", "--methods", "ips", *small, "--json")
    assert code == 0, err
    assert "neural-mix" in out


def test_a_policy_that_diverges_has_no_value_and_the_others_are_shown(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)])
    arguments = ["evaluate", "log.parquet", "--policy", "neural-ucb", "--methods", "ips", *DIVERGES]
    code, out, err = command(*arguments, "--policy", "uniform", "--out", "here")
    assert code == UNSOUND
    assert "uniform" in out
    assert "NeuralUCB" not in out
    assert err.splitlines()[-1].startswith(
        "not sound: neural-ucb diverged while it learned from the first 200 decisions"
    )
    code, out, _ = command(*arguments, "--policy", "uniform", "--json")
    record = json.loads(out)
    assert code == UNSOUND
    assert [one["policy"] for one in record["evaluations"]] == ["uniform"]
    assert list(record["refused"]) == ["neural-ucb"]
    code, out, err = command(*arguments)
    assert (code, out) == (UNSOUND, "")
    assert command("evaluate", "log.parquet", "--policy", "uniform", "--methods", "ips")[0] == 0  # the control


def test_training_that_diverges_is_not_saved(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(400, 0)])
    code, out, err = command("train", "log.parquet", "--policy", "neural-ucb", "--out", "model", *DIVERGES)
    assert (code, out) == (UNSOUND, "")
    assert "neural-ucb did not learn from log.parquet and was not saved: the lesson at observation 400 failed" in err
    assert list((tmp_path / "model").iterdir()) == []


def test_training_that_refuses_what_it_should_learn_from_is_not_saved(command, tmp_path):
    chunk = world(400, 0)
    chunk.own[..., 0] = 1.7e9  # a raw timestamp
    write_log(tmp_path / "log.parquet", [chunk])
    code, _, err = command("train", "log.parquet", "--policy", "lin-ucb", "--out", "model")
    assert code == UNSOUND
    assert "the belief refused 400 observations" in " ".join(err.split())


@pytest.mark.usefixtures("as_users_have_it")
def test_training_takes_the_algorithm_that_needs_no_tuning_unless_told_otherwise(command, tmp_path):
    write_log(tmp_path / "log.parquet", [world(100, 0)])
    code, out, err = command("train", "log.parquet", "--out", "model", "--set", "width=8", "--set", "steps=20")
    assert (code, OnlineBandit.load(tmp_path / "model").policy.origin.algorithm) == (0, "neural-mix"), err
    assert out.startswith("neural-mix learned from 100 rewards")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.parquet", "--policy", "lin-ucb"], "none.parquet cannot be read"),
        (["log.parquet", "--policy", "magic"], "'magic' is not known"),
        (["log.parquet", "--policy", "oracle"], "needs the expected rewards"),
        (["log.parquet", "--policy", "lin-ucb", "--set", "width=3"], "a setting of none of lin-ucb"),
        (["log.parquet", "--policy", "lin-ucb", "--methods", "guess"], "--methods must be among direct"),
        (["log.parquet", "--policy", "lin-ucb", "--methods", ""], "--methods must be all or among direct"),
        (["log.parquet", "--policy", "lin-ucb", "--switch", "nan"], "switch must be a weight, at least 0, got nan"),
        (["log.parquet", "--policy", "lin-ucb", "--switch=-1"], "switch must be a weight, at least 0, got -1"),
        (["log.parquet", "--policy", "lin-ucb", "--train", "1"], "train must be at least 0 and below 1"),
        (["log.parquet", "--policy", "lin-ucb", "--level", "95"], "level must be above 0 and below 1"),
        (["log.parquet", "--policy", "lin-ucb", "--seed", "99999999999999999999"], "Invalid value for '--seed'"),
        (["deterministic.parquet", "--policy", "lin-ucb"], "was deterministic"),
        (["ones.parquet", "--policy", "lin-ucb", "--methods", "replay"], "was deterministic"),
    ],
)
def test_bad_input_is_a_short_message(command, tmp_path, arguments, message):
    write_log(tmp_path / "log.parquet", [world(100, 0)])
    write_log(tmp_path / "deterministic.parquet", [world(100, 0)._replace(propensity=np.full(100, np.nan))])
    ones = world(100, 0)._replace(propensity=np.ones(100), probabilities=None)
    write_log(tmp_path / "ones.parquet", [ones])
    code, out, err = command("evaluate", *arguments)
    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in out + err
