"""The shape of the house: imports go one way, the core is light, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import neuralucb

SOURCE = Path(neuralucb.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = [
    {"runtime", "settings", "schedules"},
    {"history", "gradients", "policy", "confidence", "features"},
    {"networks", "designs", "training", "rules"},
    {"estimators"},
    {"algorithms", "problems"},
    {"simulation"},
    {"experiments"},
    {"logs", "sweeps", "theory", "evaluation", "online"},
    {"service"},
    {"display"},
    {"cli"},
]
"""From below to above: a room may import from its own and lower layers, even for types alone."""
BESIDE = {("evaluation", "logs"), ("online", "logs")}
"""Rooms of one layer that may know each other: an evaluation reads logs, and a bandit learns from one."""


UPWARDS = {
    ("experiments.results", "display.figures"),
    ("experiments.comparisons", "display.figures"),
    ("sweeps.results", "display.sweep_report"),
    ("sweeps.results", "display.sweep_progress"),
    ("sweeps.results", "display.console"),
}
"""The one way up: what a user holds in hand asks to be shown when the user calls `plot`, `report` or `progress=True`.
Nothing else of display is known below, and importing these modules brings neither matplotlib nor rich."""


def layer(module):
    name = module.split(".")[0]
    return next(level for level, names in enumerate(LAYERS) if name in names)


def imports_of(path):
    """Every module of ours that a file imports, in functions and for types too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "neuralucb":
            yield from (alias.name for alias in node.names if not alias.name.startswith("__"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralucb."):
            yield from (f"{node.module.removeprefix('neuralucb.')}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("neuralucb.") for alias in node.names if "neuralucb." in alias.name)


def may_import(name, imported):
    """Whether a module of that name may import another."""
    here, there = name.split(".")[0], imported.split(".")[0]
    if here == there:
        return True
    return layer(imported) < layer(name) or (
        layer(imported) == layer(name) and (layer(name) < layer("logs") or (here, there) in BESIDE)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    if name == "__init__":
        return
    for imported in imports_of(path):
        if (name, imported.rpartition(".")[0]) in UPWARDS:
            continue
        assert may_import(name, imported), f"{name} imports {imported}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_one_idea_and_say_which(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 450
    assert ast.get_docstring(ast.parse(text))


def test_files_of_tests_stay_small():
    lengths = {path.name: len(path.read_text().splitlines()) for path in Path(__file__).parent.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > 500} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_touches_the_private_names_of_another(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralucb"):
            private = [alias.name for alias in node.names if is_private(alias.name)]
            assert not private, f"{path}:{node.lineno} imports {private}"
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in NAMED_TUPLES:
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            assert owner in ("self", "cls", "os"), f"{path}:{node.lineno} touches {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_public_functions_stand_before_private_ones(path):
    """Decorators and constants may need a private one earlier; a function that is only called does not."""
    body = ast.parse(path.read_text()).body
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef) and not needed_at_import(node, body)]
    private = [is_private(name) for name in functions]
    assert private == sorted(private), functions


def test_only_the_display_knows_rich_and_matplotlib():
    for path in FILES:
        modules = [
            getattr(node, "module", None) or node.names[0].name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        knows = {module.split(".")[0] for module in modules} & {"rich", "matplotlib"}
        assert not knows or path.parent.name == "display", path


NAMED_TUPLES = {"_replace", "_asdict", "_make", "_fields"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def needed_at_import(function, body):
    """Whether a statement of the module uses the function, or it is a part of another, such as `@product.def_vmap`."""
    statements = [node for node in body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    decorators = [each for node in body for each in getattr(node, "decorator_list", [])]
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return function.name in names_in(*statements, *decorators) or bool(names_in(*function.decorator_list) & functions)


def names_in(*nodes):
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def fresh(code):
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_importing_everything_of_the_core_brings_nothing_heavy_and_changes_nothing():
    code = """
import sys, jax
before = dict(jax.config.values)
import neuralucb
names = [getattr(neuralucb, name) for name in neuralucb.__all__]
assert before == dict(jax.config.values)
heavy = {'matplotlib', 'sklearn', 'pandas', 'pyarrow', 'typer', 'rich', 'optax'} & set(sys.modules)
assert not heavy, heavy
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr


def test_every_public_name_exists_and_others_do_not():
    for name in neuralucb.__all__:
        assert getattr(neuralucb, name) is getattr(neuralucb, name)
        assert not isinstance(getattr(neuralucb, name), ModuleType)
    assert set(neuralucb._HOME) == set(neuralucb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = neuralucb.nothing
