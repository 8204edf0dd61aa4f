"""Plans: who gets which settings, and what is refused before anything is computed."""

import numpy as np
import pytest

from neuralucb import InputError, compare, run, run_grid
from neuralucb.problems import labelled
from tests.experiments.sizes import TINY
from tests.problems.rows import X, Y


def test_comparing_gives_each_algorithm_the_settings_it_has():
    results = compare(["neural-ucb", "neural-epsilon-greedy", "lin-ucb"], "h1", seeds=2, epsilon=0.5, **TINY)
    assert [result.algorithm for result in results] == ["neural-ucb", "neural-epsilon-greedy", "lin-ucb"]
    assert results[1].settings["epsilon"] == 0.5
    assert "epsilon" not in results[2].settings
    with pytest.raises(InputError, match="epsilom .* is not a setting of any of these"):
        compare(["lin-ucb"], "h1", seeds=2, rounds=10, epsilom=0.5)


def test_lists_that_are_none_are_refused():
    for algorithms in ("lin-ucb", [], None):
        with pytest.raises(InputError, match="algorithms must be a list of names, got"):
            compare(algorithms, "h1")
    with pytest.raises(InputError, match="algorithms must differ, got 'lin-ucb' more than once"):
        compare(["lin-ucb", "lin-ucb"], "h1")
    with pytest.raises(InputError, match="algorithms must map 'lin-ucb' to its settings by name, got 3"):
        compare({"lin-ucb": 3}, "h1")
    for values in ("12", [], 3):
        with pytest.raises(InputError, match="list of values for exploration"):
            run_grid("lin-ucb", "h1", {"exploration": values})


def test_algorithms_may_bring_settings_of_their_own():
    results = compare(
        {"lin-ucb": {"exploration": 0.5}, "glm-ucb": {}}, "h1", rounds=20, seeds=1, dim=4, exploration=0.2
    )
    assert [result.settings["exploration"] for result in results] == [0.5, 0.2]
    with pytest.raises(InputError, match="epsilon: not a setting of lin-ucb"):
        compare({"lin-ucb": {"epsilon": 0.5}}, "h1", rounds=20, seeds=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1.* got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number .* got 2.5"),
        ({"rounds": 10**12}, "rounds must be .* at most"),
        ({"seeds": 0}, "seeds must be .* got 0"),
        ({"seeds": 2.5}, "seeds must be .* got 2.5"),
        ({"seeds": 10**9}, "seeds must be at most"),
        ({"seeds": [2**32]}, "seeds must be a number of runs"),
        ({"seeds": []}, "seeds must be a number of runs"),
        ({"exploration": 10**400}, "exploration"),
        ({"exploration": 1e300}, "exploration .* between 1e-30 and 1e\\+30"),
        ({"exploration": np.True_}, "exploration"),
        ({"regularization": 1e-50}, "regularization"),
        ({"dim": 200_000}, "needs .* GB and .* GB are free"),
        ({"seeds": [1, 1]}, "seeds must differ"),
        ({"seeds": 10_000, "rounds": 10**7, "trace": True}, "the trace of 10000 seeds .* no trace"),
        ({"progress": 3}, "progress must be True, or a function of the stage"),
        ({"preset": "fast"}, "preset 'fast' is not known; known: default"),
        ({"schedule": "now"}, "schedule must be"),
        ({"colour": 1}, "colour: not a setting of lin-ucb .* nor of h1"),
        ({"arms": 1}, "arms"),
    ],
)
def test_bad_arguments_are_refused_before_computing(arguments, message):
    with pytest.raises(InputError, match=message):
        run("lin-ucb", "h1", **{"rounds": 10, "seeds": 1, **arguments})


def test_presets_leave_the_numbers_of_other_algorithms_alone():
    for preset in ("paper", "default", "uclaml"):
        result = run("lin-ucb", "wine", rounds=5, seeds=1, preset=preset)
        assert (result.settings["regularization"], result.settings["exploration"]) == (1.0, 0.1)
    with pytest.raises(
        ValueError, match="sets input_scaling='unit', which a problem that is already built cannot take"
    ):
        run("lin-ucb", labelled(X, Y), rounds=5, preset="uclaml")


def test_the_rounds_are_all_rows_where_there_are_few():
    assert run("uniform", labelled(X, Y), seeds=1).rounds == 40
