"""A log of text is parsed once: later passes read a temporary file, and give equal chunks."""

import gc
import io
import os
import tempfile
from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, dsjson_read, formats, open_log, read_chunks
from tests.logs.examples import OPEN_BANDIT, with_context, write_lines


class SmallDisk(io.RawIOBase):
    """A temporary file on a disk with room for so many bytes."""

    def __init__(self, room):
        self.inside, self.room = io.BytesIO(), room

    def writable(self):
        return True

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.inside.tell()

    def seek(self, *place):
        return self.inside.seek(*place)

    def readinto(self, buffer):
        return self.inside.readinto(buffer)

    def write(self, data):
        if self.inside.tell() + len(data) > self.room:
            raise OSError(28, "No space left on device")
        return self.inside.write(data)


def odd_log(path):
    """Three chunks, whose features, probabilities, times and ids come and go, and two bad lines."""
    events = [with_context(User={"age": n / 7, f"late{n // 3000}": 1.0}) | {"EventId": str(n)} for n in range(9000)]
    events[10] |= {"pdrop": 0.5}
    events[11] |= {"EventId": None, "Timestamp": None}
    events[12] = {key: value for key, value in events[12].items() if key != "p"}
    events[13] = {key: value for key, value in events[13].items() if key != "_label_cost"}
    events[20] |= {"pdrop": 2}
    events[8000] |= {"_label_probability": 7}
    return write_lines(path, *events)


def same_chunks(one, other):
    one, other = list(one), list(other)
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert left.names == right.names
        for name, value in left._asdict().items():
            if isinstance(value, np.ndarray):
                assert value.dtype == getattr(right, name).dtype, name
                assert_array_equal(value, getattr(right, name), name)
            else:
                assert value == getattr(right, name), name


@pytest.mark.parametrize("ending", ["dsjson", "csv"])
def test_chunks_are_equal_to_those_that_were_parsed(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    if ending == "dsjson":
        odd_log(path)
    else:
        head, one, two = OPEN_BANDIT.splitlines(keepends=True)
        path.write_text(head + one * 4100 + two * 4100 + two.replace("bb", "cc"))
    log = open_log(path, Skipped())
    for _ in range(2):
        same_chunks(read_chunks(path, Skipped()), log.chunks())
    assert log.names == list(log.chunks())[-1].names


def test_a_log_of_text_is_parsed_once(tmp_path, monkeypatch):
    path, passes = odd_log(tmp_path / "log.dsjson"), []

    def counting(*arguments):
        passes.append(1)
        return dsjson_read.read_dsjson(*arguments)

    monkeypatch.setitem(formats.FORMATS, ".dsjson", formats.DSJSON._replace(read=counting))
    skipped = Skipped()
    log = open_log(path, skipped)
    for _ in range(3):
        assert sum(len(chunk.line) for chunk in log.chunks()) == log.decisions == 8998
    assert (len(passes), skipped.count) == (1, 2)


def test_passes_may_be_under_way_at_the_same_time(tmp_path):
    log = open_log(odd_log(tmp_path / "log.dsjson"), Skipped())
    for one, other in zip(log.chunks(), log.chunks(), strict=True):
        assert_array_equal(one.shared, other.shared)
    lines = []
    threads = [Thread(target=lambda: lines.append([chunk.line.sum() for chunk in log.chunks()])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lines == [lines[0]] * 4


@pytest.mark.parametrize("room", [0, 1000, 50_000])
def test_a_full_disk_costs_time_and_nothing_else(tmp_path, monkeypatch, room):
    path = odd_log(tmp_path / "log.dsjson")
    disk = SmallDisk(room)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: disk)
    skipped = Skipped()
    log = open_log(path, skipped)
    assert disk.closed
    same_chunks(read_chunks(path, Skipped()), log.chunks())
    assert skipped.count == 2


def test_without_a_temporary_folder_a_log_is_read_again(tmp_path, monkeypatch):
    path = odd_log(tmp_path / "log.dsjson")

    def refuse(**_):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    same_chunks(read_chunks(path, Skipped()), open_log(path, Skipped()).chunks())


def test_nothing_stays_in_the_temporary_folder(tmp_path, monkeypatch):
    path = odd_log(tmp_path / "log.dsjson")
    made, real = [], tempfile.TemporaryFile

    def remember(**options):
        made.append(real(dir=tmp_path / "temporary", **options))
        return made[-1]

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "TemporaryFile", remember)
    log = open_log(path, Skipped())
    if os.name == "posix":
        assert not list((tmp_path / "temporary").iterdir())  # no name, so that a killed process leaves nothing
    pass_under_way = log.chunks()
    next(pass_under_way)
    del log
    gc.collect()
    assert not made[0].closed  # a pass holds what it reads
    assert sum(len(chunk.line) for chunk in pass_under_way) > 0
    del pass_under_way
    gc.collect()
    assert made[0].closed
    with pytest.raises(ValueError, match="line 21: pdrop"):
        open_log(path)
    assert made[1].closed
