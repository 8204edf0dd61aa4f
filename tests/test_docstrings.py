"""The examples in docstrings run as they stand, in a folder with small files, and print what they show."""

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
FILES = {
    "flowers.csv": "length,species\n"
    + "".join(f"{length},{'rose' if length % 2 else 'lily'}\n" for length in range(40)),
    "log.csv": "age,shown,clicks\n30,0,1\n41,1,0\n52,1,1\n",
}


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_in_docstrings_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for log in LOGS.glob("log.*"):
        shutil.copy(log, tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    module = import_module(".".join(["neuralucb", *path.relative_to(SOURCE).with_suffix("").parts]))
    assert not doctest.testmod(module, globs=NAMES | vars(module)).failed
