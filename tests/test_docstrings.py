"""The examples in docstrings of the core run as they stand."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import neuralucb

SOURCE = Path(neuralucb.__file__).parent
ROOMS = ("algorithms", "estimators", "networks", "runtime")
PATHS = sorted([*SOURCE.glob("*.py"), *(path for room in ROOMS for path in (SOURCE / room).glob("*.py"))])
WITH_EXAMPLES = [path for path in PATHS if ">>>" in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_in_docstrings_run(path):
    name = ".".join(["neuralucb", *path.relative_to(SOURCE).with_suffix("").parts])
    done = doctest.testmod(import_module(name))
    assert done.attempted
    assert not done.failed
