"""Registering: by decorator, by call, by entry point; what is refused, and how it is told."""

import importlib.metadata
import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from neuralucb import InputError, build, run, synthetic
from neuralucb.algorithms import ALGORITHMS, NETWORKS, Algorithm, find_algorithm, register_algorithm, register_network
from neuralucb.logs import FORMATS
from neuralucb.problems import PROBLEMS, find_problem, labelled, register_problem
from neuralucb.runtime.extensions import add_modules
from neuralucb.settings import integer, number
from tests.problems.rows import X, Y

RECIPE = """
from neuralucb.algorithms import build, register_algorithm

@register_algorithm("{name}")
def recipe(task, settings):
    '''As uniform as can be.'''
    return build("uniform", dim=task.dim, shared_by=task.shared_by)
"""


def recipe(task, settings):
    """As uniform as can be."""
    return build("uniform", dim=task.dim, shared_by=task.shared_by)


def small(dim=4):
    """A small problem."""
    return synthetic("h1", dim=dim, arms=3)


def test_a_decorator_and_a_call_register_and_return_the_function():
    assert register_algorithm("mine", citation="nobody 2026")(recipe) is recipe
    assert find_algorithm("mine").summary == "As uniform as can be"
    assert register_problem("small", settings=(integer("dim", "d", 4, "numbers"),))(small) is small
    assert run("mine", "small", rounds=5, seeds=2, dim=3).settings == {"dim": 3}
    assert run("mine", "small", rounds=5, seeds=2).problem == "small"


def test_a_record_can_be_put_into_the_table_itself():
    ALGORITHMS["mine"] = Algorithm("mine", "", "", "everything", (), recipe)
    assert build("mine", dim=2).origin.algorithm == "mine"
    with pytest.raises(InputError, match=r"registered under its name, 'mine'"):
        ALGORITHMS["other"] = ALGORITHMS["mine"]
    with pytest.raises(InputError, match="must be registered as Algorithm, got function; register_algorithm"):
        ALGORITHMS["other"] = recipe


def test_a_problem_tells_itself_whether_its_arms_share_a_context():
    register_problem("toy")(lambda: labelled(X, Y))
    register_problem("apart")(small)
    assert find_problem("toy").shared
    assert not find_problem("apart").shared
    assert run("lin-ucb", "toy", rounds=5, seeds=1).problem == "toy"


def test_a_registered_problem_is_made_once_for_each_combination_of_settings():
    made = []

    @register_problem("counted", settings=(integer("dim", "d", 4, "numbers"),))
    def counted(dim):
        made.append(dim)
        return small(dim)

    for _ in range(2):
        run("uniform", "counted", rounds=5, seeds=1)
    assert made == [4]


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: register_algorithm("lin-ucb")(recipe), "algorithm 'lin-ucb' is registered already, by neuralucb.algo"),
        (lambda: register_problem("h1")(small), "problem 'h1' is registered already"),
        (lambda: register_network("mlp")(recipe), "network 'mlp' is registered already"),
        (lambda: register_algorithm("two words")(recipe), "'two words' cannot be registered: a name is letters"),
        (lambda: register_algorithm("all")(recipe), "and not all"),
        (lambda: register_algorithm("a/b")(recipe), "'a/b' cannot be registered"),
        (lambda: register_algorithm("mine")(lambda task: None), r"must be a function \(task, settings\), got <lambda>"),
        (lambda: register_algorithm("mine")("recipe"), "must be a function .* got 'recipe'"),
        (lambda: register_network("mine")(lambda: None), r"network 'mine' must be a function \(task, settings\)"),
        (
            lambda: register_problem("mine", settings=(integer("size", "", 4, "numbers"),))(small),
            r"maker of problem 'mine' must be a function \(size\), got small\(dim=4\)",
        ),
        (lambda: register_algorithm("mine", settings=("width",))(recipe), "must be made by number, integer, choice"),
        (lambda: register_algorithm("mine", settings=[integer("rounds", "", 1, "")])(recipe), "must have another name"),
        (lambda: register_algorithm("mine", settings=[integer("a", "", 1, "")] * 2)(recipe), "'a' .* is given twice"),
        (
            lambda: register_algorithm("mine", settings=[number("a", "", -1.0, "", least=0)])(recipe),
            "a must be a number ≥ 0, got -1",
        ),
    ],
)  # fmt: skip
def test_what_could_not_work_is_refused_when_it_is_registered(register, message):
    before = dict(ALGORITHMS), dict(PROBLEMS), dict(NETWORKS)
    with pytest.raises(InputError, match=message):
        register()
    assert (dict(ALGORITHMS), dict(PROBLEMS), dict(NETWORKS)) == before


