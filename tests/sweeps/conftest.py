"""A finished sweep, run once for all tests that only look at its store; and imports that are forgotten."""

import shutil

import pytest

from neuralucb.runtime import extensions
from tests.sweeps.helpers import run_tiny


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory):
    return run_tiny(tmp_path_factory.mktemp("finished") / "out").folder


@pytest.fixture
def finished(finished_once, tmp_path):
    """A copy of the finished sweep `tiny`, in a folder that may be written to."""
    shutil.copytree(finished_once, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture(autouse=True)
def no_modules(monkeypatch):
    """What a sweep imports is forgotten after the test."""
    monkeypatch.setenv(extensions.VARIABLE, "")
    monkeypatch.setattr(extensions, "_imported", {})
