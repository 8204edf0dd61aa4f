"""Presets in files: what is written is read, and what is unknown in one is refused by its name."""

import pytest

from neuralucb import run
from neuralucb.experiments.plans import plan
from neuralucb.experiments.preset_files import read_preset, write_preset
from neuralucb.runtime.errors import InputError


@pytest.fixture
def preset(tmp_path):
    settings = {"exploration": 0.3, "regularization": 2.0, "input_scaling": "unit"}
    return str(
        write_preset(tmp_path / "mine.toml", algorithm="lin-ucb", schedule="20", settings=settings, summary="ours")
    )


def test_what_is_written_is_read(preset):
    read = read_preset(preset)
    assert (read.name, read.summary, read.shared.schedule) == ("mine", "ours", "20")
    assert read.shared == read.separate


def test_it_sets_its_algorithm_and_how_data_are_made_but_no_other_algorithm(preset):
    planned = plan("digits", ["lin-ucb", "glm-ucb"], {}, rounds=10, seeds=1, preset=preset)
    (lin,), (glm,) = planned.points.values()
    assert (lin.algorithm["exploration"], lin.algorithm["regularization"]) == (0.3, 2.0)
    assert (glm.algorithm["exploration"], glm.algorithm["regularization"]) != (0.3, 2.0)
    assert lin.problem == glm.problem
    assert lin.problem["input_scaling"] == "unit"
    assert planned.schedule == "20"


def test_settings_given_go_before_it(preset):
    (point,) = plan("digits", ["lin-ucb"], {"exploration": 7.0}, rounds=20, seeds=1, preset=preset).points["lin-ucb"]
    assert (point.algorithm["exploration"], point.algorithm["regularization"]) == (7.0, 2.0)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('algorithm = "lin-ucb"\nsetings = {}', "mine.toml: setings is not known; known: algorithm, summary"),
        ('algorithm = "lin-ucb"\n[settings]\nalpha = 1', "mine.toml: alpha = 1 is not a setting of lin-ucb, which has"),
        ('algorithm = "lin"\n', "mine.toml: algorithm 'lin' is not known; known:"),
        ('algorithm = "lin-ucb"\n[settings]\nexploration = -1', "mine.toml: exploration .*-1"),
        ('algorithm = "lin-ucb"\nschedule = "often"', "mine.toml: schedule must be"),
        ("[settings]\nexploration = 1", "mine.toml: algorithm must be a name"),
        ("algorithm = ", "mine.toml is not valid TOML"),
    ],
)
def test_what_is_unknown_or_wrong_in_a_file_is_refused(tmp_path, text, match):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError, match=match):
        run("lin-ucb", "h1", rounds=10, seeds=1, preset=str(tmp_path / "mine.toml"))


def test_a_file_that_was_not_found_is_named():
    with pytest.raises(InputError, match="preset nowhere.toml cannot be read: No such file"):
        run("lin-ucb", "h1", rounds=10, seeds=1, preset="nowhere.toml")
