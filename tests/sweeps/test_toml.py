"""Sweeps in TOML: read, written, and refused with line and key."""

import json

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.paper import paper_sweep
from neuralucb.sweeps.spec import Sweep
from neuralucb.sweeps.toml import as_toml, read_sweep
from tests.sweeps.helpers import TINY, tiny, with_data


def test_a_sweep_is_read_from_toml(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    sweep = read_sweep(tmp_path / "tiny.toml")
    assert (sweep.name, sweep.rounds, sweep.seeds) == ("tiny", 30, (0, 1, 2))
    assert [(part.algorithm, part.problem) for part in sweep.parts] == [
        ("lin-ucb", "h1"), ("uniform", "h1"), ("lin-ucb", "h3"), ("uniform", "h3"),
    ]  # fmt: skip
    assert sweep.parts[0].grid == {"exploration": [0.01, 1.0]}
    assert sweep.parts[1].grid == {}  # uniform has no exploration
    assert Sweep.from_json(json.loads(json.dumps(sweep.as_json()))).as_json() == sweep.as_json()


@pytest.mark.parametrize(
    "sweep",
    [
        tiny(),
        paper_sweep("figure1", "smoke"),
        Sweep("odd", 9, (3, 1), tiny().parts),
        Sweep("own", 9, (0,), tiny().parts, imports=("json", "os.path")),
    ],
    ids=lambda sweep: sweep.name,
)
def test_a_sweep_written_as_toml_is_read_as_itself(tmp_path, sweep):
    (tmp_path / "a.toml").write_text(as_toml(sweep))
    assert read_sweep(tmp_path / "a.toml").as_json() == sweep.as_json()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 30", "rounds = ", "is not valid TOML: .*line 3"),
        ("rounds = 30", "rounds = 0", "line 3: rounds must be an integer"),
        ("rounds = 30", "round = 30", "line 3: round is not known here; known: import, name"),
        ("seeds = 3", "seeds = [1, 1]", "line 4: seeds must be the number of seeds, .*or a list of different integers"),
        (
            '"lin-ucb", "uniform"',
            '"linucb"',
            "line 7: algorithms is wrong: .*'linucb' is not known; known: neural",
        ),
        ('"h1", "h3"', '"h9"', "line 8: problems is wrong: problem 'h9' is not known"),
        ("{ exploration = [0.01, 1.0] }", "{ explore = [1] }", "line 9: explore is not a setting of these; they have"),
        ("{ exploration = [0.01, 1.0] }", "{ exploration = 1 }", "exploration must be a list of values, got 1"),
        ("{ dim = 4 }", "{ dim = 4, exploration = 1 }", "exploration is set in both grid and settings"),
        ("{ dim = 4 }", '"much"', "line 10: settings must be a table"),
        ("[[runs]]", "[run]", "line 6: run is not known here"),
        ("[0.01, 1.0]", "[0.01, -1.0]", r"line 9: exploration is wrong: exploration \(α\) must be a number"),
        ("[0.01, 1.0]", "[1, 1.0]", "line 9: exploration has a value twice"),
        ("exploration = [0.01, 1.0]", "dim = [4, 8]", "line 9: dim is set in both|dim is a setting of the problem"),
        ("rounds = 30", 'schedule = "nope"', "line .*: schedule is wrong"),
        ("rounds = 30", 'preset = "nope"', "line .*: preset is wrong: preset 'nope' is not known"),
        ("rounds = 30", 'import = "mine"', "line 3: import is wrong: import must be a list of modules, got 'mine'"),
        ("rounds = 30", 'import = ["not there"]', "line 3: import is wrong: .* got 'not there'"),
        ("rounds = 30", 'import = ["not_there"]', "line 3: import is wrong: module 'not_there' was not found"),
        ("rounds = 30", "rounds = 3000000000", "line 3: rounds must be below"),
        ("seeds = 3", "seeds = [true, false]", "line 4: seeds must be"),
        ('"lin-ucb", "uniform"', '"lin-ucb", "lin-ucb"', "line 7: algorithms has lin-ucb on h1 a second time"),
        ('name = "tiny"', 'name = "../x"', "line 2: name must be a word or two"),
        ("rounds = 30", "# round = 5\nround = 30", "line 4: round is not known"),
        ("[0.01, 1.0]", '[0.1, "0.10"]', "line 9: exploration has a value twice"),
        ("[0.01, 1.0]", '["1e-1", 0.1]', "line 9: exploration has a value twice"),
        ("rounds = 30", 'schedule = ""', "line 3: schedule is wrong"),
        ("rounds = 30", "schedule = 0", "line 3: schedule is wrong: .*[^.][.]$"),
        ('name = "tiny"', f'name = "{"a" * 300}"', "line 2: name must be a word or two, at most 100 letters"),
        ("seeds = 3", "seeds = 3\nseeds = 4", "is not valid TOML: .*line 5, .*in: seeds = 4[.]$"),
        ("{ dim = 4 }", '{ noise = "#", dim = 0 }', "line 10: (dim|noise) is wrong"),
    ],
)
def test_a_bad_toml_names_line_and_key(tmp_path, old, new, message):
    (tmp_path / "bad.toml").write_text(TINY.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_sweep(tmp_path / "bad.toml")


def test_an_alias_is_stored_and_found_under_one_name(tmp_path, monkeypatch):
    with_data(tmp_path / "data", monkeypatch, 1)
    (tmp_path / "a.toml").write_text(TINY.replace('"h1", "h3"', '"statlog"').replace("settings = { dim = 4 }", ""))
    assert {part.problem for part in read_sweep(tmp_path / "a.toml").parts} == {"shuttle"}


def test_more_rounds_than_rows_are_told_with_their_line_and_cure(tmp_path):
    (tmp_path / "a.toml").write_text('rounds = 200\n[[runs]]\nalgorithms = ["uniform"]\nproblems = ["iris"]\n')
    cure = r"line 1: rounds is wrong: .*at most 150, the rows of iris, got 200; .*settings = \{ repeat = true \}\.$"
    with pytest.raises(InputError, match=cure):
        read_sweep(tmp_path / "a.toml")


def test_a_mark_before_the_first_letter_is_no_part_of_a_sweep(tmp_path):
    (tmp_path / "a.toml").write_text(TINY, encoding="utf-8-sig")
    assert read_sweep(tmp_path / "a.toml").rounds == 30


def test_a_sweep_of_too_many_runs_is_refused_before_it_is_planned(tmp_path):
    text = 'rounds = 100\nseeds = 100000\n[[runs]]\nalgorithms = "neural-ucb0"\nproblems = "h1"\ngrid = "paper"\n'
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InputError, match="line 2: seeds times grids makes 10800000 runs; at most 1000000"):
        read_sweep(tmp_path / "a.toml")
