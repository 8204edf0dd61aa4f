"""Nothing acknowledged is lost: kills, crashes at every step, torn and flipped bytes, full disks, threads."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from neuralucb import OnlineBandit, StorageError, build
from neuralucb.online import journal
from neuralucb.online.codec import pack, unpack

DIM, ARMS = 3, 4
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
import jax
jax.config.update("jax_compilation_cache_dir", sys.argv[4])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
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


def policy():
    return build("lin-ucb", dim=DIM)


def rows(seed, *lengths):
    return np.random.default_rng(seed).normal(size=(*lengths, ARMS, DIM)).astype(np.float32)


def play(bandit, rounds, seed=0):
    for row in rows(seed, rounds):
        decision = bandit.select(row)
        bandit.observe(decision.id, float(row[decision.position, 0]))


def state_of(bandit):
    """All that is known. What is NaN in one is NaN in the other."""
    fields, arrays = bandit._state.export()
    return repr({**fields}), {name: array.tobytes() for name, array in arrays.items()}


def run_worker(folder, log, *, crash="", kill_after=None):
    cache = Path(__file__).parents[2] / ".cache" / "compiled"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), str(log), crash, str(cache)], stderr=subprocess.PIPE
    )
    if kill_after is not None:
        patience = time.monotonic() + 60
        begun = log.read_bytes().count(b"S") if log.exists() else 0
        while not log.exists() or log.read_bytes().count(b"S") == begun:
            assert worker.poll() is None, worker.stderr.read()
            assert time.monotonic() < patience
            time.sleep(0.005)
        time.sleep(kill_after)
        worker.send_signal(signal.SIGKILL)
    errors = worker.communicate(timeout=120)[1].decode()
    assert "Error" not in errors, errors
    return worker.returncode


def check_nothing_lost(folder, log):
    """Every acknowledged decision and reward is there once; at most one of each more was under way."""
    lines = [line.split() for line in log.read_text().splitlines()]
    decided = {line[1] for line in lines if line[0] == "D"}
    rewarded = {line[1]: np.float32(line[2]) for line in lines if line[0] == "R"}
    bandit = OnlineBandit(policy(), journal=folder, sync="none", snapshot_every=40, schedule="15")
    pending = {f"{bandit.name}-{number}" for number in bandit._state.ledger.pending}
    rewards = bandit._state.observations.kept()[1].tolist()
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
    assert run_worker(folder, log, crash=f"{step}:2") == 9, "there is no such step"
    check_nothing_lost(folder, log)


@pytest.mark.parametrize("learning", ["inline", "background"])
def test_after_a_restart_it_goes_on_as_if_nothing_had_happened(learning, tmp_path):
    small = build("neural-ucb", dim=DIM, width=8, steps=5, design="diagonal")
    settings = {"schedule": "8", "snapshot_every": 30, "learning": learning}
    one = OnlineBandit(small, journal=tmp_path / "journal", **settings)
    one.add_arm("a", [1.0])
    one.add_arm("b", [2.0])
    play(one, 45)
    for decision in one.select_many([[0.1, 0.2], [0.3, 0.4]]):
        waiting = decision
    one.remove_arm("a")
    one.select(rows(3))
    assert one.expire(older_than=0) == 3
    waiting = one.select(rows(4))
    one.close()
    before = state_of(one)
    again = OnlineBandit.load(tmp_path / "journal")
    assert state_of(again) == before
    assert learning == "background" or again.health().replayed > 0  # a snapshot may have come last
    again.observe(waiting.id, 1.0)
    play(again, 10)
    again.close()


def test_pending_decisions_count_the_same_after_a_crash(tmp_path):
    settings = {"count_pending": True, "normalize": True, "learning": "manual", "sync": "none"}
    small = build("neural-ucb", dim=DIM, width=8, steps=5, design="diagonal")
    with OnlineBandit(small, journal=tmp_path / "journal", **settings) as one:
        play(one, 5)
        for row in rows(1, 6):
            one.select(row)
        one.select_many(rows(2, 3))
        shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
        with OnlineBandit(small, journal=tmp_path / "crashed", **settings) as again:
            for row in rows(3, 2):
                np.testing.assert_array_equal(again.select(row).score, one.select(row).score)


def test_the_same_constructor_goes_on_and_another_is_refused(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 5)
        with pytest.raises(StorageError, match="in use"):
            OnlineBandit(policy(), journal=folder)
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().observed == 5
        assert again.name == one.name
    for other, why in (
        ({"policy": build("lin-ucb", dim=DIM + 1)}, "policy"),
        ({"policy": policy(), "seed": 1}, "seed"),
        ({"policy": policy(), "window": 3}, "window"),
    ):
        with pytest.raises(ValueError, match=f"made with {why}"):
            OnlineBandit(other.pop("policy"), journal=folder, **other)


def test_a_torn_end_is_cut_and_counted(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 5)
    newest = list(journal.segments(folder).values())[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole + whole[-30:-5][:17])  # less than a record's header
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().torn_bytes == 17
        assert again.health().observed == 5
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().torn_bytes == 0
        assert again.health().observed == 5


def records(folder, last=True):
    torn = []
    (path,) = folder.glob("journal-*.log")
    return list(journal.read_segment(path, 0, last=last, torn=torn.append)), torn


def small_journal(folder, size=4096):
    book = journal.Journal(folder, "none", lambda name: None)
    book.begin(1, 0)
    payloads = []
    while os.path.getsize(folder / "journal-00000001.log") < size:
        payloads.append(pack({"n": len(payloads)}, {"a": np.arange(len(payloads) % 7, dtype=np.float32)}))
        book.append(payloads[-1])
    book.close()
    return payloads


@pytest.mark.parametrize("damage", ["cut", "flip", "zero"])
def test_each_of_4096_bytes_cut_or_flipped_is_recovered_or_refused_never_wrong(damage, tmp_path):
    payloads = small_journal(tmp_path)
    path = tmp_path / "journal-00000001.log"
    whole = path.read_bytes()
    assert len(whole) >= 4096
    recovered = refused = 0
    for at in range(len(whole)):
        if damage == "cut":
            path.write_bytes(whole[:at])
        elif damage == "flip":
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        else:
            path.write_bytes(whole[:at] + bytes(len(whole) - at))
        try:
            read, _ = records(tmp_path)
        except StorageError:
            refused += 1
            continue
        recovered += 1
        assert read == payloads[: len(read)]
        if damage == "flip":
            assert read == payloads, "damage before the end was taken for a torn end"
    if damage == "cut":
        assert refused == 0
    if damage == "flip":
        assert recovered == 0


def test_a_torn_end_is_no_excuse_where_more_follows(tmp_path):
    small_journal(tmp_path)
    path = tmp_path / "journal-00000001.log"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="later segments"):
        records(tmp_path, last=False)


def test_arrays_come_back_as_they_were():
    arrays = {
        "a": np.arange(6, dtype=np.float64).reshape(2, 3),
        "b": np.zeros((0, 4), np.int32),
        "c": np.float32(3)[()],
    }
    arrays["c"] = np.asarray(arrays["c"])
    fields, read = unpack(pack({"kind": "x", "arms": ["a", 1], "none": None}, arrays))
    assert fields == {"kind": "x", "arms": ["a", 1], "none": None}
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def failing(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["fdatasync", "write"])
def test_after_a_failed_write_or_sync_nothing_is_acknowledged_any_more(call, tmp_path, monkeypatch):
    one = OnlineBandit(policy(), journal=tmp_path / "journal", sync="each")
    play(one, 3)
    decision = one.select(rows(1))
    before = state_of(one)
    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing)
        with pytest.raises(StorageError, match="No space left"):
            one.observe(decision.id, 1.0)
    for refused in (lambda: one.observe(decision.id, 1.0), lambda: one.select(rows(2))):
        with pytest.raises(StorageError, match="takes nothing any more"):
            refused()
    assert state_of(one) == before
    one.close()
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert again.health().observed in (3, 4)  # the one that failed may have reached the disk all the same


def test_five_snapshots_stay_and_the_journal_does_not_grow_for_ever(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder, snapshot_every=10) as one:
        play(one, 200)
        assert len(list(folder.glob("snapshot-*.manifest.json"))) == 5
        assert len(list(folder.glob("journal-*.log"))) <= 6
        assert len(list(folder.glob("snapshot-*"))) == 15


def test_rolling_back_believes_an_older_snapshot_and_keeps_decisions_that_wait(tmp_path):
    with OnlineBandit(policy(), journal=tmp_path / "journal", snapshot_every=10**6) as one:
        play(one, 20)
        one.snapshot()
        score = one.select(rows(7)).score
        play(one, 20, seed=1)
        waiting = one.select(rows(8))
        one.rollback()
        np.testing.assert_array_equal(one.select(rows(7)).score, score)
        assert one.health().observed == 20
        assert one.select(rows(7)).version > waiting.version
        one.observe(waiting.id, 1.0)
        with pytest.raises(ValueError, match="snapshots there are"):
            one.rollback(9)
        before = state_of(one)
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert state_of(again) == before
    with pytest.raises(ValueError, match="journal must name a folder"):
        OnlineBandit(policy()).rollback()


def test_a_snapshot_that_cannot_be_written_is_told_and_costs_no_reward(tmp_path, monkeypatch):
    from neuralucb.online import snapshots

    def full(*_, **__):
        raise StorageError("no room")

    with OnlineBandit(policy(), journal=tmp_path / "journal", snapshot_every=5) as one:
        with monkeypatch.context() as broken:
            broken.setattr(snapshots, "write", full)
            play(one, 7)
        assert "no room" in one.health().failure
        play(one, 4)
        assert one.health().failure is None
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 11


def test_rolling_back_again_goes_further_back_and_survives_a_restart(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder, snapshot_every=10**6) as one:
        for seed in range(3):
            play(one, 5, seed)
            one.snapshot()
        assert [one.rollback() and one.health().observed for _ in range(4)] == [15, 10, 5, 0]
        with pytest.raises(ValueError, match="at most 0"):
            one.rollback()
        play(one, 2)
        before = state_of(one)
    with OnlineBandit(policy(), journal=folder, snapshot_every=10**6) as again:
        assert state_of(again) == before
        sorted(folder.glob("snapshot-*.manifest.json"))[-1].unlink()
    with pytest.raises(StorageError, match="snapshot-00000004"):  # which a rollback in the journal went to
        OnlineBandit(policy(), journal=folder, snapshot_every=10**6)


@pytest.mark.parametrize("when", ["journal write", "journal sync", "after"])
def test_an_interrupt_while_writing_stops_the_journal_and_loses_nothing(when, tmp_path, monkeypatch):
    from neuralucb.online import keeper as recovery

    def interrupted(name):
        if name == when:
            raise KeyboardInterrupt

    one = OnlineBandit(policy(), journal=tmp_path / "journal", sync="each")
    play(one, 3)
    decision = one.select(rows(1))
    with monkeypatch.context() as broken:
        broken.setattr(recovery, "step", interrupted)
        if when == "after":
            broken.setattr(one._state, "apply", lambda event: interrupted(when))
        with pytest.raises(KeyboardInterrupt):
            one.observe(decision.id, 1.0)
    with pytest.raises(StorageError, match="takes nothing any more"):
        one.observe(decision.id, 1.0)
    one.close()
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert again.health().observed in (3, 4)


def test_an_interrupt_while_rolling_back_stops_the_journal(tmp_path, monkeypatch):
    def interrupted(event):
        raise KeyboardInterrupt

    with OnlineBandit(policy(), journal=tmp_path / "journal") as one:
        play(one, 3)
        with monkeypatch.context() as broken:
            broken.setattr(one._state, "apply", interrupted)
            with pytest.raises(KeyboardInterrupt):
                one.rollback()
        with pytest.raises(StorageError, match="takes nothing any more"):
            one.select(rows(1))
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 0  # it was written: it happened


def test_a_failed_sync_of_the_interval_stops_acknowledging(tmp_path, monkeypatch):
    one = OnlineBandit(policy(), journal=tmp_path / "journal", sync="interval")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        one.select(rows(1))
        time.sleep(0.3)
    with pytest.raises(StorageError, match="No space left"):
        one.select(rows(1))
    one.close()


def test_a_full_disk_and_a_snapshot_leave_what_can_be_recovered(tmp_path, monkeypatch):
    """A record is cut off half way, and a snapshot is tried all the same."""
    folder = tmp_path / "journal"
    one = OnlineBandit(policy(), journal=folder, sync="none")
    play(one, 5)
    write = os.write
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", lambda handle, data: failing() if len(data) < 30 else write(handle, data[:30]))
        with pytest.raises(StorageError, match="No space left"):
            one.select(rows(1))
    with pytest.raises(StorageError, match="takes nothing any more"):
        one.snapshot()
    one.close()
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().observed == 5
        assert again.health().torn_bytes > 0


def test_a_torn_segment_before_an_empty_one_is_recovered(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 5)
    newest, path = list(journal.segments(folder).items())[-1]
    path.write_bytes(path.read_bytes()[:-3])
    (folder / f"journal-{newest + 1:08d}.log").write_bytes(journal.MAGIC)
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().observed == 4
    with OnlineBandit(policy(), journal=folder) as again:
        assert again.health().observed == 4


@pytest.mark.parametrize("begun", [b"", journal.MAGIC[:5], bytes(len(journal.MAGIC))])
def test_a_segment_that_was_not_even_begun_does_no_harm_later(begun, tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 3)
    (folder / "journal-00000002.log").write_bytes(begun)
    for life in range(1, 4):
        with OnlineBandit(policy(), journal=folder) as one:
            assert one.health().observed == 3 * life
            play(one, 3)


def test_what_was_saved_goes_on_with_a_journal(tmp_path):
    folder = tmp_path / "model"
    saved = OnlineBandit(policy(), learning="manual")
    play(saved, 5)
    waiting = saved.select(rows(9))
    saved.save(folder)
    with OnlineBandit(policy(), learning="manual", journal=folder) as one:
        assert state_of(one) == state_of(saved)
        one.observe(waiting.id, 1.0)
        play(one, 4)
        assert one.health().observed == 10
        now = state_of(one)
    for again in (lambda: OnlineBandit(policy(), learning="manual", journal=folder), lambda: OnlineBandit.load(folder)):
        with again() as one:
            assert state_of(one) == now


def test_loading_goes_on_with_the_settings_of_the_last_life(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 2)
    with OnlineBandit(policy(), journal=folder, floor=0.5, schedule="7", snapshot_every=50) as one:
        kept = one.settings
    with OnlineBandit.load(folder) as again:
        assert again.settings == kept
        assert again.health().observed == 2
        assert again.select(rows(1)).propensity is not None
        before = len(list(folder.glob("snapshot-*.manifest.json")))
    with OnlineBandit.load(folder):
        assert len(list(folder.glob("snapshot-*.manifest.json"))) == before  # nothing has changed


def test_pages_that_were_never_filled_are_cut(tmp_path):
    payloads = small_journal(tmp_path, size=3 * 4096)
    path = tmp_path / "journal-00000001.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    read, torn = records(tmp_path)
    assert read == payloads[: len(read)]
    assert torn
    assert len(read) > 50


def test_a_missing_segment_is_noticed(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 5)
        one.snapshot()
        play(one, 5)
    list(journal.segments(folder).values())[-1].unlink()
    with pytest.raises(StorageError, match="lacks segment"):
        OnlineBandit.load(folder)


def test_a_folder_whose_first_segment_never_came_keeps_its_journal(tmp_path, monkeypatch):
    from neuralucb.online import keeper as recovery

    folder = tmp_path / "journal"
    with monkeypatch.context() as broken:
        broken.setattr(recovery, "step", lambda name: 1 / 0 if name == "journal segment" else None)
        with pytest.raises(ZeroDivisionError):
            OnlineBandit(policy(), journal=folder)
    with OnlineBandit.load(folder) as one:
        play(one, 3)
    with OnlineBandit.load(folder) as again:
        assert again.health().observed == 3


def test_a_closed_bandit_says_so_and_may_be_closed_twice(tmp_path):
    one = OnlineBandit(policy(), journal=tmp_path / "journal")
    one.close()
    one.close()
    with pytest.raises(StorageError, match="it is closed"):
        one.select(rows(1))


def test_a_fork_may_not_write(tmp_path):
    with OnlineBandit(policy(), journal=tmp_path / "journal") as one:
        one._keeper._journal._owner = -1
        with pytest.raises(StorageError, match="fork"):
            one.select(rows(1))
        one._keeper._journal._owner = os.getpid()


def test_closing_gives_the_folder_back_though_a_fork_lives_on(tmp_path):
    one = OnlineBandit(policy(), journal=tmp_path / "journal")
    copy = os.dup(one._keeper._journal._lock)  # as a fork has
    one.close()
    with OnlineBandit(policy(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 0
    os.close(copy)


def test_short_lives_still_come_to_a_snapshot(tmp_path):
    folder = tmp_path / "journal"
    for _ in range(5):
        with OnlineBandit(policy(), journal=folder, snapshot_every=20) as one:
            play(one, 8)
    assert len(list(folder.glob("snapshot-*.manifest.json"))) >= 3


def test_strange_files_and_places_are_told_in_one_error(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        one._keeper._journal.append(pack({"kind": "dream"}, {}))
    (folder / "journal-old.log").write_text("x")
    (folder / "snapshot-old.manifest.json").write_text("x")
    with pytest.raises(StorageError, match="event 'dream'.*update"):
        OnlineBandit(policy(), journal=folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be a folder"):
        OnlineBandit(policy(), journal=tmp_path / "file")


def test_a_lesson_under_way_at_the_end_is_due_again(tmp_path, monkeypatch):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder, schedule="10", learning="manual") as one:
        play(one, 10)
        with monkeypatch.context() as broken:
            broken.setattr(one._programs, "learn", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                one.learn()
        assert one._state.learned_at == 0
    with OnlineBandit(policy(), journal=folder, schedule="10") as again:
        assert again.health().learned == 1


def test_traffic_during_snapshots_is_recovered(tmp_path):
    folder = tmp_path / "journal"
    settings = {"schedule": "25", "snapshot_every": 30}
    one = OnlineBandit(policy(), journal=folder, learning="background", **settings)
    play(one, 400)
    one.close()
    assert one.health().failure is None
    before = state_of(one)
    with OnlineBandit(policy(), journal=folder, learning="manual", snapshot_every=10**6) as again:
        assert state_of(again) == before


def test_a_damaged_journal_is_refused(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(policy(), journal=folder) as one:
        play(one, 5)
    path = list(journal.segments(folder).values())[-1]
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match="damaged at byte"):
        OnlineBandit(policy(), journal=folder)
    for snapshot in folder.glob("snapshot-*"):
        snapshot.unlink()
    with pytest.raises(StorageError, match="no snapshot to begin with"):
        OnlineBandit(policy(), journal=folder)


def check_threads(folder, seconds):
    bandit = OnlineBandit(policy(), journal=folder, sync="interval", learning="background", schedule="50")
    bandit.warm_up(arms=ARMS)
    ids, rewards, errors = [[] for _ in range(8)], [0] * 8, []
    stop = time.monotonic() + seconds

    def work(me):
        generator = np.random.default_rng(me)
        try:
            while time.monotonic() < stop:
                decision = bandit.select(generator.normal(size=(ARMS, DIM)))
                ids[me].append(decision.id)
                if generator.random() < 0.8:
                    bandit.observe(decision.id, float(me))
                    rewards[me] += 1
        except Exception as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bandit.close()
    assert not errors, errors
    every = [decision for mine in ids for decision in mine]
    assert len(set(every)) == len(every)
    with OnlineBandit(policy(), journal=folder, schedule="50") as again:
        for one in (bandit, again):
            health = one.health()
            assert health.decisions == len(every)
            assert health.observed == sum(rewards)
            assert health.pending == len(every) - sum(rewards)
            counts = np.bincount(one._state.observations.kept()[1].astype(int), minlength=8)
            assert counts.tolist() == rewards
    return len(every)


def test_threads_lose_and_double_nothing(tmp_path):
    assert check_threads(tmp_path / "journal", 2) > 100


@pytest.mark.slow
def test_eight_threads_for_a_minute_lose_and_double_nothing(tmp_path):
    check_threads(tmp_path / "journal", 60)
