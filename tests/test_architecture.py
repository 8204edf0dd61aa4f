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
    {"files", "precision", "memory", "settings", "schedules", "presets"},
    {"history", "policy", "confidence"},
    {"blocks", "designs", "networks", "encodings", "training", "rules", "exploring"},
    {"estimators"},
    {"algorithms", "problems", "simulation", "logs"},
    {"experiments", "online"},
    {"sweeps", "theory", "evaluation"},
    {"options", "consoles"},
    {"cli", "data_commands", "log_commands", "sweep_commands", "theory_commands"},
]


def layer(module):
    name = module.split(".")[0]
    return next(level for level, names in enumerate(LAYERS) if name in names)


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuralucb."):
            yield node.module.removeprefix("neuralucb.")
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("neuralucb.") for alias in node.names if "neuralucb." in alias.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    if name == "__init__":
        return
    for imported in imports_of(path):
        assert layer(imported) <= layer(name), f"{name} imports {imported}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_one_idea_and_say_which(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    assert ast.get_docstring(ast.parse(text))


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