def test_a_recipe_or_a_maker_that_returns_something_else_is_told_so():
    register_algorithm("mine")(lambda task, settings: "policy")
    register_problem("odd")(lambda: 3)
    with pytest.raises(InputError, match="recipe of algorithm 'mine' must return a Policy, got 'policy'"):
        build("mine", dim=3)
    with pytest.raises(InputError, match="maker of problem 'odd' must return a Problem, got 3"):
        run("lin-ucb", "odd", rounds=5)


def test_a_cell_that_is_run_again_replaces_what_it_registered():
    cell = RECIPE.format(name="mine")
    names = {"__name__": "__main__"}
    exec(cell, names)
    before = find_algorithm("mine")
    exec(cell.replace("As uniform as can be", "Uniform"), names)
    assert before.summary == "As uniform as can be"
    assert find_algorithm("mine").summary == "Uniform"


def test_two_modules_cannot_register_one_name(module):
    add_modules([module("first_module", RECIPE.format(name="mine"))])
    with pytest.raises(InputError, match="'mine' is registered already, by first_module; choose another name"):
        add_modules([module("second_module", RECIPE.format(name="mine"))])


def test_the_environment_names_modules_and_an_unknown_name_says_where_it_was_looked_for(module, monkeypatch):
    monkeypatch.setenv("NEURALUCB_IMPORT", f"{module('some_module', RECIPE.format(name='mine'))}, os.path")
    assert find_algorithm("mine").name == "mine"
    for find, kind in ((find_algorithm, "algorithm"), (find_problem, "problem")):
        with pytest.raises(
            InputError,
            match=rf"{kind} 'your' is not known; known: .*looked into neuralucb, some_module, os.path; --imp",
        ):
            find("your")
    with pytest.raises(InputError, match="network .* must be one of mlp, .*looked into neuralucb, some_module"):
        build("neural-ucb", dim=3, network="your")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module", r"module 'no_such_module' was not found; put no_such_module.py into the current folder"),
        ("mine.py", "must name a module as Python's `import` does, such as my_module"),
        ("folder/mine", "without .py and without a folder, got 'folder/mine'"),
        ("", "must name a module"),
    ],
)
def test_a_module_that_does_not_exist_is_told_with_the_cure_and_forgotten(module, name, message):
    with pytest.raises(InputError, match=message):
        add_modules([name])
    assert find_algorithm("lin-ucb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_at_all", "ModuleNotFoundError: No module named 'nothing_at_all'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("def g():\n    return 1 / 0\ng()", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
    ],
)
def test_a_module_that_cannot_be_imported_shows_its_traceback_and_no_other(module, command, text, message):
    module("broken_module", text)
    code, out, err = command("--import", "broken_module", "list")
    assert (code, out) == (2, "")
    assert "module 'broken_module' could not be imported:" in err
    assert message in err
    assert "broken_module.py" in err
    assert "importlib" not in err
    assert "extensions.py" not in err


def test_an_error_in_an_imported_module_is_not_called_a_fault_of_the_library(module, command):
    text = RECIPE.format(name="mine").replace("    return build", "    task.colour\n    return build")
    code, _, err = command("--import", module("colourful_module", text), "run", "mine", "h1", "--rounds", 5)
    assert code == 2
    assert "AttributeError: 'Task' object has no attribute 'colour'" in err
    assert "This happened in colourful_module, which you imported" in " ".join(err.split())


