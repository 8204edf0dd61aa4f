"""Syncing and locking, also on systems that lack `fcntl`, `fdatasync` or folders that can be synced."""

import errno
import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest

from neuralucb import OnlineBandit, StorageError
from neuralucb.online import disk
from tests.online.helpers import fingerprint, linear, play


def imported_again():
    """A second copy of the module, as a system without the modules that are blocked would import it."""
    spec = importlib.util.spec_from_file_location("disk_again", disk.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeMsvcrt:
    """Locks as Windows does: a locked file is refused to every other handle."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.locked = {}

    def locking(self, handle, mode, count):
        file = os.fstat(handle).st_ino
        if mode == self.LK_UNLCK:
            assert self.locked.pop(file) == handle
        elif self.locked.setdefault(file, handle) != handle:
            raise PermissionError(errno.EACCES, "Permission denied")


@pytest.fixture(params=["macos", "windows", "neither"])
def system(request, monkeypatch):
    """A system without `fdatasync`; on the others than macOS without `fcntl` and the syncing of folders too."""
    monkeypatch.delattr(os, "fdatasync")
    if request.param != "macos":
        monkeypatch.delattr(os, "O_DIRECTORY")
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", FakeMsvcrt() if request.param == "windows" else None)
    again = imported_again()
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setattr(disk, name, getattr(again, name))
    return request.param


@pytest.mark.parametrize("sync", ["each", "interval"])
def test_a_journal_is_written_locked_and_recovered_on_any_system(system, sync, tmp_path):
    folder = tmp_path / "new" / "journal"
    with OnlineBandit(linear(), journal=folder, sync=sync, snapshot_every=10) as one:
        play(one, 12)
        with pytest.raises(StorageError, match="in use"):
            OnlineBandit(linear(), journal=folder)
        play(one, 3)
        before = fingerprint(one)
    with OnlineBandit.load(folder) as again:
        assert fingerprint(again) == before


def test_a_lock_file_that_a_killed_process_left_is_named_with_the_cure(monkeypatch, tmp_path):
    monkeypatch.setattr(disk, "fcntl", None)
    monkeypatch.setattr(disk, "msvcrt", None)
    (tmp_path / "lock").touch()
    with pytest.raises(StorageError, match="delete .*lock if its process is gone"):
        OnlineBandit(linear(), journal=tmp_path)
    (tmp_path / "lock").unlink()
    OnlineBandit(linear(), journal=tmp_path).close()
    assert not (tmp_path / "lock").exists()


def test_folders_are_synced_where_they_can_be(monkeypatch, tmp_path):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    disk.sync_folder(tmp_path)
    assert len(synced) == 1
    monkeypatch.delattr(os, "O_DIRECTORY")
    disk.sync_folder(tmp_path)
    assert len(synced) == 1


@pytest.mark.parametrize(
    ("answer", "falls_back"), [(None, False), (OSError(errno.ENOTSUP, "x"), True), (OSError(errno.EIO, "x"), False)]
)
def test_on_macos_the_drive_is_flushed_and_only_a_missing_call_is_replaced(answer, falls_back, monkeypatch):
    calls = []

    def control(handle, command):
        calls.append((handle, command))
        if answer is not None:
            raise answer

    monkeypatch.setattr(disk, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=control))
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync"))
    if answer is not None and not falls_back:
        with pytest.raises(OSError, match="x"):
            disk.sync_data(7)
    else:
        disk.sync_data(7)
    assert calls == [(7, 51), *["fsync"] * falls_back]


def test_a_lock_that_cannot_be_made_is_not_taken_for_one_in_use(monkeypatch, tmp_path):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(StorageError, match="could not be written: Permission denied"):
        disk.FolderLock(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_only_the_owner_may_read_what_is_written(tmp_path):
    before = os.umask(0)
    try:
        with OnlineBandit(linear(), journal=tmp_path / "journal") as one:
            play(one, 3)
            one.snapshot()
            one.save(tmp_path / "saved")
    finally:
        os.umask(before)
    for folder in (tmp_path / "journal", tmp_path / "saved"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
