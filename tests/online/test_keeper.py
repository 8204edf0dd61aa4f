"""A bandit's folder: restarts, rollbacks, snapshots, and files that are torn, missing, damaged or strange."""

import shutil
import threading
import time

import numpy as np
import pytest

from neuralucb import OnlineBandit, StorageError, build
from neuralucb.online import journal, keeper, lessons, snapshots
from neuralucb.online.codec import pack
from tests.online.helpers import ARMS, DIM, contexts, fingerprint, linear, make, play


@pytest.mark.parametrize("learning", ["inline", "background"])
def test_a_restart_changes_nothing(learning, tmp_path):
    small = make()
    settings = {"schedule": "8", "snapshot_every": 30, "learning": learning}
    one = OnlineBandit(small, journal=tmp_path / "journal", **settings)
    one.add_arm("a", [1.0])
    one.add_arm("b", [2.0])
    play(one, 45)
    for decision in one.select_many([[0.1, 0.2], [0.3, 0.4]]):
        waiting = decision
    one.remove_arm("a")
    one.select(contexts(3))
    assert one.expire(older_than=0) == 3
    waiting = one.select(contexts(4))
    one.close()
    before = fingerprint(one)
    again = OnlineBandit.load(tmp_path / "journal")
    assert fingerprint(again) == before
    assert learning == "background" or again.health().replayed > 0  # a snapshot may have come last
    again.observe(waiting.id, 1.0)
    play(again, 10)
    again.close()


def test_pending_decisions_count_the_same_after_a_crash(tmp_path):
    settings = {"count_pending": True, "normalize": True, "learning": "manual", "sync": "none"}
    small = make()
    with OnlineBandit(small, journal=tmp_path / "journal", **settings) as one:
        play(one, 5)
        for row in contexts(1, 6, ARMS):
            one.select(row)
        one.select_many(contexts(2, 3, ARMS))
        shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
        with OnlineBandit(small, journal=tmp_path / "crashed", **settings) as again:
            for row in contexts(3, 2, ARMS):
                np.testing.assert_array_equal(again.select(row).score, one.select(row).score)


