"""Settings: words for the paper's symbols, read safely."""

import pytest

from neuralucb import build
from neuralucb.algorithms import ALGORITHMS
from neuralucb.settings import read_settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regularization": 0}, r"regularization \(λ\) must be a number > 0, got 0"),
        ({"regularization": "-1"}, r"regularization \(λ\) must be a number > 0, got '-1'"),
        ({"exploration": -0.1}, r"exploration \(γ\) must be a number ≥ 0, got -0.1"),
        ({"exploration": "nan"}, "exploration"),
        ({"step_size": "fast"}, r"step_size \(η\) must be a number > 0, got 'fast'"),
        ({"steps": "T"}, "steps .* or \"t\", got 'T'"),
        ({"steps": 0}, "steps"),
        ({"width": 2.5}, "width .* whole number ≥ 1, got 2.5"),
        ({"depth": 1}, "depth .* ≥ 2, got 1"),
        ({"duplicate": "perhaps"}, "true or false, got 'perhaps'"),
        ({"design": "sparse"}, "one of full, diagonal, .*, got 'sparse'"),
        ({"gamma": 1}, "gamma .* is not a setting of neural-ucb; it has: exploration, regularization"),
        ({"width": 7, "initialization": "paper"}, "width must be even"),
        ({"confidence": "theoretical", "step_size": 1}, "ηmλ"),
        ({"method": "gradient-descent", "optimizer": "adam"}, "optimizer must be plain"),
        ({"method": "gradient-descent", "optimizer": "plain", "decay": "linear"}, "decay must be none"),
    ],
)
def test_bad_settings_are_refused_by_name_with_the_cure(settings, message):
    with pytest.raises(ValueError, match=message):
        build("neural-ucb", dim=4, **settings)


def test_odd_dimensions_need_another_initialisation_than_the_papers():
    with pytest.raises(ValueError, match="dim must be even for initialization='paper'.* got 5"):
        build("neural-ucb", dim=5, initialization="paper")
    build("neural-ucb", dim=5, initialization="paper", duplicate=True)


def test_an_unknown_algorithm_lists_the_known():
    with pytest.raises(ValueError, match="'neural_ucb' is not known; known: neural-mix, .* Did you mean neural-ucb.$"):
        build("neural_ucb", dim=4)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_defaults_and_grids_pass_their_own_checks(name):
    settings = ALGORITHMS[name].settings
    defaults = {setting.name: setting.default for setting in settings}
    assert read_settings(settings, defaults, of=name) == defaults
    for setting in settings:
        for value in setting.grid:
            assert setting.read(value) == setting.read(str(value))


def test_words_and_numbers_read_the_same():
    settings = ALGORITHMS["neural-ucb"].settings
    words = {"steps": "12", "width": "8", "duplicate": "true", "exploration": "1e-2"}
    values = read_settings(settings, words, of="neural-ucb")
    assert [values[name] for name in words] == [12, 8, True, 0.01]
