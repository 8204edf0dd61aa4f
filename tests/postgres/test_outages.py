"""Outages: the database restarts, the network is cut, the learner is killed. Requests are refused, nothing is lost."""

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from neuralucb import fingerprint
from neuralucb.runtime.errors import StorageError
from neuralucb.service.postgres import link as links
from neuralucb.service.store import Reward
from tests.postgres.helpers import (
    CHAOS_PLAN,
    check_acknowledged,
    eventually,
    newest_belief,
    opened,
    replayed,
    request,
    rows,
)
from tests.postgres.replica import Traffic
from tests.postgres.server import Cable
from tests.processes import started

ROOT = Path(__file__).parents[2]


def process(address, folder, name, role):
    """A process of the service, which ends with the block."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    arguments = [sys.executable, "-m", "tests.postgres.replica", address, str(folder), name, role]
    return started(arguments, env=environment, cwd=ROOT)


def holder(address):
    ((name, epoch, seen),) = rows(address, "SELECT holder, epoch, now() - seen_at < interval '2 s' FROM learner")
    return (name, epoch) if seen else (None, epoch)


def test_requests_are_refused_while_the_server_is_down_and_served_again_after(server, address):
    with opened(address, role="all") as store:
        store.decide([request("before")])
        server.control("-m", "fast", "-w", "stop")
        try:
            for _ in range(3):
                began = time.monotonic()
                with pytest.raises(StorageError, match="try again"):
                    store.decide([request("during")])
                assert time.monotonic() - began < 1.0
            health = store.health()
            assert not health.writable
            assert "cannot be reached" in health.failure
        finally:
            server.start()
        eventually(lambda: accepts(store, "after"))
        assert store.explain("before") is not None
        assert store.explain("during") is None
        assert store.reward([Reward("before", 1.0), Reward("after", 1.0)]) == ["learned", "learned"]
        eventually(lambda: rows(address, "SELECT count(*) FROM outcomes WHERE position IS NOT NULL") == [(2,)])
        eventually(lambda: store.health().writable)


def accepts(store, event):
    try:
        store.decide([request(event)])
    except StorageError:
        return False
    return True


def test_a_replica_that_is_cut_off_refuses_and_comes_back(server, address, monkeypatch):
    monkeypatch.setattr(links, "PATIENCE", 0.5)
    cable = Cable(server)
    try:
        with opened(address.replace(server.address, cable.address)) as store:
            store.decide([request("before")])
            with cable.pulled():
                began = time.monotonic()
                with pytest.raises(StorageError):
                    store.decide([request("during")])
                assert time.monotonic() - began < 5.0
            eventually(lambda: accepts(store, "after"))
            assert store.explain("before") is not None
    finally:
        cable.close()


def test_a_commit_whose_answer_was_lost_is_found_again(address, monkeypatch):
    """The connection breaks after the commit: the transaction is done again, and finds its own rows."""
    with opened(address) as store:
        run, broken = links.Link.transaction, []

        def breaks(link, **options):
            manager = run(link, **options)

            class Once:
                def __enter__(self):
                    return manager.__enter__()

                def __exit__(self, *problem):
                    result = manager.__exit__(*problem)
                    if not broken and link is store._links[use]:
                        broken.append(link)
                        raise StorageError("lost")
                    return result

            return Once()

        monkeypatch.setattr(links.Link, "transaction", breaks)
        use = "decisions"
        store._take_numbers(1)
        broken.clear()
        (answer,) = store.decide([request("a")])
        assert broken
        assert not answer.repeated
        use, _ = "rewards", broken.clear()
        assert store.reward([Reward("a", 1.0)]) == ["learned"]
        assert broken
    assert rows(address, "SELECT sum(decisions), sum(learned) FROM processes") == [(1, 1)]


def test_another_process_learns_within_seconds_of_kill_minus_nine(address, tmp_path):
    with opened(address, role="serve", plan=CHAOS_PLAN), process(address, tmp_path, "first", "learn") as first:
        eventually(lambda: holder(address)[0] is not None, 60)
        with opened(address, role="all", plan=CHAOS_PLAN) as standby:
            assert standby.learner.lease.epoch is None
            os.kill(first.pid, signal.SIGKILL)
            began = time.monotonic()
            eventually(lambda: standby.learner.lease.epoch is not None, 10)
            assert time.monotonic() - began < 5.0
            assert holder(address) == (standby.name, 2)


def test_nothing_acknowledged_is_lost_or_doubled_through_crashes_cuts_and_kills(server, address, tmp_path, monkeypatch):
    """Two replicas here, one of them cut off, and a learner that is killed; the server crashes meanwhile."""
    monkeypatch.setattr(links, "PATIENCE", 1.0)
    cable, stop = Cable(server), threading.Event()

    def play(store, name):
        traffic = Traffic(store, tmp_path, name)
        while not stop.is_set():
            traffic.play()
            time.sleep(0.005)
        traffic.close()

    try:
        with (
            opened(address, role="all", plan=CHAOS_PLAN) as near,
            opened(address.replace(server.address, cable.address), role="all", plan=CHAOS_PLAN) as far,
            process(address, tmp_path, "child", "all") as child,
        ):
            threads = [threading.Thread(target=play, args=pair) for pair in ((near, "near"), (far, "far"))]
            for thread in threads:
                thread.start()
            try:
                eventually(lambda: list(tmp_path.glob("child.*")), 60)
                rows(
                    address,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%%learner'",
                )
                os.kill(child.pid, signal.SIGKILL)
                with cable.pulled():
                    time.sleep(1.5)
                server.restart("immediate")
                before = rows(address, "SELECT count(*) FROM decisions")
                eventually(lambda: rows(address, "SELECT count(*) FROM decisions") > before)
                time.sleep(0.5)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            settle_down(address)
    finally:
        cable.close()
    decisions, rewards = check_acknowledged(address, tmp_path)
    assert decisions > 100
    assert rewards > 50
    arrays, _ = newest_belief(address)
    assert fingerprint(arrays) == fingerprint(replayed(address, CHAOS_PLAN).state.belief)


def settle_down(address):
    """Wait until all is learned and published."""
    eventually(
        lambda: (
            rows(
                address,
                "SELECT NOT EXISTS (SELECT 1 FROM outcomes WHERE status = 'observed' AND position IS NULL) "
                "AND (SELECT max(position) FROM outcomes) = (SELECT position FROM live_model)",
            )
            == [(True,)]
        ),
        30,
    )


@pytest.mark.slow
def test_fifty_kills_two_restarts_and_a_cut_lose_and_double_nothing(server, address, tmp_path):
    """Three replicas and a learner, traffic through all; one replica is connected by a cable that is pulled."""
    kills, generator, cable = 50, np.random.default_rng(0), Cable(server)
    cut_off = address.replace(server.address, cable.address)
    roles = {"a": (address, "all"), "b": (address, "all"), "c": (cut_off, "all"), "learner": (address, "learn")}
    try:
        with ExitStack() as stack:
            running, ages, lessons = {}, Ages(address), []

            def start(name):
                running[name] = stack.enter_context(process(roles[name][0], tmp_path, name, roles[name][1]))

            def look(seconds):
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    ages.look()
                    time.sleep(0.1)

            for name in roles:
                start(name)
            eventually(lambda: all(list(tmp_path.glob(f"{name}.*")) for name in roles), 120)
            for number in range(kills):
                look(generator.uniform(1.0, 3.0))
                name = generator.choice(list(roles)).item()
                os.kill(running[name].pid, signal.SIGKILL)
                running[name].wait()
                start(name)
                if number in (15, 35):
                    server.restart("fast" if number == 15 else "immediate")
                if number == 25:
                    began = time.time()
                    with cable.pulled():
                        look(8)
                    ages.excuse(began, time.time() + 5)
                if number in (15, 35, kills - 1):
                    lessons.append(count_of(address, "lessons"))
            elections = holder(address)[1]
            eventually(lambda: ages.look() or count_of(address, "lessons") > lessons[-1], 60)
            for name in roles:
                os.kill(running[name].pid, signal.SIGKILL)
                running[name].wait()
            with opened(address, role="all", plan=CHAOS_PLAN):
                settle_down(address)
        decisions, rewards = check_acknowledged(address, tmp_path)
        arrays, model = newest_belief(address)
        assert fingerprint(arrays) == fingerprint(replayed(address, CHAOS_PLAN).state.belief)
    finally:
        cable.close()
    refused = sum(path.read_text().count("refused") for path in tmp_path.glob("*.acknowledged"))
    oldest = ages.oldest()
    print(
        f"{kills} kills: {decisions} decisions and {rewards} rewards acknowledged, {refused} requests refused, "
        f"{elections} elections, {count_of(address, 'lessons')} lessons, {model.observations} observations; a lesson "
        f"was in use everywhere after at most {oldest:.1f} s"
    )
    assert oldest <= 5.0
    assert lessons == sorted(set(lessons)), "learning did not go on"


def count_of(address, table):
    """Rows of a table."""
    ((count,),) = rows(address, f"SELECT count(*) FROM {table}")
    return count


class Ages:
    """When models of lessons were in the database, and for how long replicas decided with others all the same."""

    def __init__(self, address):
        self._address = address
        self._seen = []
        """(moment, version) of each model when it was seen first, by the clock of the server"""
        self._excused = (0.0, 0.0)

    def look(self):
        with suppress(StorageError):
            ((now, newest),) = rows(
                self._address, "SELECT extract(epoch FROM clock_timestamp())::float8, max(version) FROM models"
            )
            if newest is not None and (not self._seen or newest > self._seen[-1][1]):
                self._seen.append((now, newest))

    def excuse(self, since, until):
        """A replica that is cut off cannot know; whoever decides between these moments is not looked at."""
        self._excused = since, until

    def oldest(self):
        """The longest time from when a model was seen to a decision, of whatever replica, with an older one."""
        moments, versions = (np.array(column) for column in zip(*self._seen, strict=True))
        made = rows(self._address, "SELECT extract(epoch FROM made_at)::float8, model FROM decisions")
        found = [0.0]
        for at, model in made:
            next_one = np.searchsorted(versions, model, side="right")  # the first that is newer
            if next_one < len(moments) and not self._excused[0] <= at <= self._excused[1]:
                found.append(at - moments[next_one])
        return max(found)
