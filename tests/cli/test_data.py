"""`neuralucb data`, `neuralucb table1`, and files of the user's, as a stranger uses them."""

import json
import re

import numpy as np
import pytest

from neuralucb.runtime import memory
from tests.problems.rows import X, Y


def test_a_set_that_is_there_is_not_fetched_again(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    (tmp_path / "magic.npz").write_bytes(b"mine")
    code, out, _ = command("data", "fetch", "magic")
    assert (code, (tmp_path / "magic.npz").read_bytes()) == (0, b"mine")
    assert "exists already; to fetch it again, delete it first" in " ".join(out.split())


def test_a_file_is_played(command, tmp_path):
    lines = ["a,b,c,kind", *(f"{row[0]},{row[1]},{row[2]},{'yes' if y else 'no'}" for row, y in zip(X, Y, strict=True))]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    arguments = ["run", "lin-ucb", "--data", str(tmp_path / "mine.csv"), "--label", "kind", "--seeds", "2", "--json"]
    code, out, _ = command(*arguments)
    record = json.loads(out)
    assert code == 0
    assert record["problem"] == "mine"
    assert record["rounds"] == 40


def test_data_sets_are_listed_with_their_paths_or_how_to_fetch_them(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    code, out, _ = command("data", "list")
    assert code == 0
    words = " ".join(out.split())
    assert "magic not fetched 19020 10 2" in words
    assert "iris comes with scikit-learn" in words
    assert command("data", "path", "statlog")[1] == f"{tmp_path / 'shuttle.npz'}\n"


def test_table_1_is_counted_from_the_files_and_a_damaged_one_is_named(command, monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    np.savez(tmp_path / "magic.npz", X=X, y=Y)
    (tmp_path / "mnist.npz").write_bytes(b"damaged")
    code, out, err = command("table1", "--out", "here")
    assert code == 0
    assert "mnist.npz cannot be read" in " ".join(err.split())
    table = (tmp_path / "here" / "table1.md").read_text()
    assert "| magic | 3 | 2 | 40 | 10, 2, 19020 |\n" in table
    assert "| mnist | damaged |" in table
    assert "| shuttle | not fetched |" in table
    assert "magic 3 2 40 10, 2, 19020" in " ".join(out.split())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npz", b"text"),
        ("a.npz", b"PK\x03\x04 a broken archive"),
        ("a.csv", b"\xff\xfe"),
        ("a.csv", b'kind,size\n"x,1\n'),
        ("a.parquet", b"PAR1 not really PAR1"),
        ("a.xlsx", b""),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(command, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    label = [] if name.endswith("npz") else ["--label", "kind"]
    code, out, err = command("run", "lin-ucb", "--data", name, *label)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def written(tmp_path, shown=None):
    """A file with two columns of context, the arm that was shown and its reward, and the rewards of all arms."""
    random = np.random.default_rng(0)
    arm = random.integers(3, size=600) if shown is None else shown
    x = random.normal(size=(600, 2))
    paid = np.stack([x[:, 0], x[:, 1], np.zeros(600)], axis=1)
    seen = paid[np.arange(600), arm] + 0.1 * random.normal(size=600)
    lines = ["age,income,shown,clicks,a,b,c"]
    lines += [
        f"{row[0]},{1000 * row[1]},{'xyz'[one]},{reward},{','.join(map(str, all_of_them))}"
        for row, one, reward, all_of_them in zip(x, arm, seen, paid, strict=True)
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    return paid


def test_a_column_of_rewards_per_arm_is_played(command, tmp_path):
    written(tmp_path)
    arguments = ("--data", "log.csv", "--rewards", "a, b,c", "--set", "drop=shown+clicks", "--seeds", "2", "--json")
    code, out, err = command("run", "lin-ucb", *arguments)
    assert (code, err) == (0, "")
    assert json.loads(out)["rounds"] == 600
    code, out, _ = command("compare", "--algorithms", "uniform,oracle", *arguments)
    assert code == 0
    assert json.loads(out)["results"][0]["settings"]["reward_scaling"] == "unit"


def test_a_log_of_arms_shown_by_chance_is_evaluated(command, tmp_path):
    paid = written(tmp_path)
    table = ("log.csv", "--reward", "clicks", "--arm", "shown", "--drop", "a+b+c")
    code, out, err = command("evaluate", *table, "--policy", "lin-ucb", "--methods", "replay", "--json")
    assert (code, err) == (0, "")
    (evaluation,) = json.loads(out)["evaluations"]
    (replayed,) = evaluation["estimates"]
    assert replayed["low"] < paid.max(axis=1).mean() < replayed["high"] + 0.2  # it learned first
    assert "of 600 decisions" in evaluation["notes"][0]
    code, out, _ = command("logs", "convert", *table[:1], "log.parquet", *table[1:])
    assert (code, " ".join(out.split())) == (0, "600 decisions written to log.parquet")
    assert command("logs", "check", "log.parquet")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "lin-ucb", "--data", "log.csv", "--reward", "clicks", "--arm", "shown"],
         "regret needs the reward of every arm, .* neuralucb evaluate log.csv --reward clicks --arm shown"),
        (["compare", "--data", "log.csv", "--arm", "shown"], "evaluate log.csv --reward COLUMN --arm shown"),
        (["run", "lin-ucb", "h1", "--rewards", "a,b"], "--rewards goes with --data, got 'a,b'"),
        (["run", "lin-ucb", "--data", "log.csv", "--rewards", ","], "--rewards must name columns, separated by commas"),
        (["run", "lin-ucb", "--data", "log.csv", "--rewards", "a,d"], "rewards must name a column of log.csv, got 'd'"),
        (["run", "lin-ucb", "h1", "--set", "arms=1000000000"], "h1, with 1000000000 arms .* needs 84.0 GB"),
        (["evaluate", "log.csv", "--policy", "lin-ucb", "--reward", "clicks"], "--reward and --arm go together"),
        (["evaluate", "log.csv", "--policy", "lin-ucb", "--drop", "a"], "--propensity and --drop go with --reward"),
        (["evaluate", "log.csv", "--policy", "lin-ucb", "--reward", "clicks", "--arm", "shown", "--skip-bad"],
         "--skip-bad goes with a log"),
        (["logs", "convert", "log.csv", "log.csv", "--reward", "clicks", "--arm", "shown"], "converted to itself"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_told(command, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr(memory, "host_bytes", lambda: 20 * 10**9)
    written(tmp_path)
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert re.search(message, " ".join(err.split()))
