"""Plays every algorithm and `OnlineBandit` with two source trees on this machine and compares every number bit for bit.

    python benchmarks/same_numbers.py OTHER_CHECKOUT

Exits with 1 if a bit differs. About three minutes per tree.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent.parent
PLAY = HERE / "tests" / "pins" / "play.py"


def played(tree, target):
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, PLAY, target], check=True, env=environment, capture_output=True, text=True)
    assert str(tree) in done.stdout, f"another neuralucb was imported: {done.stdout}"
    return np.load(target)


def main(other):
    with tempfile.TemporaryDirectory() as folder:
        old, new = played(Path(other).resolve(), f"{folder}/old.npz"), played(HERE.resolve(), f"{folder}/new.npz")
        missing = sorted(set(old.files) ^ set(new.files))
        differ = [
            name
            for name in old.files
            if name not in missing
            and (old[name].dtype != new[name].dtype or old[name].tobytes() != new[name].tobytes())
        ]
    for name in missing:
        print("only in one tree:", name)
    for name in differ:
        print("differs:", name)
    print(f"{len(old.files) - len(differ) - len(missing)} of {len(old.files)} arrays are equal to the last bit")
    return 1 if missing or differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
