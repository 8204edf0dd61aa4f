"""What a test registers and imports is forgotten after it."""

import sys
from pathlib import Path

import jax
import pytest

from neuralucb.algorithms import ALGORITHMS, NETWORKS
from neuralucb.logs import FORMATS
from neuralucb.problems import PROBLEMS
from neuralucb.runtime import extensions

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    tables = (ALGORITHMS, NETWORKS, PROBLEMS, FORMATS)
    before, modules = [dict(table) for table in tables], set(sys.modules)
    monkeypatch.setenv(extensions.VARIABLE, "")
    monkeypatch.setattr(extensions, "_imported", {})
    monkeypatch.setattr(extensions, "_installed", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and _is_ours(Path(sys.modules[name].__file__)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def as_users_have_it():
    """JAX with its usual promotion: other libraries rely on it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _is_ours(file):
    return file.parent == EXAMPLES or "pytest-of-" in str(file)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module into the current folder; returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write
