"""`OnlineBandit` on one core: latency, throughput, memory, recovery. K = 10, d = 50, m = 100, diagonal Z.

taskset -c 0 python benchmarks/online.py latency batch history million replay tail default
python benchmarks/online.py pending lessons
"""

import os
import resource
import sys
import tempfile
import threading
import time
from functools import partial
from itertools import cycle
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from neuralucb import OnlineBandit, build
from neuralucb.algorithms.shared_settings import PAPER

ARMS, DIM, WIDTH = 10, 50, 100
GENERATOR = np.random.default_rng(0)
CONTEXTS = GENERATOR.normal(size=(1000, ARMS, DIM)).astype(np.float32)


def bandit(**settings):
    papers = PAPER | {"width": WIDTH, "design": "diagonal", "steps": 100}
    return OnlineBandit(build("neural-ucb", dim=DIM, **papers), **{"learning": "manual", **settings})


def percentiles(seconds):
    p50, p99 = np.percentile(np.asarray(seconds) * 1e3, [50, 99])
    return f"p50 {p50:.3f} ms, p99 {p99:.3f} ms"


def timed(one, rounds):
    seconds = []
    for index in range(rounds):
        started = time.perf_counter()
        one(index)
        seconds.append(time.perf_counter() - started)
    return seconds