def test_the_same_constructor_continues_a_folder_and_another_is_refused(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
        with pytest.raises(StorageError, match="in use"):
            OnlineBandit(linear(), journal=folder)
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().observed == 5
        assert again.name == one.name
    for other, why in (
        ({"policy": build("lin-ucb", dim=DIM + 1)}, "policy"),
        ({"policy": linear(), "seed": 1}, "seed"),
        ({"policy": linear(), "window": 3}, "window"),
    ):
        with pytest.raises(ValueError, match=f"made with {why}"):
            OnlineBandit(other.pop("policy"), journal=folder, **other)


def test_a_saved_bandit_continues_with_a_journal(tmp_path):
    folder = tmp_path / "model"
    saved = OnlineBandit(linear(), learning="manual")
    play(saved, 5)
    waiting = saved.select(contexts(9))
    saved.save(folder)
    with OnlineBandit(linear(), learning="manual", journal=folder) as one:
        assert fingerprint(one) == fingerprint(saved)
        one.observe(waiting.id, 1.0)
        play(one, 4)
        assert one.health().observed == 10
        now = fingerprint(one)
    for again in (lambda: OnlineBandit(linear(), learning="manual", journal=folder), lambda: OnlineBandit.load(folder)):
        with again() as one:
            assert fingerprint(one) == now


def test_loading_uses_the_settings_of_the_last_run(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 2)
    with OnlineBandit(linear(), journal=folder, floor=0.5, schedule="7", snapshot_every=50) as one:
        kept = one.settings
    with OnlineBandit.load(folder) as again:
        assert again.settings == kept
        assert again.health().observed == 2
        assert again.select(contexts(1)).propensity is not None
        before = len(list(folder.glob("snapshot-*.manifest.json")))
    with OnlineBandit.load(folder):
        assert len(list(folder.glob("snapshot-*.manifest.json"))) == before  # nothing has changed


def test_short_runs_add_up_to_a_snapshot(tmp_path):
    folder = tmp_path / "journal"
    for _ in range(5):
        with OnlineBandit(linear(), journal=folder, snapshot_every=20) as one:
            play(one, 8)
    assert len(list(folder.glob("snapshot-*.manifest.json"))) >= 3


def test_five_snapshots_are_retained_and_old_segments_deleted(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder, snapshot_every=10) as one:
        play(one, 200)
        assert len(list(folder.glob("snapshot-*.manifest.json"))) == 5
        assert len(list(folder.glob("journal-*.log"))) <= 6
        assert len(list(folder.glob("snapshot-*"))) == 15


def test_a_rollback_restores_the_belief_and_keeps_pending_decisions(tmp_path):
    with OnlineBandit(linear(), journal=tmp_path / "journal", snapshot_every=10**6) as one:
        play(one, 20)
        one.snapshot()
        score = one.select(contexts(7)).score
        play(one, 20, seed=1)
        waiting = one.select(contexts(8))
        one.rollback()
        np.testing.assert_array_equal(one.select(contexts(7)).score, score)
        assert one.health().observed == 20
        assert one.select(contexts(7)).version > waiting.version
        one.observe(waiting.id, 1.0)
        with pytest.raises(ValueError, match="number of older snapshots"):
            one.rollback(9)
        before = fingerprint(one)
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert fingerprint(again) == before
    with pytest.raises(ValueError, match="journal must be a folder"):
        OnlineBandit(linear()).rollback()


def test_rolling_back_again_goes_further_back_and_survives_a_restart(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder, snapshot_every=10**6) as one:
        for seed in range(3):
            play(one, 5, seed)
            one.snapshot()
        assert [one.rollback() and one.health().observed for _ in range(4)] == [15, 10, 5, 0]
        with pytest.raises(ValueError, match="at most 0"):
            one.rollback()
        play(one, 2)
        before = fingerprint(one)
    with OnlineBandit(linear(), journal=folder, snapshot_every=10**6) as again:
        assert fingerprint(again) == before
        sorted(folder.glob("snapshot-*.manifest.json"))[-1].unlink()
    with pytest.raises(StorageError, match="snapshot-00000004"):  # which a rollback in the journal went to
        OnlineBandit(linear(), journal=folder, snapshot_every=10**6)


def test_an_interrupt_during_a_rollback_ends_all_writing(tmp_path, monkeypatch):
    def interrupted(event):
        raise KeyboardInterrupt

    with OnlineBandit(linear(), journal=tmp_path / "journal") as one:
        play(one, 3)
        with monkeypatch.context() as broken:
            broken.setattr(one.state, "apply", interrupted)
            with pytest.raises(KeyboardInterrupt):
                one.rollback()
        with pytest.raises(StorageError, match="accepts no more writes"):
            one.select(contexts(1))
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 0  # it was written: it happened


def test_a_failed_snapshot_is_reported_and_loses_no_reward(tmp_path, monkeypatch):
    def full(*_, **__):
        raise StorageError("no room")

    with OnlineBandit(linear(), journal=tmp_path / "journal", snapshot_every=5) as one:
        with monkeypatch.context() as broken:
            broken.setattr(snapshots, "write", full)
            play(one, 7)
        assert "no room" in one.health().failure
        play(one, 4)
        assert one.health().failure is None
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 11


def test_traffic_during_snapshots_is_recovered(tmp_path):
    folder = tmp_path / "journal"
    settings = {"schedule": "25", "snapshot_every": 30}
    one = OnlineBandit(linear(), journal=folder, learning="background", **settings)
    play(one, 400)
    one.close()
    assert one.health().failure is None
    before = fingerprint(one)
    with OnlineBandit(linear(), journal=folder, learning="manual", snapshot_every=10**6) as again:
        assert fingerprint(again) == before


def test_a_torn_end_is_cut_and_counted(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
    newest = list(journal.segments(folder).values())[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole + whole[-30:-5][:17])  # less than a record's header
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().torn_bytes == 17
        assert again.health().observed == 5
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().torn_bytes == 0
        assert again.health().observed == 5


def test_a_torn_segment_before_an_empty_one_is_recovered(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
    newest, path = list(journal.segments(folder).items())[-1]
    path.write_bytes(path.read_bytes()[:-3])
    (folder / f"journal-{newest + 1:08d}.log").write_bytes(journal.MAGIC)
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().observed == 4
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().observed == 4


@pytest.mark.parametrize("begun", [b"", journal.MAGIC[:5], bytes(len(journal.MAGIC))])
def test_a_segment_without_a_complete_first_line_does_no_harm(begun, tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 3)
    (folder / "journal-00000002.log").write_bytes(begun)
    for life in range(1, 4):
        with OnlineBandit(linear(), journal=folder) as one:
            assert one.health().observed == 3 * life
            play(one, 3)


def test_a_missing_segment_is_noticed(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
        one.snapshot()
        play(one, 5)
    list(journal.segments(folder).values())[-1].unlink()
    with pytest.raises(StorageError, match="lacks segment"):
        OnlineBandit.load(folder)


def test_a_crash_before_the_first_segment_leaves_a_usable_folder(tmp_path, monkeypatch):
    folder = tmp_path / "journal"
    with monkeypatch.context() as broken:
        broken.setattr(keeper, "step", lambda name: 1 / 0 if name == "journal segment" else None)
        with pytest.raises(ZeroDivisionError):
            OnlineBandit(linear(), journal=folder)
    with OnlineBandit.load(folder) as one:
        play(one, 3)
    with OnlineBandit.load(folder) as again:
        assert again.health().observed == 3


def test_a_damaged_journal_is_refused(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
    path = list(journal.segments(folder).values())[-1]
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match="damaged at byte"):
        OnlineBandit(linear(), journal=folder)
    for snapshot in folder.glob("snapshot-*"):
        snapshot.unlink()
    with pytest.raises(StorageError, match="no snapshot to start from"):
        OnlineBandit(linear(), journal=folder)


@pytest.mark.parametrize(
    "forged",
    [
        b'[{"kind":"decide","first":0,"version":0,"time":0,"arms":null},{"rows":["|O",[1,20]],"c0":["<f4",[1,3]]}]',
        b'[{"kind":"learn","promoted":true,"loss":0},{}]',
        b'[{"kind":"fit"},{"c0":["<f4",[1,7]],"rewards":["<f8",[1]]}]',
    ],
)
def test_a_forged_record_is_a_storage_error_that_names_the_file(forged, tmp_path):
    folder = tmp_path / "journal"
    OnlineBandit(linear(), journal=folder).close()
    book = journal.Journal(folder, "none", lambda name: None)
    book.begin(2, 0)
    book.append(len(forged).to_bytes(4, "little") + forged + bytes(1000))
    book.close()
    with pytest.raises(StorageError, match=r"journal-00000002.log .*restore it from a backup"):
        OnlineBandit(linear(), journal=folder)


def test_unknown_events_and_files_in_the_way_are_storage_errors(tmp_path):
    folder = tmp_path / "journal"
    OnlineBandit(linear(), journal=folder).close()
    book = journal.Journal(folder, "none", lambda name: None)
    book.begin(2, 0)
    book.append(pack({"kind": "dream"}, {}))
    book.close()
    (folder / "journal-old.log").write_text("x")
    (folder / "snapshot-old.manifest.json").write_text("x")
    with pytest.raises(StorageError, match="event 'dream'.*update"):
        OnlineBandit(linear(), journal=folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be a folder"):
        OnlineBandit(linear(), journal=tmp_path / "file")


@pytest.mark.parametrize("damage", ["arrays flipped", "state missing", "manifest cut"])
def test_a_damaged_newest_snapshot_falls_back_to_the_one_before_and_loses_nothing(damage, tmp_path, caplog):
    folder, settings = tmp_path / "journal", {"schedule": "4", "snapshot_every": 10**6}
    with OnlineBandit(linear(), journal=folder, **settings) as one:
        for seed in range(3):
            play(one, 5, seed)
            one.snapshot()
        play(one, 3, seed=9)
        one.select(contexts(1))
        before = fingerprint(one)
    part, how = damage.split()
    (path,) = folder.glob(f"snapshot-00000004.{part}.*")
    whole = path.read_bytes()
    path.unlink()
    if how != "missing":
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if how == "flipped" else whole[:-9])
    for again in (lambda: OnlineBandit(linear(), journal=folder, **settings), lambda: OnlineBandit.load(folder)):
        caplog.clear()
        with again() as one:
            assert fingerprint(one) == before
            assert f"snapshot-00000004.{part}" in one.health().failure
            assert "Continued from snapshot 3 and the journal" in one.health().failure
            assert caplog.text.count("Continued from snapshot 3") == 1
    with OnlineBandit(linear(), journal=folder, **settings) as one:
        for _ in range(5):  # until the damaged one is the oldest, and then gone
            one.snapshot()
            assert one.health().failure is None
    with OnlineBandit(linear(), journal=folder, **settings) as one:
        assert fingerprint(one) == before


def test_a_folder_of_which_every_snapshot_is_damaged_or_the_newest_is_newer_is_refused(tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder) as one:
        play(one, 5)
        one.snapshot()
    first, second = sorted(folder.glob("snapshot-*.manifest.json"))
    text = second.read_text()
    second.write_text(text.replace('"format": 2', '"format": 9'))
    with pytest.raises(StorageError, match="format 9.*update"):
        OnlineBandit.load(folder)
    second.write_text("{}")
    first.write_text("{}")
    with pytest.raises(StorageError, match="snapshot-00000002.manifest.json is damaged"):
        OnlineBandit.load(folder)


def count_snapshots(folder):
    return len(list(folder.glob("snapshot-*.manifest.json")))


@pytest.mark.parametrize("learning", ["inline", "background", "manual"])
def test_snapshots_are_due_by_decisions_too(learning, tmp_path):
    folder = tmp_path / "journal"
    with OnlineBandit(linear(), journal=folder, snapshot_every=10, learning=learning) as one:
        for row in contexts(1, 25, ARMS):
            one.select(row)
        patience = time.monotonic() + 60
        while count_snapshots(folder) < 2 and time.monotonic() < patience:  # the thread may be later
            time.sleep(0.01)
        assert count_snapshots(folder) >= 2
        assert one.health().failure is None
    with OnlineBandit.load(folder) as again:
        assert again.health().pending == 25


def test_a_decision_makes_no_snapshot_during_a_lesson(tmp_path, monkeypatch):
    folder, begun, over = tmp_path / "journal", threading.Event(), threading.Event()

    def slow(*arguments):
        begun.set()
        assert over.wait(60)
        return train(*arguments)

    train = lessons.train
    monkeypatch.setattr(lessons, "train", slow)
    with OnlineBandit(linear(), journal=folder, snapshot_every=10, learning="manual") as one:
        lesson = threading.Thread(target=one.learn)
        lesson.start()
        assert begun.wait(60)
        for row in contexts(1, 12, ARMS):
            one.select(row)
        assert count_snapshots(folder) == 1
        over.set()
        lesson.join()
        one.select(contexts(2))
        assert count_snapshots(folder) == 2


def test_other_versions_are_told_once(tmp_path, monkeypatch, caplog):
    folder = tmp_path / "journal"
    with monkeypatch.context() as earlier:
        earlier.setitem(keeper.VERSIONS, "version", "0.0.9")
        earlier.setitem(keeper.VERSIONS, "jax", "0.4.1")
        with OnlineBandit(linear(), journal=folder) as one:
            play(one, 3)
            one.save(tmp_path / "saved")
    assert not caplog.text
    for told in (1, 0, 0):
        caplog.clear()
        OnlineBandit(linear(), journal=folder).close()
        assert caplog.text.count("was written with neuralucb 0.0.9, now ") == told
        assert caplog.text.count("and jax 0.4.1, now ") == told
    OnlineBandit.load(tmp_path / "saved")
    assert "jax 0.4.1, now " in caplog.text