def test_a_sweep_keeps_what_the_command_line_imported(module, command, tmp_path):
    name = module("kept_module", RECIPE.format(name="mine"))
    runs = '[[runs]]\nalgorithms = ["mine"]\nproblems = ["h1"]'
    (tmp_path / "mine.toml").write_text(f"rounds = 5\nseeds = 1\n{runs}")
    code, _, err = command("--import", name, "sweep", "mine.toml", "--workers", 1, "--out", "out")
    assert code == 0, err
    assert json.loads((tmp_path / "out" / "sweep.json").read_text())["sweep"]["import"] == [name]
    (tmp_path / "mine.toml").write_text(f'rounds = 5\nseeds = 1\nimport = ["{name}"]\n{runs}')
    assert command("sweep", "mine.toml", "--workers", 1, "--out", "out")[0] == 0


def test_what_is_imported_is_listed(module, command):
    text = RECIPE.format(name="mine") + "from neuralucb.algorithms import register_network\n"
    text += "register_network('my-net', summary='a network')(lambda task, settings: None)\n"
    code, out, _ = command("--import", module("listed_module", text), "list")
    assert code == 0
    for words in ("As uniform as can be", "my-net", "a network", "the paper's: fully connected"):
        assert words in out


@pytest.fixture
def install(monkeypatch):
    """Pretends that packages with these entry points are installed."""

    def pretend(**values):
        points = [EntryPoint(name, value, "neuralucb.algorithms") for name, value in values.items()]
        found = EntryPoints(points)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found.select(group=group))

    return pretend


def test_installed_packages_add_by_a_module_a_function_or_a_record(install, module, monkeypatch):
    monkeypatch.syspath_prepend("")
    module("entry_module", RECIPE.format(name="by-module"))
    module("entry_function", RECIPE.format(name="by-function"))
    record = "from neuralucb.algorithms import ALGORITHMS\nMINE = ALGORITHMS['uniform']._replace(name='by-record')"
    module("entry_record", record)
    install(
        **{"by-module": "entry_module", "by-function": "entry_function:recipe", "by-record": "entry_record:MINE"},
    )
    for name in ("by-module", "by-function", "by-record"):
        assert find_algorithm(name).name == name
    with pytest.raises(InputError, match="looked into neuralucb, entry_module, entry_function, entry_record"):
        find_algorithm("other")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("uniform", "MINE = find('lin-ucb')._replace(name='uniform')", "'uniform' is registered already, by neuralucb"),
        ("your", "1 / 0", "entry point 'your' of neuralucb.algorithms, module 'entry_bad:MINE' could not be imported"),
        ("your", "MINE = 3", "algorithm 'your' must be registered as Algorithm, got int"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_refused(install, module, monkeypatch, name, text, message):
    monkeypatch.syspath_prepend("")
    module("entry_bad", f"from neuralucb.algorithms import find_algorithm as find\n{text}")
    install(**{name: "entry_bad:MINE"})
    with pytest.raises(InputError, match=message):
        find_algorithm("lin-ucb")


def test_the_version_is_shown(command):
    from neuralucb import __version__

    assert command("--version") == (0, f"neuralucb {__version__}\n", "")


def test_a_module_may_add_a_log_format(module, command):
    text = """
import numpy as np
from neuralucb.logs import FORMATS, Format, recorded

def read(path, bad):
    arm = np.loadtxt(path, ndmin=1)
    yield recorded(np.ones((len(arm), 2)), arm, arm, np.full((len(arm), 2), 0.5))

def write(path, chunks):
    arms = np.concatenate([chunk.arm for chunk in chunks])
    np.savetxt(path, arms)
    return len(arms)

FORMATS[".arms"] = Format(read, write)
"""
    module("format_module", text)
    Path("log.arms").write_text("0\n1\n1\n")
    code, _, err = command("logs", "convert", "log.arms", "log.parquet")
    assert code == 2
    assert "a log must end in .parquet" in err
    code, _, err = command("--import", "format_module", "logs", "convert", "log.arms", "log.parquet")
    assert code == 0, err
    assert ".arms" in FORMATS
    assert command("logs", "convert", "log.parquet", "back.arms")[0] == 0
