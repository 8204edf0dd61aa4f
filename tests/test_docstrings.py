"""Docstrings: examples run as they stand, in a folder with small files; public functions explain their arguments."""

import doctest
import inspect
import re
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


def exported_functions():
    rooms = [neuralucb, *(import_module(f"neuralucb.{name}") for name in neuralucb._ROOMS)]
    found = {each for room in rooms for name in room.__all__ if inspect.isfunction(each := getattr(room, name))}
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_in_docstrings_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for log in LOGS.glob("log.*"):
        shutil.copy(log, tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    module = import_module(".".join(["neuralucb", *path.relative_to(SOURCE).with_suffix("").parts]))
    assert not doctest.testmod(module, globs=NAMES | vars(module)).failed


@pytest.mark.parametrize("function", exported_functions(), ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_public_functions_document_arguments_and_what_they_return(function):
    signature, lines = inspect.signature(function), inspect.getdoc(function).splitlines()
    for name in signature.parameters:
        (described,) = [line for line in lines if re.match(rf"    \*{{0,2}}{name}: ", line)]
        assert not re.match(r"    \S+: [a-z]{2,}\b", described), described
    assert "Returns:" in lines or signature.return_annotation is None
    assert "Example:" in lines