def latency():
    for label, settings in (
        ("no journal", None),
        ("journal, sync interval", {"sync": "interval"}),
        ("journal, sync each", {"sync": "each"}),
        ("journal, sync none", {"sync": "none"}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            one = bandit(**({} if settings is None else {"journal": Path(folder) / "journal", **settings}))
            one.warm_up(arms=ARMS)
            compiled, decisions = one.health().compiled, []
            selecting = timed(partial(_select, one, decisions), 5000)
            observing = timed(partial(_observe, one, decisions), 5000)
            assert one.health().compiled == compiled, "something was compiled in the steady state"
            one.close()
        print(f"{label:>24}: select {percentiles(selecting)}; observe {percentiles(observing)}", flush=True)


def default():
    """The default, NeuralMix, beside the policy above, in one run."""
    pair = {"neural-ucb of version 0.1": bandit(), "default": OnlineBandit(build(dim=DIM), learning="manual")}
    for one in pair.values():
        one.warm_up(arms=ARMS)
    seconds = {name: [] for name in pair}
    for index in range(5000):
        for name, one in pair.items():
            seconds[name] += timed(lambda _, one=one, index=index: one.select(CONTEXTS[index % 1000]), 1)
    for name, found in seconds.items():
        print(f"{name:>26}: select {percentiles(found)}", flush=True)
    rows = GENERATOR.normal(size=(100_000, DIM)).astype(np.float32)
    rewards = np.sin(rows[:, 0]) + GENERATOR.normal(size=len(rows))
    for name, one in pair.items():
        one.fit(rows, None, rewards)
        print(
            f"{name:>26}: a lesson at 100 000 observations {min(timed(lambda _, one=one: one.learn(), 3)):.2f} s",
            flush=True,
        )


def batch():
    one = bandit()
    one.warm_up(arms=ARMS, decisions=1000)
    single = np.median(timed(lambda index: one.select(CONTEXTS[index]), 1000))
    many = np.median(timed(lambda index: one.select_many(CONTEXTS), 30)) / 1000
    print(f"select_many of 1000: {many * 1e6:.1f} us per decision, {single / many:.1f} times as fast as one by one")


def history():
    one = bandit()
    one.warm_up(arms=ARMS)
    for size in (100, 10_000, 100_000):
        missing = size - one.health().observed
        while missing > 0:
            rows = min(missing, 10_000)
            ids = [decision.id for decision in one.select_many(CONTEXTS[: min(rows, 1000)])]
            one.observe_many(ids, np.ones(len(ids)))
            missing -= len(ids)
        seconds = timed(lambda index: one.observe(one.select(CONTEXTS[index]).id, 1.0), 1000)
        print(f"after {size} observations: select and observe {percentiles(seconds)}", flush=True)


def million():
    one = bandit(window=10_000)
    one.warm_up(arms=ARMS, decisions=1000)
    started, rss = time.perf_counter(), []
    for step in range(1000):
        decisions = one.select_many(CONTEXTS)
        one.observe_many([decision.id for decision in decisions], np.ones(1000))
        if step % 250 == 249:
            rss.append(_resident())
    seconds = time.perf_counter() - started
    print(f"1 000 000 decisions, window 10 000: {seconds:.0f} s; resident after each quarter: {rss} MB", flush=True)
    print(f"history {one.health().history_bytes / 1e6:.1f} MB")


def replay():
    with tempfile.TemporaryDirectory() as folder:
        one = bandit(journal=Path(folder) / "journal", sync="none", snapshot_every=10**9)
        one.warm_up(arms=ARMS)
        started = time.perf_counter()
        for index in range(500_000):
            one.observe(one.select(CONTEXTS[index % 1000]).id, 1.0)
        wrote, size, version = time.perf_counter() - started, one.health().journal_bytes, one.health().version
        one.close()
        started = time.perf_counter()
        again = OnlineBandit.load(Path(folder) / "journal")
        seconds = time.perf_counter() - started
        assert again.health().version == version
        assert again.health().replayed == 1_000_000
        again.close()
        print(
            f"1 000 000 events ({size / 1e6:.0f} MB) written in {wrote:.0f} s, recovered in {seconds:.1f} s", flush=True
        )


def tail():
    with tempfile.TemporaryDirectory() as folder:
        one = bandit(journal=Path(folder) / "journal", sync="none", snapshot_every=10**9)
        for _ in range(100):
            decisions = one.select_many(CONTEXTS)
            one.observe_many([decision.id for decision in decisions], np.ones(1000))
        one.snapshot()
        for index in range(5000):
            one.observe(one.select(CONTEXTS[index % 1000]).id, 1.0)
        one.close()
        started = time.perf_counter()
        again = OnlineBandit.load(Path(folder) / "journal")
        seconds = time.perf_counter() - started
        assert again.health().replayed == 10_000
        assert again.health().observed == 105_000
        again.close()
        print(
            f"a snapshot of 100 000 observations and a tail of 10 000 events: recovered in {seconds:.1f} s", flush=True
        )


def pending():
    """`select` while another thread works over 150 000 pending decisions, in one run with `select` by itself."""
    with tempfile.TemporaryDirectory() as folder:
        one = bandit(journal=Path(folder) / "journal", snapshot_every=10**9)
        one.warm_up(arms=ARMS)
        for index in range(150_000):
            one.select(CONTEXTS[index % 1000])
        one.health()
        beside = {
            "by itself": lambda: time.sleep(5),
            "beside snapshot": one.snapshot,
            "beside health": lambda: [(one.health(), time.sleep(0.01)) for _ in range(300)],
            "beside expire, of none": lambda: [(one.expire(older_than=1e6), time.sleep(0.01)) for _ in range(300)],
            "beside expire, of all": lambda: one.expire(older_than=0),
        }
        for label, work in beside.items():
            print(f"{label:>24}: {_beside(work, one)}", flush=True)
        one.close()


def lessons():
    """`select` at 200 per second beside lessons in the background, 50 000 observations in memory."""
    for name in ("neural-ucb", None):
        policy = build("neural-ucb", dim=DIM, width=WIDTH, design="diagonal") if name else build(dim=DIM)
        one = OnlineBandit(policy, learning="background", schedule="10")
        one.warm_up(arms=ARMS)
        rows = GENERATOR.normal(size=(50_000, DIM)).astype(np.float32)
        one.fit(rows, None, np.sin(rows[:, 0]))
        before = one.health().learned
        seconds = []
        for index in range(4000):
            started = time.perf_counter()
            decision = one.select(CONTEXTS[index % 1000])
            seconds.append(time.perf_counter() - started)
            one.observe(decision.id, 1.0)
            time.sleep(max(0.0, 0.005 - (time.perf_counter() - started)))
        learned = one.health().learned - before
        one.close()
        print(f"{name or 'default':>24}: select {percentiles(seconds)} beside {learned} lessons", flush=True)


def _beside(work, one):
    """Latencies of `select`, one per 2 ms, while a thread does the work, and how long that took."""
    seconds, took = [], []
    thread = threading.Thread(target=lambda: took.extend(timed(lambda _: work(), 1)))
    thread.start()
    for contexts in cycle(CONTEXTS):
        seconds += timed(lambda _, contexts=contexts: one.select(contexts), 1)
        if not thread.is_alive():
            break
        time.sleep(0.002)
    thread.join()
    return f"{took[0]:.2f} s; {len(seconds)} selects, {percentiles(seconds)}, worst {max(seconds) * 1e3:.1f} ms"


def _select(one, decisions, index):
    decisions.append(one.select(CONTEXTS[index % 1000]))


def _observe(one, decisions, index):
    one.observe(decisions[index].id, 1.0)


def _resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1_000_000


if __name__ == "__main__":
    for name in sys.argv[1:] or (
        "latency",
        "batch",
        "history",
        "million",
        "replay",
        "tail",
        "default",
        "pending",
        "lessons",
    ):
        globals()[name]()
