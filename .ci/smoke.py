"""Run by `make dist` outside the checkout: what was installed decides, learns, saves and loads."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import neuralucb
from neuralucb import OnlineBandit, build

if "site-packages" not in neuralucb.__file__:
    raise SystemExit(f"{neuralucb.__file__} is not what was installed")

with tempfile.TemporaryDirectory() as folder:
    bandit = OnlineBandit(build("neural-ucb", dim=3, width=8, steps=10), schedule="5", learning="inline")
    visitors = np.random.default_rng(0)
    for _ in range(10):
        contexts = visitors.normal(size=(4, 3))
        decision = bandit.select(contexts)
        bandit.observe(decision.id, contexts[decision.position, 0])
    bandit.save(f"{folder}/saved")
    again = OnlineBandit.load(f"{folder}/saved")
    assert again.health().observed == 10, again.health()
    assert again.select(contexts).position == bandit.select(contexts).position

    if "experiments" in sys.argv[1:]:
        command = [
            str(Path(sys.executable).parent / "neuralucb"),
            "run",
            "lin-ucb",
            "h1",
            "--rounds",
            "50",
            "--seeds",
            "2",
            "--json",
        ]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

print(
    f"neuralucb {neuralucb.__version__} works on Python {sys.version.split()[0]}, jax {__import__('jax').__version__}"
)
