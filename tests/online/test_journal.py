"""The journal's file: torn ends are cut, damage is refused, and a failed write ends all writing."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from neuralucb import OnlineBandit, StorageError
from neuralucb.online import journal, keeper
from neuralucb.online.codec import pack
from tests.online.helpers import contexts, fingerprint, linear, play, rewrite


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
def test_each_of_4096_bytes_cut_or_flipped_is_recovered_or_refused_never_wrong(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # thousands of them take a minute, and are not tested here
    payloads = small_journal(tmp_path)
    path = tmp_path / "journal-00000001.log"
    whole = path.read_bytes()
    assert len(whole) >= 4096
    recovered = refused = 0
    for at in range(len(whole)):
        if damage == "cut":
            rewrite(path, whole[:at])
        elif damage == "flip":
            rewrite(path, whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        else:
            rewrite(path, whole[:at] + bytes(len(whole) - at))
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


def test_a_torn_end_is_refused_if_later_segments_exist(tmp_path):
    small_journal(tmp_path)
    path = tmp_path / "journal-00000001.log"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="later segments"):
        records(tmp_path, last=False)


def test_pages_that_were_never_filled_are_cut(tmp_path):
    payloads = small_journal(tmp_path, size=3 * 4096)
    path = tmp_path / "journal-00000001.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    read, torn = records(tmp_path)
    assert read == payloads[: len(read)]
    assert torn
    assert len(read) > 50


def failing(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["fdatasync", "write"])
def test_after_a_failed_write_or_sync_no_more_writes_are_accepted(call, tmp_path, monkeypatch):
    one = OnlineBandit(linear(), journal=tmp_path / "journal", sync="each")
    play(one, 3)
    decision = one.select(contexts(1))
    before = fingerprint(one)
    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing)
        with pytest.raises(StorageError, match="No space left"):
            one.observe(decision.id, 1.0)
    for refused in (lambda: one.observe(decision.id, 1.0), lambda: one.select(contexts(2))):
        with pytest.raises(StorageError, match="accepts no more writes"):
            refused()
    assert fingerprint(one) == before
    one.close()
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert again.health().observed in (3, 4)  # the one that failed may have reached the disk all the same


@pytest.mark.parametrize("when", ["journal write", "journal sync", "after"])
def test_an_interrupt_while_writing_ends_all_writing_and_loses_nothing(when, tmp_path, monkeypatch):
    def interrupted(name):
        if name == when:
            raise KeyboardInterrupt

    one = OnlineBandit(linear(), journal=tmp_path / "journal", sync="each")
    play(one, 3)
    decision = one.select(contexts(1))
    with monkeypatch.context() as broken:
        broken.setattr(keeper, "step", interrupted)
        if when == "after":
            broken.setattr(one.state, "apply", lambda event: interrupted(when))
        with pytest.raises(KeyboardInterrupt):
            one.observe(decision.id, 1.0)
    with pytest.raises(StorageError, match="accepts no more writes"):
        one.observe(decision.id, 1.0)
    one.close()
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert again.health().observed in (3, 4)


def test_a_failed_interval_sync_ends_all_writing(tmp_path, monkeypatch):
    one = OnlineBandit(linear(), journal=tmp_path / "journal", sync="interval")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        one.select(contexts(1))
        time.sleep(0.3)
    with pytest.raises(StorageError, match="No space left"):
        one.select(contexts(1))
    one.close()


def test_a_bandit_recovers_from_a_full_disk(tmp_path, monkeypatch):
    """A record is cut off half way, and a snapshot is tried all the same."""
    folder = tmp_path / "journal"
    one = OnlineBandit(linear(), journal=folder, sync="none")
    play(one, 5)
    write = os.write
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", lambda handle, data: failing() if len(data) < 30 else write(handle, data[:30]))
        with pytest.raises(StorageError, match="No space left"):
            one.select(contexts(1))
    with pytest.raises(StorageError, match="accepts no more writes"):
        one.snapshot()
    one.close()
    with OnlineBandit(linear(), journal=folder) as again:
        assert again.health().observed == 5
        assert again.health().torn_bytes > 0


def test_a_closed_bandit_says_so_and_may_be_closed_twice(tmp_path):
    one = OnlineBandit(linear(), journal=tmp_path / "journal")
    one.close()
    one.close()
    with pytest.raises(StorageError, match="it is closed"):
        one.select(contexts(1))


def test_a_fork_may_not_write(tmp_path, monkeypatch):
    with OnlineBandit(linear(), journal=tmp_path / "journal") as one:
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: -1)
            with pytest.raises(StorageError, match="fork"):
                one.select(contexts(1))
        assert one.health().decisions == 0
        one.select(contexts(1))


def test_closing_releases_the_folder_even_if_a_fork_lives_on(tmp_path, monkeypatch):
    handles, real = {}, os.open

    def recorded(path, *args):
        handles[Path(path).name] = real(path, *args)
        return handles[Path(path).name]

    with monkeypatch.context() as watched:
        watched.setattr(os, "open", recorded)
        one = OnlineBandit(linear(), journal=tmp_path / "journal")
    copy = os.dup(handles["lock"])  # as a fork has
    one.close()
    with OnlineBandit(linear(), journal=tmp_path / "journal") as again:
        assert again.health().observed == 0
    os.close(copy)


@pytest.mark.parametrize("learning", ["inline", "background"])
def test_health_says_that_the_journal_died_and_why(learning, tmp_path, monkeypatch, caplog):
    one = OnlineBandit(linear(), journal=tmp_path / "journal", sync="each", learning=learning)
    play(one, 2)
    assert one.health().failure is None
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        with pytest.raises(StorageError, match="No space left"):
            one.select(contexts(1))
    assert "accepts no more writes: No space left on device; mend the disk" in one.health().failure
    assert caplog.text.count("accepts no more writes") == 1
    one.close()
    assert "No space left" in one.health().failure


@pytest.mark.parametrize("noticed", ["health", "select"])
@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_folder_that_is_gone_is_noticed(how, noticed, tmp_path):
    folder = tmp_path / "journal"
    one = OnlineBandit(linear(), journal=folder)
    play(one, 2)
    folder.rename(tmp_path / "elsewhere")
    if how == "deleted":
        shutil.rmtree(tmp_path / "elsewhere")
    if how == "replaced":
        OnlineBandit(linear(), journal=folder).close()
    if noticed == "select":
        with pytest.raises(StorageError, match="deleted, moved or replaced"):
            one.select(contexts(1))
    assert "deleted, moved or replaced" in one.health().failure
    for refused in (one.snapshot, one.rollback, lambda: one.select(contexts(1))):
        with pytest.raises(StorageError, match="accepts no more writes"):
            refused()
    one.close()


def test_errors_of_the_disk_reach_the_caller_as_storage_errors(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    folder = tmp_path / "journal"
    one = OnlineBandit(linear(), journal=folder)
    play(one, 2)
    with monkeypatch.context() as broken:
        broken.setattr(Path, "glob", denied)
        for refused in (one.snapshot, one.rollback, lambda: one.save(tmp_path / "saved")):
            with pytest.raises(StorageError, match="Permission denied"):
                refused()
    one.close()
    with monkeypatch.context() as broken:
        broken.setattr(Path, "open", denied)
        for refused in (lambda: OnlineBandit(linear(), journal=folder), lambda: OnlineBandit.load(folder)):
            with pytest.raises(StorageError, match="Permission denied"):
                refused()
    with OnlineBandit.load(folder) as again:
        assert again.health().observed == 2
