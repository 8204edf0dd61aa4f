"""The examples in docstrings run as they stand, in a folder with a small log, and print what they show."""

import doctest
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import neuralucb

SOURCE = Path(neuralucb.__file__).parent
LOGS = Path(__file__).parent / "data" / "v0_1"
WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
NAMES = {name: getattr(neuralucb, name) for name in neuralucb.__all__} | {
    "neuralucb": neuralucb,
    "np": np,
    "Path": Path,
}
"""What an example may use without importing it; a module's names come first."""


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_in_docstrings_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for log in LOGS.glob("log.*"):
        shutil.copy(log, tmp_path)
    module = import_module(".".join(["neuralucb", *path.relative_to(SOURCE).with_suffix("").parts]))
    done = doctest.testmod(module, globs=NAMES | vars(module), optionflags=doctest.ELLIPSIS)
    assert done.attempted
    assert not done.failed
