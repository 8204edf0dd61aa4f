"""Nothing acknowledged is lost: processes killed at any time, and crashed before every step of writing."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from neuralucb import OnlineBandit
from tests.online.helpers import linear
from tests.processes import started

pytestmark = pytest.mark.waits

STEPS = (
    "journal segment",
    "journal write",
    "journal sync",
    "snapshot arrays.safetensors",
    "snapshot state.json",
    "snapshot manifest",
    "snapshot sync",
    "snapshot tidy",
)
WORKER = """
import os, sys, time
import numpy as np
from neuralucb import OnlineBandit, build
from neuralucb.online import keeper

folder, log, crash = sys.argv[1:4]
seen = {}
def step(name):
    seen[name] = seen.get(name, 0) + 1
    if crash and crash.rsplit(":", 1)[0] == name and seen[name] == int(crash.rsplit(":", 1)[1]):
        os._exit(9)
keeper.step = step
told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
bandit = OnlineBandit(build("lin-ucb", dim=3), journal=folder, sync="each", snapshot_every=40, schedule="15")
bandit.warm_up(arms=4, decisions=2)
os.write(told, b"S\\n")
generator = np.random.default_rng(int(time.time() * 1e6) % 2**32)
waiting = []
for index in range(3000):
    for decision in bandit.select_many(generator.normal(size=(2, 4, 3))) if index % 3 else [
        bandit.select(generator.normal(size=(4, 3)))
    ]:
        waiting.append(decision.id)
        os.write(told, f"D {decision.id}\\n".encode())
    if index % 2 and waiting:
        decision = waiting.pop(int(generator.integers(len(waiting))))
        reward = float(np.float32(generator.random()))
        bandit.observe(decision, reward)
        os.write(told, f"R {decision} {reward}\\n".encode())
"""


def run_worker(folder, log, *, crash="", kill_after=None):
    """Run a worker until it crashes, or kill it so many seconds after it has begun; returns its exit code.

    Programs are compiled once for all workers: they inherit the compilation cache of the tests.
    """
    begun = count_starts(log)
    with started([sys.executable, "-c", WORKER, str(folder), str(log), crash], stderr=subprocess.PIPE) as worker:
        if kill_after is not None:
            patience = time.monotonic() + 60
            while count_starts(log) == begun:
                assert worker.poll() is None, worker.stderr.read()
                assert time.monotonic() < patience
                time.sleep(0.005)
            time.sleep(kill_after)
            worker.send_signal(signal.SIGKILL)
        errors = worker.communicate(timeout=120)[1].decode()
    assert "Error" not in errors, errors
    return worker.returncode


def count_starts(log):
    return log.read_bytes().count(b"S") if log.exists() else 0


def check_nothing_lost(folder, log):
    """Every acknowledged decision and reward is recorded once; at most one more of each was under way."""
    lines = [line.split() for line in log.read_text().splitlines()]
    decided = {line[1] for line in lines if line[0] == "D"}
    rewarded = {line[1]: np.float32(line[2]) for line in lines if line[0] == "R"}
    bandit = OnlineBandit(linear(), journal=folder, sync="none", snapshot_every=40, schedule="15")
    pending = {bandit.ids.id_of(number) for number in bandit.state.ledger.pending}
    rewards = bandit.state.observations.in_window()[1].tolist()
    health = bandit.health()
    bandit.close()
    assert not pending & set(rewarded), "a reward was lost"
    unrewarded = decided - set(rewarded)
    restarts = sum(line[0] == "S" for line in lines)
    assert len(unrewarded - pending) <= restarts, "a decision was lost"
    assert len(rewarded) <= health.observed <= len(rewarded) + restarts
    for reward in set(map(float, rewarded.values())):
        assert rewards.count(reward) == list(map(float, rewarded.values())).count(reward)
    return len(decided), len(rewarded)


def check_kills(tmp_path, count):
    generator = np.random.default_rng(0)
    folder, log = tmp_path / "journal", tmp_path / "log"
    for _ in range(count):
        run_worker(folder, log, kill_after=generator.uniform(0, 0.6))
        decided, rewarded = check_nothing_lost(folder, log)
    assert decided > 10 * count
    assert rewarded > count


def test_kills_lose_nothing_that_was_acknowledged(tmp_path):
    check_kills(tmp_path, 4)


@pytest.mark.slow
def test_fifty_kills_lose_nothing_that_was_acknowledged(tmp_path):
    check_kills(tmp_path, 50)


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_loses_nothing_that_was_acknowledged(step, tmp_path):
    folder, log = tmp_path / "journal", tmp_path / "log"
    log.touch()
    assert run_worker(folder, log, crash=f"{step}:2") == 9, "no such step"
    check_nothing_lost(folder, log)
