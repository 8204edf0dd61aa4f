"""Run by `make dist` outside the checkout: what was installed decides, learns, saves and loads; plays; and serves."""

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import jax
import numpy as np

import neuralucb
from neuralucb import OnlineBandit, build

COMMAND = str(Path(sys.executable).parent / "neuralucb")
SMALL = """
[bandit]
algorithm = "lin-ucb"
slots = 16
floor = 0.2

[store]
arms = 4
"""
"""A service that compiles fast."""


def core(folder: Path) -> None:
    """What needs no extra."""
    bandit = OnlineBandit(build("neural-ucb", dim=3, width=8, steps=10), schedule="5", learning="inline")
    visitors = np.random.default_rng(0)
    for _ in range(10):
        contexts = visitors.normal(size=(4, 3))
        decision = bandit.select(contexts)
        bandit.observe(decision.id, contexts[decision.position, 0])
    bandit.save(folder / "saved")
    again = OnlineBandit.load(folder / "saved")
    assert again.health().observed == 10, again.health()
    assert again.select(contexts).position == bandit.select(contexts).position


def experiments(folder: Path) -> None:
    """A run with its table and figure, and one as JSON."""
    play = [COMMAND, "run", "lin-ucb", "h1", "--rounds", "50", "--seeds", "2"]
    subprocess.run([*play, "--out", str(folder / "out")], check=True, cwd=folder, capture_output=True)
    assert list((folder / "out").rglob("*.png")), "no figure was drawn"
    json.loads(subprocess.check_output([*play, "--json"], cwd=folder))


def serve(folder: Path) -> None:
    """One decision over HTTP, and its reward."""
    (folder / "service.toml").write_text(SMALL)
    command = [COMMAND, "serve", "--port", "0", "--store", "store", "--config", "service.toml"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as service:
        try:
            address = service.stdout.readline().split()[-1]
            decision = post(f"{address}/v1/decide", {"event_id": "1", "arms": [{"id": "news"}, {"id": "sport"}]})
            assert decision["arm"] in ("news", "sport"), decision
            assert post(f"{address}/v1/reward", {"event_id": "1", "reward": 1})["status"] == "learned"
        finally:
            service.terminate()


def post(address: str, body: dict[str, object]) -> dict[str, object]:
    """The answer to a request."""
    request = urllib.request.Request(address, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    if "site-packages" not in neuralucb.__file__:
        raise SystemExit(f"{neuralucb.__file__} is not what was installed")
    with tempfile.TemporaryDirectory() as name:
        core(Path(name))
        for extra in sys.argv[1:]:
            {"experiments": experiments, "serve": serve}[extra](Path(name))
    print(f"neuralucb {neuralucb.__version__} works on Python {sys.version.split()[0]}, jax {jax.__version__}")
